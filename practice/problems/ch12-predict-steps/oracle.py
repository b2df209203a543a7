"""Plays each situation step by step, and writes down who gets how many tokens."""

from typing import Any

from practice.judgelib.cases import Case

ENOUGH = 32
Step = dict[str, tuple[int, int]]  # whose prompt, from where to where


def expected(case: Case) -> dict[str, Any]:
    long, many, known, alike = (
        play(case.ops[name])
        for name in ("one_long", "beside_many", "known_beginning", "one_beginning")
    )
    lengths = {name: case.ops[name]["prompts"] for name in case.ops}
    decoding = case.ops["one_long"]["decoding"]
    whole = [first(long, lengths["one_long"], name) for name in "LS"]
    running = [decoding + sum(step < n for step in whole) for n in range(1, len(long) + 1)]
    tokens = [d + computed(step) for d, step in zip(running, long, strict=True)]
    return {
        "pieces_of_l": pieces(long, "L"),
        "first_of_l": whole[0],
        "first_of_s": whole[1],
        "tokens_of_steps": tokens,
        "rows_of_logits": [d + whole.count(n) for n, d in enumerate(running, 1)],
        "first_of_p": first(many, lengths["beside_many"], "P"),
        "tokens_beside_many": case.ops["beside_many"]["decoding"] + computed(many[0]),
        "first_known": [first(known, lengths["known_beginning"], name) for name in "QR"],
        "pieces_of_r": pieces(known, "R"),
        "first_alike": [first(alike, lengths["one_beginning"], name) for name in "TUV"],
        "computed_of_u": sum(pieces(alike, "U")),
    }


def computed(step: Step) -> int:
    return sum(end - start for start, end in step.values())


def pieces(steps: list[Step], name: str) -> list[int]:
    return [end - start for start, end in (step[name] for step in steps if name in step)]


def first(steps: list[Step], lengths: dict[str, int], name: str) -> int:
    ends = [step.get(name, (0, 0))[1] for step in steps]
    return 1 + ends.index(lengths[name])


def play(situation: dict[str, Any]) -> list[Step]:
    lengths, common = situation["prompts"], situation.get("common", {})
    size = situation.get("page_size", 16)
    cached = dict(situation.get("cached", {}))
    done = {name: cached.get(name, 0) for name in lengths}
    begun, decoding, steps = list[str](), situation["decoding"], list[Step]()
    while any(done[name] < lengths[name] for name in lengths):
        left, step = max(1, situation["budget"] - decoding), Step()
        waiting = [name for name in lengths if name not in begun]
        for name in [*(one for one in begun if done[one] < lengths[one]), *waiting]:
            if not left:
                break
            shared = common.get(name, 0) // size * size
            if name in waiting:
                if any(one in common for one in step) and shared - done[name] >= ENOUGH:
                    continue
                begun.append(name)
            end = min(lengths[name], done[name] + left)
            step[name] = done[name], end
            left -= end - done[name]
        for name, (_, end) in step.items():
            done[name] = end
            decoding += end == lengths[name]
            if end == lengths[name] and name in common:  # its beginning is cached now
                for other in common:
                    if other not in begun:
                        done[other] = common[other] // size * size
        steps.append(step)
    return steps
