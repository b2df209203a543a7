"""The recorder of chapter 14."""

import sys
from pathlib import Path
from time import thread_time
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace

PASS_MS = 3.0  # how long a pass keeps the device busy
NUM_REQUESTS, PROMPT_LEN, NUM_TOKENS = 24, 16, 100
SHOWN_MS = 18.0
END = 2  # the end token


def ready() -> None:
    """The processes of the step need no setting up."""


def ch14_overlap(_: None) -> Trace:
    """Two runs on a clock, and the passes around the end of a request."""
    return {
        "pass_ms": PASS_MS,
        "requests": NUM_REQUESTS,
        "in_turn": _lanes(overlap=False),
        "overlapped": _lanes(overlap=True),
        "flight": _flight(),
    }


class Device:
    """A stand-in for an engine on a GPU: passes take time and come one after the other.

    The host goes on at once. Its clock is `now`: the time that it has computed itself, whatever
    else the machine does, and that it has had to wait. `answers` are the tokens of requests, by
    uid.
    """

    def __init__(self, overlap: bool, rows: int, num_pages: int, page_size: int) -> None:
        import torch

        self.config = SimpleNamespace(
            page_size=page_size,
            device="cpu",
            on_cpu=False,
            overlaps=overlap,
            seed=0,
            max_batch_tokens=1000,
            schedule_policy="fcfs",
        )
        self.num_pages, self.max_seq_len = num_pages, 128
        self.model_config = SimpleNamespace(vocab_size=1000)
        self.ctx = SimpleNamespace(page_table=torch.zeros(rows, 128, dtype=torch.int32))
        self.answers: dict[int, list[int]] = {}
        self.passes: list[tuple[float, float]] = []
        self._waited = 0.0

    def now(self) -> float:
        """The time in seconds."""
        return thread_time() + self._waited

    def wait_until(self, time: float) -> None:
        """Let time pass."""
        self._waited += max(0.0, time - self.now())

    def forward_batch(self, batch: Any) -> Any:
        import torch

        begin = max(self.now(), self.passes[-1][1] if self.passes else 0.0)
        self.passes.append((begin, begin + PASS_MS / 1000))
        tokens = [self._answer(req) for req in batch.reqs if not req.is_chunk]
        return SimpleNamespace(next_tokens=torch.tensor(tokens, dtype=torch.int32), logprobs=None)

    def _answer(self, req: Any) -> int:
        answer, index = self.answers.get(req.uid, []), req.device_len - req.prompt_len
        return answer[index] if index < len(answer) else 9


def _requests(lengths: list[tuple[int, int]]) -> list[Any]:
    """Requests of these numbers of prompt tokens and of tokens to generate."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    return [
        Request(uid, [100 + uid] * prompt, output, SamplingParams(max_tokens=output))
        for uid, (prompt, output) in enumerate(lengths)
    ]


def _lanes(overlap: bool) -> Trace:
    """What host and device did when, in ms, in the quietest part of a run."""
    from minisgl.scheduler import scheduler as module

    device: Any = Device(overlap, NUM_REQUESTS, num_pages=200, page_size=16)
    waits: list[tuple[float, float]] = []

    class Output(module.HostOutput):
        def __init__(self, output: Any) -> None:
            super().__init__(output)
            self._is_there = device.passes[-1][1]

        def read(self) -> Any:
            begin = device.now()
            device.wait_until(self._is_there)
            waits.append((begin, device.now()))
            return super().read()

    plain = module.HostOutput
    setattr(module, "HostOutput", Output)  # noqa: B010  (a type checker forbids to assign a type)
    one = module.Scheduler(device, frozenset({END}))
    for request in _requests([(PROMPT_LEN, NUM_TOKENS)] * NUM_REQUESTS):
        one.add(request)
    times = []
    while one._prefill.waiting or one._running():
        begin = device.now()
        one.step()
        times.append((begin, device.now()))
    setattr(module, "HostOutput", plain)  # noqa: B010
    # With overlap the first step takes nothing over, and the last one launches nothing.
    steps = [*zip(times[overlap : len(waits)], waits, strict=False)]
    busy = [end - begin - (until - since) for (begin, end), (since, until) in steps]
    count = 6
    quietest = min(range(8, len(busy) - count), key=lambda n: sum(busy[n : n + count]))
    zero = steps[quietest][0][0]

    def ms(*times: float) -> list[float]:
        return [round(1000 * (time - zero), 3) for time in times]

    return {
        "steps": [
            {"launches": n + overlap, "takes": n, "times": ms(begin, since, until, end)}
            for n, ((begin, end), (since, until)) in enumerate(steps)
            if 0 <= begin - zero < SHOWN_MS / 1000
        ],
        "passes": [
            {"pass": n, "times": ms(begin, end)}
            for n, (begin, end) in enumerate(device.passes)
            if end > zero and begin - zero < SHOWN_MS / 1000
        ],
    }


def _flight() -> list[Trace]:
    """After each launch and each result: who is how far, what is in flight, who holds what."""
    from minisgl.scheduler.scheduler import Scheduler

    device: Any = Device(overlap=True, rows=2, num_pages=9, page_size=2)
    device.answers = {0: [9, 9, END]}
    one: Any = Scheduler(device, frozenset({END}))
    everybody = _requests([(3, 8), (4, 6), (3, 2)])
    found: list[Trace] = []
    number = {"launch": 0, "result": 0}

    def now(kind: str, requests: list[Any]) -> None:
        number[kind] += 1
        in_flight = {request.uid for launch in one._launches for request in launch.requests}
        state: Trace = {"event": kind, "pass": number[kind], "who": [r.uid for r in requests]}
        state["flight"] = [[r.uid for r in launch.requests] for launch in one._launches]
        held: set[int] = set()
        state["requests"] = {}
        for request in everybody:
            holds = request.is_running or request.uid in in_flight
            state["requests"][request.uid] = {
                "prompt": len(request.input_ids),
                "launched": request.req.cached_len if holds else 0,
                "known": len(request.input_ids) + len(request.token_ids),
                "ended": request.finish_reason,
                "row": request.req.table_idx if holds else None,
                "pages": request.req.cache_handle.pages if holds else [],
            }
            held.update(state["requests"][request.uid]["pages"])
        state["kept"] = sorted({*one._cache._tree.pages()} - held)
        found.append(state)

    taken: list[Any] = []
    launch, take_over = one._launch, one._take_over

    def launched(requests: list[Any]) -> None:
        launch(requests)
        now("launch", requests)

    def took_over() -> None:
        taken[:] = one._launches[0].requests
        take_over()
        now("result", taken)

    one._launch, one._take_over = launched, took_over
    for request in everybody:
        one.add(request)
    while one._prefill.waiting or one._running() or one._launches:
        one.step()
    return found
