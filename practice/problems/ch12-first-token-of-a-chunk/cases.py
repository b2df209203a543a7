"""Prompts shorter and longer than the budget, alone and beside those who decode."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(64) for _ in range(count)]


def drawn(rng: random.Random, size: int, rows: int, count: int) -> list[Op]:
    """So many pages that nothing is ever evicted; too short to be worth waiting for."""
    ops: list[Op] = [["engine", 60 * count, size, rows, 40, rng.choice([1, 2, 3, 5, 8, 13])]]
    texts = [words(rng, 12) for _ in range(3)]
    names: list[str] = []
    for number in range(count):
        what = rng.random()
        if what < 0.3:
            ids = rng.choice(texts)[: rng.randint(0, 12)] + words(rng, rng.randint(1, 12))
            name = f"r{number}"
            names.append(name)
            options: list[Any] = []
            if rng.random() < 0.3:
                options.append(["logprobs", 1])
            if rng.random() < 0.1:
                options.append([rng.choice(["timeout", "queue_timeout"]), rng.randint(1, 8)])
            ops.append(["add", name, ids, rng.randint(1, 6), *options])
        elif what < 0.36 and names:
            ops.append(["abort", names.pop(rng.randrange(len(names)))])
        elif what < 0.4:
            ops.append(["step", "fails"])
        else:
            ops.append(["step"])
    return [*ops, *[["step"]] * 20]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, budget: int, *ops: Op, size: int = 4, rows: int = 4) -> Case:
        return Case(zh, en, ops=[["engine", 60, size, rows, 40, budget], *ops])

    def steps(count: int) -> list[Op]:
        return [["step"]] * count

    n = rng.randint(3, 6)
    a, b, c = words(rng, 3 * n), words(rng, 2), words(rng, 3)
    return {
        "sample": [
            one(
                "A 在 decode，B 的提示词有八个 token，预算是四",
                "A decodes, B has a prompt of eight tokens, and the budget is four",
                4,
                ["add", "A", [11, 12], 6],
                ["step"],
                ["add", "B", [21, 22, 23, 24, 25, 26, 27, 28], 2],
                *steps(4),
            )
        ],
        "basic": [
            one("预算够用", "the budget is enough", 40, ["add", "A", a, 3], *steps(3)),
            one("一个长提示词", "one long prompt", n, ["add", "A", a, 3], *steps(5)),
            one(
                "两个长提示词",
                "two long prompts",
                n,
                ["add", "A", a, 2],
                ["add", "B", a[::-1], 2],
                *steps(8),
            ),
        ],
        "edge": [
            one(
                "过一会儿才有人来",
                "nobody comes for a while",
                n,
                *steps(2),
                ["add", "A", a, 2],
                *steps(4),
            ),
            one(
                "最后一块只有一个 token",
                "the last piece is a single token",
                3 * n - 1,
                ["add", "A", a, 3],
                *steps(5),
            ),
            one(
                "每一块只有一个 token",
                "every piece is a single token",
                1,
                ["add", "A", a, 3],
                *steps(3 * n + 2),
            ),
            one(
                "旁边有人 decode，每一块只有一个 token",
                "somebody decodes beside pieces of a single token",
                2,
                ["add", "B", b, 9],
                ["step"],
                ["add", "A", c, 3],
                *steps(8),
            ),
            one(
                "decode 的和预算一样多",
                "as many decode as the budget has tokens",
                2,
                ["add", "A", b, 12],
                ["add", "B", b[::-1], 12],
                *steps(3),
                ["add", "C", c, 3],
                *steps(7),
            ),
            one(
                "decode 的比预算还多",
                "more decode than the budget has tokens",
                2,
                ["add", "A", b[:1], 16],
                ["add", "B", b[1:], 16],
                *steps(2),
                ["add", "C", c[:1], 12],
                *steps(2),
                ["add", "D", c, 3],
                *steps(6),
            ),
            one(
                "块的末尾恰好是页的末尾",
                "pieces end where pages end",
                4,
                ["add", "A", words(rng, 16), 3],
                *steps(6),
            ),
            one(
                "算完的提示词给别人用",
                "a prompt that is whole is there for others",
                n,
                ["add", "A", a, 5],
                *steps(3),
                ["add", "B", a + c, 2],
                *steps(5),
            ),
            one(
                "要对数概率的和算到一半的同批",
                "one who asks for log probabilities beside a piece",
                5,
                ["add", "A", b, 9, ["logprobs", 1]],
                ["add", "B", a, 3],
                *steps(9),
            ),
            one(
                "算到一半的要对数概率",
                "one in pieces asks for log probabilities",
                5,
                ["add", "A", b, 6],
                ["add", "B", a, 3, ["logprobs", 1]],
                *steps(9),
            ),
            one(
                "算到一半取消，剩下的留给别人",
                "aborted half-way; what there is serves others",
                5,
                ["add", "A", a + c, 3],
                *steps(2),
                ["abort", "A"],
                ["add", "B", a, 3],
                *steps(6),
            ),
            one(
                "算到一半时限到了",
                "too late half-way",
                4,
                ["add", "A", a + c, 3, ["timeout", 2]],
                ["add", "B", b, 2],
                *steps(8),
            ),
            one(
                "算到一半，一次前向失败",
                "a pass fails half-way",
                5,
                ["add", "B", b, 9],
                ["step"],
                ["add", "A", a, 3],
                ["step"],
                ["step", "fails"],
                ["add", "C", a, 2],
                *steps(6),
            ),
            one(
                "一行都没有空着，长提示词在等",
                "a long prompt waits for a row",
                4,
                ["add", "A", b, 3],
                ["add", "B", a, 3],
                *steps(10),
                rows=1,
            ),
        ],
        "random": [
            Case(
                "随机请求",
                "random requests",
                ops=drawn(rng, rng.choice([1, 2, 3, 4, 8]), rng.randint(1, 5), 40),
            )
            for _ in range(4)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 4, 8, 150))],
    }
