# Works out page and offset of every token, and frees each page that some token lies in.
import torch


class CacheManager:
    def can_allocate(self, num_tokens):
        return num_tokens <= self.allocator.num_free * self._page_size

    def allocate(self, req):
        pages = torch.tensor(self.allocator.allocate(self._num_pages(req.max_device_len)))
        tokens = torch.arange(req.max_device_len)
        locations = pages[tokens // self._page_size] * self._page_size + tokens % self._page_size
        self._page_table[req.table_idx, : len(tokens)] = locations

    def free(self, req):
        row = self._page_table[req.table_idx, : req.max_device_len].tolist()
        self.allocator.free(sorted({location // self._page_size for location in row}))

    def _num_pages(self, num_tokens):
        return (num_tokens + self._page_size - 1) // self._page_size
