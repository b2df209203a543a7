"""Weights in each layout, alone and in a choice, and inputs of many numbers of rows in turn."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list[Any]
NAMES = ("transposed", "oneDNN", "MKL")
BORDERS = [1, 2, 4, 5, 16, 17, 64, 65, 256, 257]


def drawn(rng: random.Random, longest: int) -> Op:
    shape = [rng.randint(2, 12), rng.randint(2, 12)]
    counts = [rng.choice([1, 2, 15, 16, 17, rng.randint(1, longest)]) for _ in range(6)]
    flags = rng.choice([None, [rng.random() < 0.5 for _ in range(5)]])
    alone = not flags or all(flags)
    forgets = alone and rng.random() < 0.5
    return [
        rng.choice(NAMES),
        flags,
        rng.randrange(10**6),
        shape,
        counts,
        rng.random() < 0.5,
        forgets,
    ]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: Op) -> Case:
        return Case(zh, en, ops=list(ops))

    def each(counts: list[int], flags: Any = None, bias: bool = False) -> list[Op]:
        shape = [rng.randint(3, 9), rng.randint(3, 9)]
        return [[name, flags, rng.randrange(10**6), shape, counts, bias, False] for name in NAMES]

    def forgotten(flags: Any) -> list[Op]:
        return [[*op[:-1], True] for op in each([1, 2, 16, n], flags, bias=True)]

    n = rng.randint(20, 60)
    yes, no = [True] * 5, [False] * 5
    return {
        "sample": [
            one(
                "8 行、16 行、1 行；只在少于 5 行时用 MKL",
                "8 rows, 16 rows and 1; MKL below 5 rows only",
                ["MKL", None, 7, [6, 4], [8, 16, 1], False, False],
                ["MKL", [True, True, False, False, False], 7, [6, 4], [8, 16, 1], False, False],
            )
        ],
        "basic": [
            one("一行", "one row", *each([1])),
            one("十六行", "sixteen rows", *each([16])),
            one("许多行", "many rows", *each([n])),
            one("带偏置", "with a bias", *each([5, n], bias=True)),
            one("处处都用", "used everywhere", *each([1, 5, 16, n], yes)),
            one("处处不用", "used nowhere", *each([1, 5, 16, n], no), *each([2], yes)),
        ],
        "edge": [
            one("一个权重，行数变来变去", "one weight, ever other rows", *each([1, 2, 3, n, 3, 1])),
            one("十六的左右", "around sixteen", *each([15, 16, 17, 32])),
            one("行数恰好等于输入的维数", "as many rows as inputs", *each([3, 4, 5, 6, 7, 8, 9])),
            one(
                "一个输入，一个输出",
                "one input and one output",
                *[[name, None, n, [1, 1], [1, 2, 16], True, False] for name in NAMES],
            ),
            one(
                "很宽和很高",
                "very wide and very high",
                *[
                    [name, None, n, shape, [1, 2, 30], False, False]
                    for name in NAMES
                    for shape in ([1, 40], [40, 1])
                ],
            ),
            one("调用者的张量后来变了", "the caller's tensor changes later", *forgotten(None)),
            one("处处都用，原来的可以扔", "used everywhere: the original may go", *forgotten(yes)),
            one(
                "每个边界的两边",
                "both sides of each border",
                *[
                    op
                    for place in range(5)
                    for op in each(BORDERS, [number == place for number in range(5)], bias=True)
                ],
            ),
            one(
                "两个权重轮着用",
                "two weights, and then the first again",
                *each([3]),
                *each([3]),
                *each([16, 3]),
            ),
        ],
        "random": [
            one("随机的权重和行数", "random weights and rows", *[drawn(rng, 64) for _ in range(20)])
            for _ in range(4)
        ],
        "large": [one("许多权重", "many weights", *[drawn(rng, 300) for _ in range(150)])],
    }
