"""Takes requests through their lives with a CacheManager and reports pages and page table."""

import torch

from minisgl.kvcache import allocator


class HighestFirst:
    """A page allocator whose pages follow from nothing but which ones are free."""

    def __init__(self, num_pages):
        self._free = set(range(num_pages))

    @property
    def num_free(self):
        return len(self._free)

    def allocate(self, count):
        assert count <= len(self._free), f"{count} pages asked for, {len(self._free)} are free"
        return [self._take() for _ in range(count)]

    def _take(self):
        self._free.remove(page := max(self._free))
        return page

    def free(self, pages):
        for page in pages:
            assert page not in self._free, f"page {page} is free already"
            self._free.add(page)

    def free_pages(self):
        return sorted(self._free)


allocator.PageAllocator = HighestFirst

from minisgl.core import Req, SamplingParams  # noqa: E402
from minisgl.kvcache.manager import CacheManager  # noqa: E402

NOTHING = -1  # in the page table where nobody has written yet


class Run:
    def new(self, num_pages, page_size, num_rows, max_seq_len):
        self.table = torch.full((num_rows, max_seq_len), NOTHING, dtype=torch.int32)
        self.manager = CacheManager(num_pages, page_size, self.table)
        self.reqs = {}
        return {}

    def admit(self, name, row, prompt_len, output_len):
        num_tokens = prompt_len + output_len - 1
        handle = self.manager.reserve(row, num_tokens)
        if handle is None:
            return {"admitted": False}
        req = Req(
            input_ids=torch.arange(prompt_len, dtype=torch.int32),
            table_idx=row,
            cached_len=0,
            output_len=output_len,
            uid=len(self.reqs),
            sampling_params=SamplingParams(max_tokens=output_len),
            cache_handle=handle,
        )
        places = self.table[row, :num_tokens].tolist()
        self.reqs[name] = req, places
        return {"admitted": True, "pages": list(handle.pages), "places": places}

    def run(self, name, rounds):
        req, _ = self.reqs[name]
        for _ in range(rounds):
            req.complete_one()
            req.append_host(torch.tensor([9], dtype=torch.int32))
        return {"device_len": req.device_len}

    def finish(self, name):
        req, _ = self.reqs.pop(name)
        self.manager.free(req)
        return {}

    def reset(self):
        self.manager.reset()
        self.reqs = {}
        return {}

    def moved(self):
        """Who runs and is no longer where it was put."""
        return [
            name
            for name, (req, places) in self.reqs.items()
            if self.table[req.table_idx, : len(places)].tolist() != places
        ]


def run(ops):
    state = Run()
    results = []
    for name, *values in ops:
        seen = getattr(state, name)(*values)
        free = state.manager._allocator.free_pages()
        results.append({**seen, "free_pages": free, "moved": state.moved()})
    return results
