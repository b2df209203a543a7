"""Times by layout, and numbers of rows; all times are exact in binary, so that ties are ties."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list[Any]
COUNTS = (1, 4, 16, 64, 256)
BORDERS = [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4096]
NAMES = ("transposed", "oneDNN", "MKL")


def times(plain: list[float], **ratios: list[float]) -> Op:
    """A choice to be made: the other layouts by their ratios to plain."""
    others = {
        name: [first * ratio for first, ratio in zip(plain, mine, strict=True)]
        for name, mine in ratios.items()
    }
    return ["choose", {"plain": plain, **others}]


def drawn_times(rng: random.Random) -> Op:
    """Plain in powers of two, and ratios in thirty-seconds: nothing is rounded."""
    plain = [2.0 ** rng.randint(-6, 6) for _ in COUNTS]
    ratios = {}
    for name in rng.sample(NAMES, rng.randint(1, 3)):
        middle = rng.choice([20, 30, 33])
        ratios[name] = [rng.randint(middle - 12, middle + 12) / 32 for _ in COUNTS]
        if rng.random() < 0.4:  # nowhere much slower than plain
            ratios[name] = [min(ratio, 33 / 32) for ratio in ratios[name]]
    return times(plain, **ratios)


def drawn_rows(rng: random.Random) -> Op:
    flags = [rng.random() < 0.5 for _ in COUNTS]
    rows = [rng.choice([*BORDERS, rng.randint(1, 400)]) for _ in range(12)]
    return ["apply", rng.choice(NAMES), flags, rows, rng.choice([None, 7.0])]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: Op) -> Case:
        return Case(zh, en, ops=list(ops))

    a, b, c = rng.sample(NAMES, 3)
    low = rng.randint(8, 24) / 32
    flat = [1.0] * 5
    steep = [1.0, 2.0, 8.0, 32.0, 128.0]
    yes, no = [True] * 5, [False] * 5

    def at(place: int, inside: bool = True) -> list[bool]:
        return [(number == place) == inside for number in range(5)]

    return {
        "sample": [
            one(
                "oneDNN 处处不慢 5% 以上；MKL 只在 16 行用",
                "oneDNN nowhere loses more than 5 %; MKL is used for 16 rows only",
                times([1.0, 2.0, 4.0, 8.0, 16.0], oneDNN=[1.03125, 0.5, 0.5, 0.75, 1.0]),
                ["apply", "MKL", [False, False, True, False, False], [1, 4, 5, 16, 17, 300], None],
            )
        ],
        "basic": [
            one(
                "一种布局，有快有慢",
                "one layout, faster here and slower there",
                times(steep, **{a: [1.5, low, low, 1.25, 2.0]}),
            ),
            one(
                "两种布局，各快各的",
                "two layouts, each faster somewhere",
                times(steep, **{a: [2.0, 2.0, 0.5, 0.5, 2.0], b: [0.25, 2.0, 2.0, 0.5, 2.0]}),
            ),
            one(
                "处处用第二种",
                "the second one everywhere",
                ["apply", a, yes, [1, 4, 16, 64, 256], None],
            ),
            one(
                "量过的行数，各用各的",
                "the numbers of rows that were measured",
                *[["apply", b, at(place), list(COUNTS), None] for place in range(5)],
            ),
        ],
        "edge": [
            one(
                "没有别的布局",
                "there is no other layout",
                times(steep),
                times(flat),
                ["apply", a, at(0), [1, 2], None],
            ),
            one(
                "都和 plain 一样快",
                "all are as fast as plain",
                times(steep, **{a: flat}),
                times(flat, **{a: flat, b: flat}),
                times(flat, **{a: flat, b: [1.0, 1.0, low, 1.0, 1.5]}),
            ),
            one(
                "只在一处快一点点",
                "a little faster, in one place",
                *[
                    times(steep, **{a: [31 / 32 if n == place else 1.5 for n in range(5)]})
                    for place in range(5)
                ],
            ),
            one(
                "处处都慢",
                "slower everywhere",
                times(steep, **{a: [1.03125] * 5, b: [1.25] * 5}),
            ),
            one(
                "最慢的一处恰好慢 5%",
                "the slowest place loses just 5 %",
                times(flat, **{a: [0.5, 1.05, 1.0, 0.75, 1.05]}),
                times([4.0] * 5, **{b: [1.0625, 0.5, 0.5, 0.5, 0.5]}),
                times([2.0] * 5, **{c: [0.5, 0.5, 0.5, 0.5, 1.0625]}),
            ),
            one(
                "平均不慢，有一处慢得多",
                "not slower on average, much slower in one place",
                times(steep, **{a: [0.5, 0.5, 0.5, 0.5, 1.5]}),
                times(steep, **{a: [1.5, 0.5, 0.5, 0.5, 0.5]}),
            ),
            one(
                "行数多时省下的秒数最多，却不该由它说了算",
                "most seconds are saved with many rows, which must not decide alone",
                times(steep, **{a: [0.5, 0.5, 0.5, 1.0, 1.0], b: [1.0, 1.0, 1.0, 1.0, 0.5]}),
                times(steep, **{b: [1.5, 1.0, 1.0, 0.75, 0.75], a: [0.5, 1.0, 0.75, 1.0, 1.5]}),
            ),
            one(
                "处处省一点，比一处省很多更好",
                "a little everywhere is better than much in one place",
                times(steep, **{a: [0.5, 1.0, 1.0, 1.5, 1.0], b: [0.75] * 5}),
                times(steep, **{b: [0.875] * 4 + [1.5], a: [1.0, 1.0, 0.625, 1.5, 1.0]}),
            ),
            one(
                "用不上的地方再慢也不算",
                "how slow it is where it is not used does not count",
                times(steep, **{a: [0.5, 64.0, 64.0, 64.0, 64.0], b: [0.625] + [1.0] * 4}),
            ),
            one(
                "赢的处数多，省的却少",
                "wins in more places, and saves less",
                times(steep, **{a: [31 / 32] * 4 + [1.25], b: [0.25, 1.5, 1.5, 1.5, 1.5]}),
            ),
            one(
                "分不出高下的，选先量的",
                "of two that are alike, the one that comes first",
                times(steep, **{b: [0.5, 1.0, 1.0, 2.0, 2.0], a: [1.0, 0.5, 2.0, 1.0, 2.0]}),
                times(steep, **{a: [low] * 5, c: [low] * 5}),
            ),
            one(
                "每个边界的两边",
                "both sides of each border",
                *[
                    ["apply", a, at(place, inside), BORDERS, None]
                    for place in range(5)
                    for inside in (True, False)
                ],
            ),
            one(
                "比量过的都多",
                "more rows than were ever measured",
                ["apply", a, at(4), [256, 257, 100_000], None],
                ["apply", a, at(4, False), [256, 257, 100_000], None],
            ),
            one(
                "从来不用的，不准备",
                "what is never used is not prepared",
                ["apply", a, no, BORDERS, None],
            ),
            one(
                "只准备一次",
                "prepared once",
                ["apply", a, yes, [3, 3, 3, 17, 17, 300], None],
                ["apply", b, at(1), [3, 3, 3, 17, 17, 300], None],
            ),
            one(
                "偏置要传下去",
                "a bias is handed on",
                ["apply", a, yes, [1, 5], 7.0],
                ["apply", a, at(0), [1, 5], 7.0],
                ["apply", a, no, [1, 5], 7.0],
            ),
        ],
        "random": [
            one(
                "随机的时间和行数",
                "random times and rows",
                *[op for _ in range(15) for op in (drawn_times(rng), drawn_rows(rng))],
            )
            for _ in range(4)
        ],
        "large": [
            one(
                "许多次",
                "many of them",
                *[op for _ in range(150) for op in (drawn_times(rng), drawn_rows(rng))],
            )
        ],
    }
