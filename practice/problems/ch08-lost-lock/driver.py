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

    def begin(self, name, ids, output):
        """Take a request in and compute its prompt; what it reads, as tokens."""
        row = self.rows.pop()
        handle = self.manager.reserve(row, list(ids), len(ids) + output - 1)
        if handle is None:
            self.rows.append(row)
            return "no room"
        prompt = torch.tensor(ids, dtype=torch.int32)
        params = SamplingParams(max_tokens=output)
        req = Req(prompt, row, handle.cached_len, output, row, params, handle)
        self.running[name] = req
        seen = self.forward(req, 0)
        self.manager.cache_req(req)
        return {"hit": handle.cached_len, "reads": seen}

    def decode(self, name, token):
        req = self.running.get(name)
        return self.forward(req, token) if req else "not running"

    def forward(self, req, token):
        for position in range(req.cached_len, req.device_len):
            self.kv[int(self.table[req.table_idx, position])] = int(req.input_ids[position])
        places = self.table[req.table_idx, : req.device_len].tolist()
        req.complete_one()
        req.append_host(torch.tensor([token], dtype=torch.int32))
        return [self.kv[place] for place in places]

    def end(self, name):
        req = self.running.pop(name, None)
        if req is None:
            return "not running"
        self.manager.free(req)
        self.rows.append(req.table_idx)
        return None

    def in_place(self, name):
        return self.running[name].cache_handle.is_run

    def seen(self, result):
        allocator, tree = self.manager._allocator, self.manager._tree
        for page in allocator.free_pages():
            self.kv[page * self.size : (page + 1) * self.size] = [GONE] * self.size
        owners = [*allocator.free_pages(), *tree.pages()]
        for req in self.running.values():
            owners += req.cache_handle.pages[req.cache_handle.cached_len // self.size :]
        return {
            "result": result,
            "free": allocator.num_free,
            "kept": len(tree.pages()),
            "locked": tree.num_locked,
            "without one owner": [
                page for page in range(self.num_pages) if owners.count(page) != 1
            ],
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
