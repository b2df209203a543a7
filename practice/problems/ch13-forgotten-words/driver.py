"""A fake engine under the real scheduler: what a request says depends on all that it reads."""

import sys
from types import SimpleNamespace

import torch

# The real one, which only the annotations name, would bring the models and a slow import along.
sys.modules["minisgl.engine.engine"] = SimpleNamespace(Engine=None, ForwardOutput=None)

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.kvcache.manager import CacheManager  # noqa: E402
from minisgl.scheduler.request import Request  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402
from minisgl.scheduler.trace import Trace  # noqa: E402

GONE = -1


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
    def __init__(self, num_pages, size, rows, longest, budget, policy):
        self.num_pages, self.max_seq_len = num_pages, longest
        self.config = SimpleNamespace(
            page_size=size, device="cpu", seed=0, max_batch_tokens=budget, schedule_policy=policy
        )
        self.model_config = SimpleNamespace(vocab_size=16)
        self.ctx = SimpleNamespace(page_table=torch.zeros(rows, longest, dtype=torch.int32))
        self.kv = [GONE] * (num_pages * size)

    def forward_batch(self, batch):
        """The KV of a token is the token; the next one is computed from all that is read."""
        for token, place in zip(batch.input_ids.tolist(), batch.out_loc.tolist(), strict=True):
            self.kv[place] = token
        sampled = [req for req in batch.reqs if not req.is_chunk]
        tokens = torch.tensor([self.sample(req) for req in sampled], dtype=torch.int32)
        return SimpleNamespace(next_tokens=tokens, logprobs=None)

    def sample(self, req):
        places = self.ctx.page_table[req.table_idx, : req.device_len].tolist()
        read = [self.kv[place] for place in places]
        return (sum((n + 1) * token for n, token in enumerate(read)) + len(read)) % 11


class Day:
    def __init__(self, *shape, share):
        self.engine = Engine(*shape)
        self.scheduler = Scheduler(self.engine, frozenset())
        self.scheduler.trace = self.trace = Trace()
        cache = self.scheduler._cache
        cache.__class__ = Cache
        self.scheduler._prefill.estimate.share = share
        self.requests = {}

    def add(self, name, ids, output):
        params = SamplingParams(max_tokens=output)
        self.requests[name] = request = Request(name, list(ids), output, params)
        self.scheduler.add(request)

    def abort(self, name):
        self.scheduler.abort(name)

    def step(self):
        self.scheduler.step()

    def seen(self):
        """What has happened in this operation, and what is left."""
        scheduler, cache = self.scheduler, self.scheduler._cache
        size = self.engine.config.page_size
        for page in cache._allocator.free_pages():
            self.engine.kv[page * size : (page + 1) * size] = [GONE] * size
        events, self.trace.events = self.trace.events, []
        computed, tokens, ended, gave_way = {}, {}, {}, []
        waiting = scheduler._prefill.waiting.values()
        for event in events:
            if event["event"] == "launch":
                computed = {name: end - start for name, (start, end) in event["lengths"].items()}
            elif event["event"] == "result":
                tokens = event["tokens"]
            elif event["event"] == "finish":
                hit = self.requests[event["uid"]].num_cached_tokens
                ended[event["uid"]] = [event["reason"], hit]
            elif event["event"] == "retract":
                gave_way.append(event["uid"])
        return {
            "gave_way": gave_way,
            "computed": computed,
            "tokens": tokens,
            "ended": ended,
            "waiting": [[one.uid, one.num_overtaken] for one in waiting],
            "free": cache._allocator.num_free,
            "kept": len(cache._tree.pages()),
            "broken": self.broken(),
        }

    def broken(self):
        try:
            self.scheduler.check_invariants()
        except AssertionError as error:
            return [str(error)]
        return []


def run(ops):
    day, results = None, []
    for name, *values in ops:
        if name == "engine":
            *shape, share = values
            day = Day(*shape, share=share)
        else:
            getattr(day, name)(*values)
        results.append(day.seen())
    return results
