# Walks page by page to a node and an offset, cuts once at the end, and builds the front last.
class RadixTree:
    def match(self, input_ids):
        node, offset, matched = self._root, 0, 0
        for key in self._page_keys(input_ids):
            if offset == len(node.keys):
                child = node.children.get(key)
                if child is None:
                    break
                node, offset = child, 1
            elif node.keys[offset] == key:
                offset += 1
            else:
                break
            matched += 1
        if offset < len(node.keys):
            node = self._split(node, offset)
        self._use(node)
        return RadixHandle(matched * self._page_size, node)

    def _split(self, node, at):
        above, first = node.parent, node.keys[0]
        front = RadixNode([], [], above)
        for _ in range(at):
            front.keys.append(node.keys.pop(0))
            front.pages.append(node.pages.pop(0))
        front.lock_count += node.lock_count
        front.children[node.keys[0]] = node
        node.parent = above.children[first] = front
        return front
