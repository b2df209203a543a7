"""Plays both groups in turn and overlapped: a delay of 0 or 1 passes is all that differs."""

from dataclasses import dataclass
from typing import Any

from practice.judgelib.cases import Case


@dataclass
class Asked:
    """A request, and how often it was launched and heard of."""

    name: str
    most: int  # launches before its length ends it
    end: int  # the token after which it has ended
    launched: int = 0
    heard: int = 0
    is_over: bool = False
    freed: int = 0


@dataclass
class Played:
    """What happened, step by step."""

    asked: dict[str, Asked]
    passes: list[list[str]]
    thrown: int
    launched: dict[int, dict[str, tuple[int, int]]]  # step -> name -> launched and heard


def expected(case: Case) -> dict[str, Any]:
    rows, group = case.ops["three_rows"], case.ops["aborted"]
    turn = play(rows["requests"], rows["rows"], 0)
    late = play(rows["requests"], rows["rows"], 1)
    aborts = {name: before for name, (_, before) in group["abort_after"].items()}
    gone = [play(group["requests"], len(group["requests"]), delay, aborts) for delay in (0, 1)]
    prompt = rows["requests"]["B"][0]
    launched, heard = late.launched[3]["B"]
    return {
        "rows_in_turn": [len(one) for one in turn.passes],
        "rows_overlapped": [len(one) for one in late.passes],
        "thrown_away": late.thrown,
        "first_of_d": [1 + ["D" in one for one in run.passes].index(True) for run in (turn, late)],
        "lengths_of_b": [prompt + launched - 1, prompt + launched, prompt + heard],
        "freed": [one.freed for one in late.asked.values()],
        "kept_of_b": (prompt + late.asked["B"].heard - 1) // rows["page_size"],
        "rows_of_group": [len(one) for one in gone[1].passes],
        "tokens_of_e": [run.asked["E"].heard for run in gone],
        "freed_e": [run.asked["E"].freed for run in gone],
    }


def play(
    requests: dict[str, list[int]],
    rows: int,
    delay: int,
    aborts: dict[str, int] | None = None,
) -> Played:
    """Every pass is heard of when `delay` others have been launched behind it, or nothing is."""
    asked = {name: Asked(name, most, end or most) for name, (_, most, end) in requests.items()}
    run = Played(asked, [], 0, {})
    flying: list[list[str]] = []
    waiting, inside = [*asked.values()], list[Asked]()
    step = 0
    while waiting or inside:
        step += 1
        for one in inside:
            one.is_over |= (aborts or {}).get(one.name) == step
        leave(inside, flying, step)
        while waiting and len(inside) < rows:
            inside.append(waiting.pop(0))
        new = [one for one in inside if not one.is_over and one.launched < one.most]
        if new:
            run.passes.append([one.name for one in new])
            flying.append(run.passes[-1])
            for one in new:
                one.launched += 1
        while len(flying) > (delay if new else 0):
            for name in flying.pop(0):
                hear(asked[name], run)
            leave(inside, flying, step)
        run.launched[step] = {one.name: (one.launched, one.heard) for one in asked.values()}
    return run


def hear(one: Asked, run: Played) -> None:
    if one.is_over:
        run.thrown += 1
        return
    one.heard += 1
    one.is_over = one.heard in (one.end, one.most)


def leave(inside: list[Asked], flying: list[list[str]], step: int) -> None:
    """Whoever has ended and is in no pass any more gives its row back."""
    for one in [*inside]:
        if one.is_over and not any(one.name in names for names in flying):
            inside.remove(one)
            one.freed = step
