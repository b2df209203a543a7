# Takes pages for the prompt only; the tokens to come have none.
# caught by: sample
import torch


class CacheManager:
    def allocate(self, req):
        pages = self.allocator.allocate(self._num_pages(req.device_len))
        first = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (first + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[req.table_idx]
        row[: req.device_len] = locations[: req.device_len]
