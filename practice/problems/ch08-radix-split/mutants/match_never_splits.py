# Returns a node that is longer than what was matched, so the handle has too many pages.
# caught by: sample
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            node = child
            matched += common
            if common < len(child.keys):
                break
        self._use(node)
        return RadixHandle(matched * self._page_size, node)
