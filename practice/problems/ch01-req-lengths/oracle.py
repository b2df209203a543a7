"""Keeps the positions themselves, one by one, where the engine keeps three numbers."""

from typing import Any

from practice.judgelib.cases import Case


class Positions:
    """Which positions have KV, which are computed this round, which may ever be filled."""

    def __init__(self, prompt: list[int], cached: int, output: int) -> None:
        self.prompt, self.known = prompt, list(prompt)
        self.stored = list(range(cached))
        self.now = list(range(cached, len(prompt)))
        self.all = list(range(len(prompt) + output))

    def seen(self) -> dict[str, Any]:
        later = set(self.all) - set(self.stored) - set(self.now)
        return {
            "cached_len": len(self.stored),
            "device_len": len(self.stored) + len(self.now),
            "extend_len": len(self.now),
            "remain_len": len(later),
            "can_decode": bool(later),
            "input_ids": self.known,
        }


def expected(case: Case) -> list[Any]:
    results: list[Any] = []
    state: Positions | None = None
    for name, *values in case.ops:
        if name == "admit":
            prompt, cached, output = values
            fits = cached in range(len(prompt)) and output >= 0
            state = Positions(prompt, cached, output) if fits else None
            results.append(state.seen() if state else "AssertionError")
            continue
        assert state is not None
        if name == "complete":
            state.stored += state.now
            state.now = [state.stored[-1] + 1]
        elif name == "chunk":
            state.now = list(range(len(state.stored), values[0]))
        elif name == "append":
            state.known = state.known + values[0]
        if name == "twin":
            results.append({"equal": False, "in_a_set": 2})
        elif name == "prompt":
            results.append(state.prompt)
        else:
            results.append(state.seen())
    return results
