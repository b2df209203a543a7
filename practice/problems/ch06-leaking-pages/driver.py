"""Takes requests through their lives with a CacheManager and reports pages and page table."""

import torch

from minisgl.core import Req, SamplingParams
from minisgl.kvcache.manager import CacheManager

NOTHING = -1  # in the page table where nobody has written yet


class Run:
    def new(self, num_pages, page_size, num_rows, max_seq_len):
        self.table = torch.full((num_rows, max_seq_len), NOTHING, dtype=torch.int32)
        self.manager = CacheManager(num_pages, page_size, self.table)
        self.reqs = {}
        return {}

    def admit(self, name, row, prompt_len, output_len):
        if not self.manager.can_allocate(prompt_len + output_len):
            return {"admitted": False}
        req = Req(
            input_ids=torch.arange(prompt_len, dtype=torch.int32),
            table_idx=row,
            cached_len=0,
            output_len=output_len,
            uid=len(self.reqs),
            sampling_params=SamplingParams(max_tokens=output_len),
            cache_handle=None,
        )
        before = self.table.clone()
        self.manager.allocate(req)
        self.reqs[name] = req
        others = [index for index in range(len(before)) if index != row]
        return {
            "admitted": True,
            "row": self.table[row].tolist(),
            "other_rows_kept": torch.equal(before[others], self.table[others]),
        }

    def run(self, name, rounds):
        req = self.reqs[name]
        for _ in range(rounds):
            req.complete_one()
            req.append_host(torch.tensor([9], dtype=torch.int32))
        return {"device_len": req.device_len, "max_device_len": req.max_device_len}

    def finish(self, name):
        self.manager.free(self.reqs.pop(name))
        return {}

    def can(self, num_tokens):
        return {"can_allocate": self.manager.can_allocate(num_tokens)}


def run(ops):
    state = Run()
    results = []
    for name, *values in ops:
        seen = getattr(state, name)(*values)
        results.append({**seen, "free_pages": state.manager.allocator.free_pages()})
    return results
