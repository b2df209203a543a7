"""Days of a waiting line under budgets: long prompts in pieces, common beginnings, early ends."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list
Runs = list[list[int]]


def drawn(rng: random.Random, num_tokens: int, size: int, rows: int, count: int) -> list[Op]:
    """Prompts that begin like one of a few texts, or like one of those who came before."""
    ops: list[Op] = [["engine", num_tokens // size, size, rows, 200]]
    texts: list[Runs] = [[[1000 * (1 + index), 60]] for index in range(3)]
    named: list[str] = []
    usual = rng.choice([3, 10, 30, 60, 200])
    for number in range(count):
        what = rng.random()
        if what < 0.4:
            runs: Runs = []
            keep = rng.randint(0, 90)
            for first, length in rng.choice(texts):
                taken = min(length, keep)
                keep -= taken
                runs += [[first, taken]] if taken else []
            runs.append([10_000 + 100 * number, rng.randint(1, 50)])
            texts = [*texts[:3], *texts[3:][-4:], runs]
            named.append(f"r{number}")
            ops.append(["add", named[-1], runs, rng.randint(1, 20)])
        elif what < 0.8 or not named:
            ops.append(["step", max(1, usual - rng.randint(0, 8))])
        else:
            ops.append(["end", named.pop(rng.randrange((len(named) + 1) // 2))])
    ends = [["end", name] for name in named]
    return [*ops, ["step", 50], *ends, ["step", 50], ["step", 500]]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, num_pages: int, size: int, rows: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["engine", num_pages, size, rows, 400], *ops])

    starts = iter(rng.sample(range(1000, 90_000, 1000), 40))
    a, b, c, d, e = (next(starts) for _ in range(5))
    n = rng.randint(2, 6)

    def add(name: str, *runs: Any, output: int = 1) -> Op:
        return ["add", name, [list(run) for run in runs], output]

    def step(num_tokens: int) -> Op:
        return ["step", num_tokens]

    return {
        "sample": [
            one(
                "L 分三块，剩下的先给 B；C 和 L 开头相同，让到 L 算完",
                "L in three pieces, B gets what is left; C begins like L and stands back",
                20,
                8,
                4,
                add("L", [1, 40], [100, 5], output=4),
                add("B", [300, 12]),
                add("C", [1, 40], [200, 5]),
                step(20),
                step(20),
                step(30),
                step(20),
                ["end", "L"],
            )
        ],
        "basic": [
            one(
                "预算够所有人用",
                "a budget that is enough for all",
                40,
                16,
                4,
                add("A", [a, 30 + n]),
                add("B", [b, 10]),
                add("C", [c, 20]),
                step(500),
                step(500),
            ),
            one(
                "一个长提示词，一块一块地算",
                "one long prompt, piece by piece",
                40,
                16,
                4,
                add("A", [a, 50 + n]),
                *[step(16) for _ in range(5)],
            ),
            one(
                "后来的短提示词等已经开始的",
                "short ones wait for the one that has begun",
                40,
                16,
                4,
                add("A", [a, 40]),
                step(12),
                add("B", [b, n]),
                add("C", [c, n]),
                step(12),
                step(12),
                step(12),
                step(12),
            ),
        ],
        "edge": [
            one("没有人等", "nobody waits", 9, 4, 3, step(5), add("A", [a, n]), step(9), step(9)),
            one(
                "预算刚好用完，下一个不进来",
                "the budget is filled exactly: the next one is not let in",
                40,
                8,
                4,
                add("A", [a, 10 + n]),
                add("B", [b, 9]),
                add("C", [c, 4]),
                step(19 + n),
                step(19 + n),
            ),
            one(
                "差一个",
                "one token short",
                40,
                8,
                4,
                add("A", [a, 10 + n]),
                add("B", [b, 9]),
                add("C", [c, 4]),
                step(18 + n),
                step(18 + n),
            ),
            one(
                "每步一个 token",
                "a token per step",
                40,
                2,
                4,
                add("A", [a, n]),
                add("B", [b, n]),
                *[step(1) for _ in range(2 * n + 1)],
            ),
            one(
                "预算时大时小",
                "budgets that come and go",
                40,
                8,
                4,
                add("A", [a, 40]),
                add("B", [b, 30]),
                *[step(k) for k in (3, 1, 20, 2, 9, 30, 1, 30)],
            ),
            one(
                "命中的不花预算",
                "what is cached costs nothing of the budget",
                40,
                4,
                6,
                add("A", [a, 40]),
                step(100),
                add("B", [a, 40], [b, n]),
                add("C", [c, 20]),
                step(10),
                step(10),
                step(10),
            ),
            one(
                "缓存里已有开头的长提示词，分几块",
                "a long prompt with a cached beginning, in pieces",
                60,
                4,
                6,
                add("A", [a, 40]),
                step(100),
                ["end", "A"],
                add("B", [a, 40], [b, 30]),
                *[step(9) for _ in range(5)],
            ),
            one(
                "开头相同的来得晚，也等整段算完",
                "who begins alike and comes late waits for the whole, too",
                60,
                4,
                6,
                add("A", [a, 40], [d, n]),
                step(15),
                add("B", [a, 40], [e, n]),
                add("C", [c, 9]),
                *[step(16) for _ in range(5)],
            ),
            one(
                "最后一块那一步有剩，让的不拿，别人可以拿",
                "the last piece leaves tokens: not for who stands back, but for others",
                60,
                4,
                6,
                add("A", [a, 40], [d, n]),
                add("B", [a, 40], [e, n]),
                add("C", [c, 30]),
                step(30),
                step(30),
                step(30),
                step(30),
            ),
            one(
                "越过让的人的长提示词，先算完",
                "a long one that went past who stands back is whole first",
                80,
                4,
                6,
                add("A", [a, 40]),
                add("B", [a, 40], [e, n]),
                add("C", [c, 70]),
                *[step(24) for _ in range(7)],
            ),
            one(
                "共有的恰好 32 个",
                "just 32 tokens in common",
                200,
                rng.choice([1, 2, 4]),
                6,
                add("A", [a, 32], [b, 3]),
                add("B", [a, 32], [c, 3]),
                *[step(50) for _ in range(2)],
            ),
            one(
                "一样的提示词，最后一个 token 不算共有",
                "one prompt twice: its last token is not in common",
                200,
                1,
                6,
                add("A", [a, 32]),
                add("B", [a, 32]),
                add("C", [b, 33]),
                add("D", [b, 33]),
                *[step(150) for _ in range(2)],
            ),
            one(
                "共有的只有 31 个，不让",
                "only 31 in common: nobody stands back",
                200,
                1,
                6,
                add("A", [a, 31], [b, 3]),
                add("B", [a, 31], [c, 3]),
                *[step(20) for _ in range(5)],
            ),
            one(
                "页不够，token 有剩也不能越过",
                "pages are short: tokens may be left, and still nobody overtakes",
                10,
                8,
                6,
                add("A", [a, 40], output=8),
                add("B", [b, 40], output=8),
                add("C", [c, n]),
                step(60),
                step(60),
                ["end", "A"],
                step(45),
                step(45),
            ),
            one(
                "行不够",
                "rows are short",
                40,
                8,
                2,
                add("A", [a, 20]),
                add("B", [b, 20]),
                add("C", [c, 20]),
                step(15),
                step(15),
                step(30),
                ["end", "A"],
                step(30),
            ),
            one(
                "一开始就要有整个回答的页",
                "the pages of the whole answer, from the first piece on",
                12,
                8,
                6,
                add("A", [a, 60], output=20),
                add("B", [b, 20]),
                step(8),
                step(8),
                ["end", "A"],
                step(30),
            ),
            one(
                "算到一半就结束，算过的留给别人",
                "ended half-way: what was computed stays for others",
                60,
                4,
                6,
                add("A", [a, 60], [d, n]),
                add("B", [a, 60], [e, n]),
                step(21),
                ["end", "A"],
                *[step(21) for _ in range(4)],
            ),
            one(
                "一半就结束的行和页，同一步给别人",
                "row and pages of one ended half-way go to another in the same step",
                10,
                8,
                1,
                add("A", [a, 60], output=9),
                add("B", [b, 60], output=9),
                step(20),
                ["end", "A"],
                *[step(30) for _ in range(3)],
            ),
            one(
                "别的请求在它两块之间把缓存挤掉",
                "between its pieces others push prefixes out of the cache",
                16,
                8,
                6,
                add("P", [a, 48]),
                step(100),
                ["end", "P"],
                add("A", [b, 50], [d, n]),
                step(20),
                add("B", [a, 48], [e, n]),
                *[step(25) for _ in range(6)],
            ),
        ],
        "random": [
            Case(
                "随机请求",
                "random requests",
                ops=drawn(rng, rng.randint(400, 700), rng.choice([2, 4, 8, 16]), 6, 40),
            )
            for _ in range(4)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 900, 8, 9, 120))],
    }
