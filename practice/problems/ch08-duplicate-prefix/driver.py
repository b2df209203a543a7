"""A fake engine: its KV is the token itself, and what is free is overwritten at once."""

import torch

from minisgl.core import Req, SamplingParams
from minisgl.kvcache.manager import CacheManager

GONE = -1


class Engine:
    def __init__(self, num_pages, size, rows, longest):
        self.num_pages, self.size, self.rows = num_pages, size, list(range(rows))[::-1]
        self.table = torch.zeros(rows, longest, dtype=torch.int32)
        self.manager = CacheManager(num_pages, size, self.table)
        self.kv = [GONE] * (num_pages * size)
        self.running = {}

    def admit(self, name, ids, output):
        row = self.rows.pop()
        handle = self.manager.reserve(row, list(ids), len(ids) + output - 1)
        if handle is None:
            self.rows.append(row)
            return "no room"
        prompt = torch.tensor(ids, dtype=torch.int32)
        params = SamplingParams(max_tokens=output)
        self.running[name] = Req(prompt, row, handle.cached_len, output, row, params, handle)
        return handle.cached_len

    def forward(self, names, tokens):
        """One batch: all write their KV, then all read; what each reads, as tokens."""
        reqs = [self.running[name] for name in names]
        for req in reqs:
            for position in range(req.cached_len, req.device_len):
                self.kv[int(self.table[req.table_idx, position])] = int(req.input_ids[position])
        seen = {}
        for name, req in zip(names, reqs, strict=True):
            places = self.table[req.table_idx, : req.device_len].tolist()
            seen[name] = [self.kv[place] for place in places]
        for req, token in zip(reqs, tokens, strict=True):
            is_prefill = req.device_len == req.max_device_len - req.output_len
            req.complete_one()
            req.append_host(torch.tensor([token], dtype=torch.int32))
            if is_prefill:
                self.manager.cache_req(req)
        return seen

    def finish(self, name):
        req = self.running.pop(name)
        self.manager.free(req)
        self.rows.append(req.table_idx)

    def in_place(self, name):
        return self.running[name].cache_handle.is_run

    def seen(self, result):
        allocator, tree = self.manager._allocator, self.manager._tree
        for page in allocator.free_pages():
            self.kv[page * self.size : (page + 1) * self.size] = [GONE] * self.size
        owners = [*allocator.free_pages(), *tree.pages()]
        differ = []
        for name, req in self.running.items():
            pages = req.cache_handle.pages
            owners += pages[req.cache_handle.cached_len // self.size :]
            starts = self.table[req.table_idx, : req.max_device_len - 1 : self.size].tolist()
            if starts != [page * self.size for page in pages]:
                differ.append(name)
        return {
            "result": result,
            "free": allocator.num_free,
            "kept": len(tree.pages()),
            "evictable": tree.num_evictable,
            "shared": {
                name: req.cache_handle.cached_len for name, req in sorted(self.running.items())
            },
            "without one owner": [
                page for page in range(self.num_pages) if owners.count(page) != 1
            ],
            "row is not handle": sorted(differ),
        }


def run(ops):
    engine, results = None, []
    for name, *values in ops:
        result = None
        if name == "engine":
            engine = Engine(*values)
        else:
            result = getattr(engine, name)(*values)
        results.append(engine.seen(result))
    return results
