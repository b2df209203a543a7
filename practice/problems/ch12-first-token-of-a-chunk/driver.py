"""A fake engine under the real scheduler: its KV is the token itself, and it reads it back."""

import sys
import zlib
from types import SimpleNamespace

import torch

# The real one, which only the annotations name, would bring the models and a slow import along.
sys.modules["minisgl.engine.engine"] = SimpleNamespace(Engine=None, ForwardOutput=None)

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.scheduler.request import Request  # noqa: E402
from minisgl.scheduler.scheduler import Scheduler  # noqa: E402
from minisgl.scheduler.trace import Trace  # noqa: E402


class Engine:
    def __init__(self, num_pages, size, rows, longest, budget):
        self.num_pages, self.max_seq_len = num_pages, longest
        self.config = SimpleNamespace(page_size=size, device="cpu", seed=0, max_batch_tokens=budget)
        self.model_config = SimpleNamespace(vocab_size=64)
        table = torch.zeros(rows, longest, dtype=torch.int32)
        self.ctx = SimpleNamespace(page_table=table)
        self.kv = [-1] * (num_pages * size)
        self.failing, self.asked = False, []

    def forward_batch(self, batch):
        for place, token in zip(batch.out_loc.tolist(), batch.input_ids.tolist(), strict=True):
            self.kv[place] = token
        if self.failing:
            raise RuntimeError("the pass failed")
        # A row is known by the request that its token is of.
        names = [req for req in batch.reqs for _ in range(req.extend_len)]
        rows = [names[row] for row in batch.logits_rows.tolist()]
        if batch.is_decode:
            rows = batch.reqs  # then the head computes every row
        self.asked = batch.sampling_args.num_logprobs
        tokens = torch.tensor([self.sample(req) for req in rows], dtype=torch.int32)
        return SimpleNamespace(next_tokens=tokens, logprobs=self if any(self.asked) else None)

    def sample(self, req):
        """The next token depends on all tokens that are read."""
        places = self.ctx.page_table[req.table_idx, : req.device_len].tolist()
        return zlib.crc32(repr([self.kv[place] for place in places]).encode()) % 50

    def read(self, tokens):
        """As log probabilities: those of the rows that ask."""
        return [token if asks else None for token, asks in zip(tokens, self.asked, strict=True)]


class Day:
    def __init__(self, *shape):
        self.engine, self.clock = Engine(*shape), 0
        self.scheduler = Scheduler(self.engine, frozenset())
        self.scheduler.trace = self.trace = Trace()
        self.requests = {}

    def add(self, name, ids, output, *options):
        more = dict(options)
        params = SamplingParams(max_tokens=output, logprobs=more.pop("logprobs", None))
        self.requests[name] = request = Request(name, list(ids), output, params, **more)
        self.scheduler.add(request)

    def abort(self, name):
        self.scheduler.abort(name)

    def step(self, failing=False):
        self.engine.failing = bool(failing)
        self.scheduler.step(float(self.clock))
        self.clock += 1

    def ended(self, name, reason):
        request = self.requests[name]
        told = request.token_ids if request.sampling_params.logprobs else []
        wrong = request.finish_reason != reason or request.logprobs != told
        wrong |= (request.error is None) == (request.finish_reason == "error")
        return [reason, request.token_ids, *["is not consistent"] * wrong]

    def seen(self):
        """What has happened in this operation, and what is left."""
        cache, events = self.scheduler._cache, self.trace.events
        self.trace.events = []
        computed, phase, tokens, ended = {}, None, {}, {}
        for event in events:
            if event["event"] == "launch":
                phase, computed = event["phase"], event["lengths"]
            elif event["event"] == "result":
                tokens = event["tokens"]
            elif event["event"] == "finish":
                ended[event["uid"]] = self.ended(event["uid"], event["reason"])
        broken = []
        try:
            self.scheduler.check_invariants()
        except AssertionError as error:
            broken.append(str(error))
        return {
            phase or "idle": {name: list(pair) for name, pair in computed.items()},
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
