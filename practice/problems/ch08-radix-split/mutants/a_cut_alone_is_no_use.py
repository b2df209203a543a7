# Marks the path only where the match ends with a node; the front of a cut is listed, not used.
# caught by: edge
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched, cut = self._root, 0, False
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            cut = common < len(child.keys)
            node = self._split(child, common) if cut else child
            matched += common
        if not cut:
            self._use(node)
        elif node.lock_count == 0:
            self._unlocked[node] = None
        return RadixHandle(matched * self._page_size, node)
