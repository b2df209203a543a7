# Gives a new leaf the locks of its parent, which nobody will ever undo.
# caught by: edge
class RadixTree:
    def insert(self, input_ids, pages):
        handle = self.match(input_ids)
        keys = self._page_keys(input_ids)
        known = handle.cached_len // self._page_size
        if known < len(keys):
            locks = handle.node.lock_count
            leaf = RadixNode(keys[known:], pages[known:], handle.node, {}, locks)
            handle.node.children[keys[known]] = leaf
            if locks:
                self.num_locked += len(leaf.pages)
            else:
                self.num_evictable += len(leaf.pages)
            self._use(leaf)
        return known
