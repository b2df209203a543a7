# Marks the node as used before cutting it, so that the part nobody asked for stays young too.
# caught by: edge
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            self._use(child)
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        self._use(node)
        return RadixHandle(matched * self._page_size, node)
