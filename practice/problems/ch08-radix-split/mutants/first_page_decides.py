# Compares the first page of a node only and takes the others for equal.
# caught by: sample
class RadixTree:
    def match(self, input_ids):
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = min(len(child.keys), len(keys) - matched)
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        self._use(node)
        return RadixHandle(matched * self._page_size, node)
