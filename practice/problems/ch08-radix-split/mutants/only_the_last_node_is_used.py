# Marks only the node that the match ends at: those above it grow old and go before their children.
# caught by: edge
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        if node is not self._root and node.lock_count == 0:
            self._unlocked[node] = None
            self._unlocked.move_to_end(node)
        return RadixHandle(matched * self._page_size, node)
