# Takes the pages to be neighbours and counts on from the first.
# caught by: edge
import torch


class CacheManager:
    def allocate(self, req):
        pages = self.allocator.allocate(self._num_pages(req.max_device_len))
        start = pages[0] * self._page_size
        locations = torch.arange(start, start + req.max_device_len)
        row = self._page_table[req.table_idx]
        row[: req.max_device_len] = locations[: req.max_device_len]
