# Works out page and offset of every token, and frees each page that some token lies in.
class CacheManager:
    def free(self, req):
        row = self._page_table[req.table_idx, : req.max_device_len - 1].tolist()
        self._allocator.free(sorted({location // self._page_size for location in row}))

    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        if count > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._place(table_idx, pages)
        return BaseCacheHandle(pages)

    def _place(self, table_idx, pages):
        row = self._page_table[table_idx]
        tokens = torch.arange(min(len(row), len(pages) * self._page_size))
        first = torch.tensor(pages)[tokens // self._page_size] * self._page_size
        row[: len(tokens)] = (first + tokens % self._page_size).to(row)
