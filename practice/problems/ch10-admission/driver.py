"""Drives a PrefillManager over a real table and a real cache; whoever is let in is computed."""

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

    def admit(self, name):
        return self.prefill._admit(self.prefill.waiting[name])

    def step(self):
        """The prompts of this step, and how much of each is in the cache."""
        requests = self.prefill.schedule()
        self.broken = [request.uid for request in requests if not self.is_ready(request)]
        result = [[request.uid, request.num_cached_tokens] for request in requests]
        for request in requests:
            request.req.complete_one()
            request.req.append_host(torch.tensor([0], dtype=torch.int32))
            self.cache.cache_req(request.req)
            request.move(State.DECODE)
            self.decoding[request.uid] = self.prefill.running.pop(request.uid)
        return result

    def is_ready(self, request):
        """Whether all is in place that a forward pass of the prompt wants."""
        req, ids = request.req, request.input_ids
        row = self.table.token_pool[req.table_idx, : len(ids)].tolist()
        numbers = req.uid, req.cached_len, req.output_len, req.input_ids.dtype
        wanted = request.uid, req.cache_handle.cached_len, request.output_len, torch.int32
        return (
            request.state is State.PREFILL
            and self.prefill.running.get(request.uid) is request
            and row == ids == req.input_ids.tolist()
            and numbers == wanted
            and req.sampling_params is request.sampling_params
        )

    def end(self, name):
        request = self.decoding.pop(name, None)
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
