"""Rows whose sums are exact in float64: all numbers are whole multiples of 2**-32."""

import random
from typing import Any

import torch

from practice.judgelib.cases import Case, randn

STEPS = 2**32
Row = list[float]


def units(numbers: list[int], total: int) -> Row:
    """Whole numbers as shares of `total`, a power of two."""
    return [number / total for number in numbers]


def op(rows: list[Row], top_p: list[float], listed: bool = True, name: str = "threshold") -> list:
    return [name, torch.tensor(rows, dtype=torch.float32), top_p, listed]


def mixed(rng: random.Random, row: Row) -> Row:
    return rng.sample(row, len(row))


def softmax(rng: random.Random, rows: int, vocab: int, spread: float) -> torch.Tensor:
    """Rows as a model gives them, on the grid; a large `spread` makes few tokens likely."""
    probs = (randn(rng, rows, vocab) * spread).softmax(-1)
    return (probs.double() * STEPS).round().float() / STEPS


def share(rng: random.Random) -> float:
    return rng.randint(1, 1023) / 1024


def small(rng: random.Random, rows: int) -> list[Any]:
    """Rows of few tokens with ties, and shares that some sum often meets exactly."""
    vocab = rng.randint(2, 12)
    drawn = [[rng.randint(0, 6) for _ in range(vocab)] for _ in range(rows)]
    for row in drawn:
        row[rng.randrange(vocab)] += 16 - sum(row) % 16  # a multiple of 16: sixteenths are met
    return op([units(row, 128) for row in drawn], [rng.randint(1, 16) / 16 for _ in drawn])


