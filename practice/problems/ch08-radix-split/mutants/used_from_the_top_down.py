# Marks the path from the top down, so that a beginning goes before what follows it.
# caught by: edge
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        for used in reversed([*node.path()]):
            if used.lock_count == 0:
                self._unlocked[used] = None
                self._unlocked.move_to_end(used)
        return RadixHandle(matched * self._page_size, node)
