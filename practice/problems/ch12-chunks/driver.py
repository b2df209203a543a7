"""Drives a PrefillManager over a real table and a real cache; what it chooses is computed."""

import torch

from minisgl.core import SamplingParams
from minisgl.kvcache.manager import CacheManager
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.prefill import PrefillManager
from minisgl.scheduler.request import Request
from minisgl.scheduler.table import TableManager


class Cache(CacheManager):
    """Here a question is no use of a prefix, so it does not matter when and how often it is put."""

    def num_cached_tokens(self, input_ids):
        keys = self._tree._page_keys(input_ids)
        node, known = self._tree._root, 0
        while known < len(keys) and keys[known] in node.children:
            node = node.children[keys[known]]
            for key in node.keys:
                if known == len(keys) or keys[known] != key:
                    return known * self._page_size
                known += 1
        return known * self._page_size


class Engine:
    def __init__(self, num_pages, size, rows, longest):
        table = torch.zeros(rows, longest, dtype=torch.int32)
        self.table = TableManager(table)
        self.cache = Cache(num_pages, size, table)
        self.prefill = PrefillManager(self.table, self.cache, size)
        self.decoding, self.broken = {}, []

    def add(self, name, runs, output):
        ids = [first + index for first, count in runs for index in range(count)]
        request = Request(name, ids, output, SamplingParams(max_tokens=output))
        self.prefill.waiting[name] = request

    def step(self, num_tokens):
        """From where to where each prompt is computed in this step."""
        requests = self.prefill.schedule(num_tokens)
        self.broken = [one.uid for one in requests if not self.is_ready(one)]
        result = [[one.uid, one.req.cached_len, one.req.device_len] for one in requests]
        for request in requests:
            req = request.req
            is_whole = req.device_len == len(request.input_ids)
            req.complete_one()
            if is_whole and request.uid in self.prefill.running:
                req.append_host(torch.tensor([0], dtype=torch.int32))
                self.cache.cache_req(req)
                request.move(State.DECODE)
                self.decoding[request.uid] = self.prefill.running.pop(request.uid)
        return result

    def is_ready(self, request):
        """Whether a pass can compute it: it has its row, and there is something to compute."""
        return (
            request.state is State.PREFILL
            and self.prefill.running.get(request.uid) is request
            and request.req.extend_len > 0
        )

    def end(self, name):
        holding = self.decoding if name in self.decoding else self.prefill.running
        request = holding.pop(name, None)
        if request is None:
            return "not running"
        self.cache.free(request.req)
        self.table.free(request.req.table_idx)
        return None

    def unowned(self):
        running = [*self.decoding.values(), *self.prefill.running.values()]
        reqs = [request.req for request in running]
        try:
            self.table.check_invariants(reqs)
            self.cache.check_invariants(reqs)
        except AssertionError as error:
            return [str(error)]
        return []

    def seen(self, result):
        return {
            "result": result,
            "waiting": list(self.prefill.waiting),
            "rows": self.table.num_free_rows,
            "free": self.cache._allocator.num_free,
            "kept": len(self.cache._tree.pages()),
            "broken": [*self.broken, *self.unowned()],
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
