# Takes all tokens of a text that ends inside a page for cached.
# caught by: edge
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        self._use(node)
        all_known = matched == len(keys)
        return RadixHandle(len(input_ids) if all_known else matched * self._page_size, node)
