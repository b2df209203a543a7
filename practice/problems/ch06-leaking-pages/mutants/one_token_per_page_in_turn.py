# Deals the tokens out over the pages, where a page is to be filled first.
# caught by: sample
import torch


class CacheManager:
    def allocate(self, req):
        pages = self.allocator.allocate(self._num_pages(req.max_device_len))
        first = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (first + torch.arange(self._page_size, dtype=torch.int32)).T.flatten()
        row = self._page_table[req.table_idx]
        row[: req.max_device_len] = locations[: req.max_device_len]
