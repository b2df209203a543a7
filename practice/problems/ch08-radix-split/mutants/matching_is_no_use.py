# Does not count a match as a use, so that the most wanted prefix goes first.
# caught by: basic
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            if common < len(child.keys):
                node = self._split(child, common)
                self._use(node)
            else:
                node = child
            matched += common
        return RadixHandle(matched * self._page_size, node)
