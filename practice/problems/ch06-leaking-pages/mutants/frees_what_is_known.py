# Gives back the pages of the tokens that are known, prompt and output.
# caught by: sample
class CacheManager:
    def free(self, req):
        """Take all pages of `req` back."""
        first = self._page_table[req.table_idx, : len(req.input_ids) : self._page_size]
        self.allocator.free((first // self._page_size).tolist())