def crossing_at(rng: random.Random, count: int) -> Row:
    """The `count` largest make up exactly half of the row, in a sum that float32 does not have."""

    def number(place: int) -> int:
        return (3000 - place) * 4096 + rng.randrange(1, 4096, 2)

    head = [number(place) for place in range(count)]
    left, tail = sum(head), []
    while left > 3000 * 4096:
        tail.append(number(count + len(tail)))
        left -= tail[-1]
    return mixed(rng, units([*head, *tail, left // 2, left - left // 2], 2**34))


def long_tail(rng: random.Random) -> Row:
    """Three quarters for one token; the others differ by less than float32 can tell in a sum."""
    # Without 132 the sum is on float32's grid, and so, but for a hair, are shares like 1 - 2**-20.
    tail = [number for number in range(1, 201) if number != 132]
    return mixed(rng, units([3 * 2**30, *tail], STEPS))


def short_by_a_hair(rng: random.Random) -> Row:
    """The best 256 have half of the row but for 2**-33, which a sum in float32 rounds away."""
    best = [2**-9] * 255 + [2**-9 - 2**-33]
    return mixed(rng, [*best, *[2**-10] * 512, 2**-33])


def distinct(rng: random.Random, vocab: int, low: int, high: int) -> Row:
    return units(rng.sample(range(low, high), vocab), 2**24)


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: list[Any]) -> Case:
        return Case(zh, en, ops=list(ops))

    halves = units([8, 4, 2, 1, 1], 16)
    tied = units([3, 5, 3, 2, 3], 16)
    pair = units([5, 5, 3, 2, 1], 16)
    after_top_k = units([0, 6, 0, 3, 1, 0, 0], 16)
    flat = [distinct(rng, 900, 9000, 16000) for _ in range(3)]
    peaked = softmax(rng, 1, 900, 4.0)[0].tolist()
    near = distinct(rng, 1200, 8200, 9500)
    tail = [long_tail(rng) for _ in range(6)]
    exact = mixed(rng, [*crossing_at(rng, 256), *[0.0] * 6000])
    few = softmax(rng, 6, 6000, 6.0)
    level = softmax(rng, 1, 6000, 0.7)
    among = rng.randrange(1, 6)
    return {
        "sample": [
            one(
                "同一行，三个 top_p",
                "one row with three values of top_p",
                op([halves] * 3, [0.5, 0.625, 1.0]),
                op([tied], [0.5]),
            )
        ],
        "basic": [
            one("一行", "one row", op([mixed(rng, units([7, 4, 3, 2], 16))], [0.625])),
            one(
                "每行的 top_p 不同",
                "a top_p for every row",
                op([mixed(rng, halves) for _ in range(3)], [0.375, 0.875, 0.625]),
            ),
            one(
                "一行尖，一行平",
                "a sharp row beside a flat one",
                op(
                    [mixed(rng, units([13, 1, 1, 1], 16)), mixed(rng, units([5, 4, 4, 3], 16))],
                    [0.75, 0.75],
                ),
            ),
            one("和恰好等于 p", "a sum that equals p", op([mixed(rng, halves)], [0.75])),
            one("一些行不过滤", "some rows unfiltered", op([halves, tied], [1.0, 0.25])),
        ],
        "edge": [
            one(
                "概率相同的同去同留",
                "ties",
                op([mixed(rng, tied), mixed(rng, tied), mixed(rng, pair)], [0.375, 0.5, 0.5]),
            ),
            one("所有概率相同", "all the same", op([units([2] * 8, 16)], [0.5])),
            one(
                "top-k 之后：和小于 1",
                "after top-k: a sum below 1",
                op([mixed(rng, after_top_k)] * 3, [0.5, 0.625, 0.9375]),
            ),
            one(
                "不过滤的行里有 0",
                "an unfiltered row with zeros",
                op([after_top_k, after_top_k], [1.0, 0.5]),
            ),
            one("很小的 p：只留最大的", "a tiny p", op([mixed(rng, halves)], [1 / 1024])),
            one("一个 token 占了全部", "one token has it all", op([[0.0, 1.0, 0.0]], [0.75])),
            one("词表只有一个 token", "a vocabulary of one", op([[0.5], [0.5]], [0.25, 1.0])),
            one(
                "留下的多于 256 个",
                "more than 256 tokens stay",
                op([flat[0]], [0.75], False),
            ),
            one(
                "几行多于 256 个，各有各的 p",
                "several rows of more than 256, each with its p",
                op([flat[1], peaked, flat[0], flat[2]], [0.5, 0.75, 0.875, 1.0], False),
            ),
            one(
                "恰好 255、256、257 个，再多几个",
                "just 255, 256, 257, and a few more",
                *(
                    op([crossing_at(rng, count)], [0.5], False)
                    for count in (255, 256, 257, 260, 263, 265)
                ),
            ),
            one(
                "一千多个相近的概率", "a thousand that are nearly equal", op([near], [0.625], False)
            ),
            one(
                "三百个相同的概率",
                "three hundred that are equal",
                op([units([3] * 300 + [4] * 20, 1024)], [0.96875], False),
            ),
            one(
                "又长又细的尾巴",
                "a long thin tail",
                op(tail, [1 - place / 2**20 for place in range(1, 7)], False),
            ),
            one(
                "前 256 个正好差一点",
                "256 that are not quite enough",
                op([[*units([3] * 256 + [2] * 127, 2**10), 2**-10]], [0.75 + 1 / 1024], False),
            ),
            one(
                "前 256 个差的比 float32 分得清的还少",
                "256 that lack less than float32 can tell",
                op([short_by_a_hair(rng)], [0.5], False),
            ),
            one(
                "前 256 个超过九成，p 还要更多",
                "256 that have over nine tenths, and p asks for more",
                op([mixed(rng, units([15] * 256 + [1] * 256, 2**12))], [61 / 64], False),
            ),
            one(
                "大词表里恰好 256 个",
                "just 256 of a large vocabulary",
                ["watched", torch.tensor([exact]), [0.5], False],
            ),
        ],
        "random": [
            *(
                one("随机的小词表", "small vocabularies", small(rng, 4), small(rng, 1))
                for _ in range(4)
            ),
            *(
                one(
                    "随机的分布",
                    "random distributions",
                    [
                        "threshold",
                        softmax(rng, 3, rng.randint(100, 700), rng.choice([0.3, 1.0, 3.0])),
                        [share(rng) for _ in range(3)],
                        False,
                    ],
                )
                for _ in range(4)
            ),
        ],
        "large": [
            one(
                "大词表，每行只留几个",
                "a large vocabulary of which few tokens stay",
                ["watched", few[:2], [0.5, 0.75], False],
            ),
            one(
                "大词表，只有一行是平的",
                "a large vocabulary and one flat row",
                [
                    "watched",
                    torch.cat([few[:among], level, few[among:]]),
                    [0.96875 if row == among else 0.5 + share(rng) / 4 for row in range(7)],
                    False,
                ],
            ),
            one(
                "大词表，平的那行不过滤",
                "a large vocabulary, and the flat row is unfiltered",
                ["watched", torch.cat([few[:2], level]), [0.5, 0.75, 1.0], False],
            ),
        ],
    }
