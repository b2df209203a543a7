"""A fake engine under the real scheduler, on a device that computes as late as it can."""

import sys
from concurrent.futures import Future
from types import SimpleNamespace

import torch

# The real one, which only the annotations name, would bring the models and a slow import along.
sys.modules["minisgl.engine.engine"] = SimpleNamespace(Engine=None, ForwardOutput=None)

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.scheduler.request import Request  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402
from minisgl.scheduler.trace import Trace  # noqa: E402

GONE = -1
ENDS = frozenset({0, 1})


class Late(Future):
    """A pass that is computed when somebody waits for it, after all that were launched before."""

    def __init__(self, compute, before):
        super().__init__()
        self._compute, self._before = compute, before

    def result(self, timeout=None):
        self._run()
        return super().result()

    def exception(self, timeout=None):
        self._run()
        return super().exception()

    def _run(self):
        if self.done():
            return
        if self._before is not None:
            self._before._run()
        try:
            self.set_result(self._compute())
        except Exception as error:
            self.set_exception(error)
        self._compute = self._before = None


class LateWorker:
    def __init__(self):
        self.newest = None

    def submit(self, compute):
        self.newest = Late(compute, self.newest)
        return self.newest


class Engine:
    def __init__(self, num_pages, size, rows, longest, budget, overlap):
        self.num_pages, self.max_seq_len = num_pages, longest
        self.config = SimpleNamespace(
            page_size=size,
            device="cpu",
            on_cpu=False,
            overlaps=overlap,
            seed=0,
            max_batch_tokens=budget,
            schedule_policy="fcfs",
        )
        self.model_config = SimpleNamespace(vocab_size=16)
        self.ctx = SimpleNamespace(page_table=torch.zeros(rows, longest, dtype=torch.int32))
        self.kv = [GONE] * (num_pages * size)
        self.fails = False

    def forward_batch(self, batch):
        """The KV of a token is the token; the next one is computed from all that is read."""
        if self.fails:
            self.fails = False
            raise RuntimeError("the device is on fire")
        for token, place in zip(batch.input_ids.tolist(), batch.out_loc.tolist(), strict=True):
            self.kv[place] = token
        sampled = [req for req in batch.reqs if not req.is_chunk]
        tokens = torch.tensor([self.sample(req) for req in sampled], dtype=torch.int32)
        return SimpleNamespace(next_tokens=tokens, logprobs=None)

    def sample(self, req):
        places = self.ctx.page_table[req.table_idx, : req.device_len].tolist()
        return next_token([self.kv[place] for place in places])


def next_token(ids):
    text = 0
    for token in ids:
        text = (31 * text + token + 7) % 65521
    return text // 7 % 11


class Day:
    def __init__(self, *shape, share, overlap):
        self.engine = Engine(*shape, overlap)
        self.scheduler = Scheduler(self.engine, ENDS)
        self.scheduler._worker = LateWorker()
        self.scheduler.trace = self.trace = Trace()
        self.scheduler._prefill.estimate.share = share
        self.requests = {}

    def add(self, name, ids, output):
        params = SamplingParams(max_tokens=output)
        self.requests[name] = request = Request(name, list(ids), output, params)
        self.scheduler.add(request)

    def abort(self, name):
        self.scheduler.abort(name)

    def fail(self):
        self.engine.fails = True

    def step(self):
        self.scheduler.step()

    def seen(self):
        """What has happened in this operation, and what is left."""
        scheduler, cache, table = self.scheduler, self.scheduler._cache, self.scheduler._table
        size = self.engine.config.page_size
        for page in cache._allocator.free_pages():
            self.engine.kv[page * size : (page + 1) * size] = [GONE] * size
        table.token_pool[table._free_rows] = 10
        table.page_table[table._free_rows] = 0
        events, self.trace.events = self.trace.events, []
        launched, taken, ended = [], [], {}
        for event in events:
            if event["event"] == "launch":
                lengths = {name: list(pair) for name, pair in event["lengths"].items()}
                launched.append([event["phase"], lengths])
            elif event["event"] == "result":
                taken.append({name: self.said(name, t) for name, t in event["tokens"].items()})
            elif event["event"] == "failure":
                taken.append("failure")
            elif event["event"] == "finish":
                ended[event["uid"]] = [event["reason"], self.requests[event["uid"]].token_ids]
        return {
            "launched": launched,
            "taken": taken,
            "ended": ended,
            "free_rows": table.num_free_rows,
            "free": cache._allocator.num_free,
            "kept": len(cache._tree.pages()),
            "in_flight": len(scheduler._launches),
            "broken": self.broken(),
        }

    def said(self, name, token):
        """What a pass made of the place of a token that never came is of no interest."""
        return None if self.requests[name].finish_reason == "error" else token

    def broken(self):
        found = []
        for name, request in self.requests.items():
            if (request.finish_reason == "error") != isinstance(request.error, RuntimeError):
                found.append([name, "error", repr(request.error)])
        try:
            self.scheduler.check_invariants()
        except AssertionError as error:
            found.append(str(error))
        return found


def run(ops):
    day, results = None, []
    for name, *values in ops:
        if name == "engine":
            *shape, share, overlap = values
            day = Day(*shape, share=share, overlap=overlap)
        else:
            getattr(day, name)(*values)
        results.append(day.seen())
    return results
