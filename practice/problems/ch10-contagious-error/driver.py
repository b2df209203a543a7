"""A fake engine under the real scheduler: its KV is the token itself, and KV can be spoilt."""

import sys
from types import SimpleNamespace

import torch

# The real one, which only the annotations name, would bring the models and a slow import along.
sys.modules["minisgl.engine.engine"] = SimpleNamespace(Engine=None, ForwardOutput=None)

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.scheduler.request import Request  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402
from minisgl.scheduler.trace import Trace  # noqa: E402

GONE, SPOILT = -1, -2


class Late(torch.Tensor):
    """Tokens of a pass whose failure is only noticed when they are read."""

    def cpu(self):
        raise RuntimeError("the pass had failed")


class Engine:
    def __init__(self, num_pages, size, rows, longest):
        self.num_pages, self.max_seq_len = num_pages, longest
        self.config = SimpleNamespace(page_size=size, device="cpu", seed=0)
        self.model_config = SimpleNamespace(vocab_size=16)
        table = torch.zeros(rows, longest, dtype=torch.int32)
        self.ctx = SimpleNamespace(page_table=table)
        self.kv = [GONE] * (num_pages * size)
        self.failure, self.spoilt = None, []

    def forward_batch(self, batch):
        if self.failure == "raises":
            raise RuntimeError("the pass failed")
        ids, places = batch.input_ids.tolist(), batch.out_loc.tolist()
        names = [req.uid for req in batch.reqs for _ in range(req.extend_len)]
        for name, token, place in zip(names, ids, places, strict=True):
            spoilt = self.failure == "raises late" or name in self.spoilt
            self.kv[place] = SPOILT if spoilt else token
        tokens = torch.tensor([self.sample(req) for req in batch.reqs], dtype=torch.int32)
        if self.failure == "raises late":
            tokens = tokens.as_subclass(Late)
        wanted = any(token % 2 == 0 for token in tokens.tolist())
        return SimpleNamespace(next_tokens=tokens, logprobs=self if wanted else None)

    def sample(self, req):
        """The next token is how many there are, modulo 5; none where the KV is not their own."""
        places = self.ctx.page_table[req.table_idx, : req.device_len].tolist()
        read = [self.kv[place] for place in places]
        return req.device_len % 5 if read == req.input_ids.tolist() else -1

    def read(self, tokens):
        """As log probabilities: for even tokens only."""
        return [None if token % 2 else float(token) for token in tokens]


class Day:
    def __init__(self, *shape):
        self.engine, self.clock, self.remembered = Engine(*shape), 0, []
        self.scheduler = Scheduler(self.engine, frozenset())
        self.scheduler.trace = self.trace = Trace()
        self.requests = {}

    def add(self, name, ids, output, *options):
        more = dict(options)
        stop = more.pop("stop", [])
        params = SamplingParams(max_tokens=output, stop_token_ids=stop)
        self.requests[name] = request = Request(name, list(ids), output, params, **more)
        self.scheduler.add(request)

    def abort(self, name):
        self.scheduler.abort(name)

    def step(self, failure=None, names=()):
        self.engine.failure, self.engine.spoilt = failure, names
        self.scheduler.step(float(self.clock))
        self.remembered = list(self.scheduler._aborted)
        self.clock += 1

    def ended(self, name, reason):
        request = self.requests[name]
        wrong = request.finish_reason != reason
        wrong |= (request.error is None) == (request.finish_reason == "error")
        even = [float(token) for token in request.token_ids if token % 2 == 0]
        if wrong or request.logprobs != even:
            return [request.finish_reason, request.token_ids, "is not consistent"]
        return [reason, len(request.token_ids)]

    def seen(self):
        """What has happened in this operation, and what is left."""
        cache = self.scheduler._cache
        size = self.engine.config.page_size
        for page in cache._allocator.free_pages():
            self.engine.kv[page * size : (page + 1) * size] = [GONE] * size
        events, self.trace.events = self.trace.events, []
        computed, phase, tokens, ended = {}, None, {}, {}
        for event in events:
            if event["event"] == "launch":
                phase = event["phase"]
                computed = {name: end - start for name, (start, end) in event["lengths"].items()}
            elif event["event"] == "result":
                tokens = event["tokens"]
            elif event["event"] == "finish":
                ended[event["uid"]] = self.ended(event["uid"], event["reason"])
        broken = [f"aborts that are remembered: {self.remembered}"] * bool(self.remembered)
        try:
            self.scheduler.check_invariants()
        except AssertionError as error:
            broken.append(str(error))
        return {
            phase or "idle": computed,
            "tokens": tokens,
            "ended": ended,
            "free": cache._allocator.num_free,
            "kept": len(cache._tree.pages()),
            "broken": broken,
        }


def run(ops):
    day, results = None, []
    for name, *values in ops:
        if name == "engine":
            day = Day(*values)
        else:
            getattr(day, name)(*values)
        results.append(day.seen())
    return results
