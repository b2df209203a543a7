# Counts on from the page's number, not from its first location.
# caught by: sample
import torch


class CacheManager:
    def allocate(self, req):
        pages = self.allocator.allocate(self._num_pages(req.max_device_len))
        first = torch.tensor(pages, dtype=torch.int32)[:, None]
        locations = (first + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[req.table_idx]
        row[: req.max_device_len] = locations[: req.max_device_len]
