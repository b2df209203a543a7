"""Days of a waiting line: common beginnings, rows and pages that run out, room that comes back."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list
Runs = list[list[int]]


def drawn(rng: random.Random, num_tokens: int, size: int, rows: int, count: int) -> list[Op]:
    """Prompts that begin like one of a few texts, or like one of those who came before."""
    ops: list[Op] = [["engine", num_tokens // size, size, rows, 200]]
    texts: list[Runs] = [[[1000 * (1 + index), 60]] for index in range(3)]
    running: list[str] = []
    for number in range(count):
        what = rng.random()
        if what < 0.55:
            runs: Runs = []
            keep = rng.randint(0, 90)
            for first, length in rng.choice(texts):
                taken = min(length, keep)
                keep -= taken
                runs += [[first, taken]] if taken else []
            runs.append([10_000 + 100 * number, rng.randint(1, 50)])
            texts = [*texts[:3], *texts[3:][-4:], runs]
            name = f"r{number}"
            ops.append(["add", name, runs, rng.randint(1, 20)])
            running.append(name)
        elif what < 0.8 or not running:
            ops.append(["step"])
        else:
            name = running.pop(rng.randrange((len(running) + 1) // 2))
            ops.append(["end", name])
    return [*ops, ["step"], *(["end", name] for name in running), ["step"], ["step"]]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, num_pages: int, size: int, rows: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["engine", num_pages, size, rows, 400], *ops])

    def text() -> int:
        return next(starts)

    starts = iter(rng.sample(range(1000, 90_000, 1000), 40))
    a, b, c, d, e, f = (text() for _ in range(6))
    n = rng.randint(1, 6)
    step: Op = ["step"]

    def add(name: str, *runs: Any, output: int = 1) -> Op:
        return ["add", name, [list(run) for run in runs], output]

    return {
        "sample": [
            one(
                "B 让一步，D 放不下，E 不能越过它",
                "B stands back, D does not fit, E may not overtake it",
                8,
                16,
                4,
                add("A", [1, 40], [100, 5], output=4),
                add("B", [1, 40], [200, 5], output=4),
                add("C", [300, 20]),
                add("D", [400, 60], output=5),
                add("E", [500, 3]),
                step,
                step,
                ["end", "A"],
                ["end", "C"],
                step,
            )
        ],
        "basic": [
            one(
                "行不够，先来先进",
                "rows run out: first come, first served",
                40,
                16,
                2,
                add("A", [a, 30 + n]),
                add("B", [b, 10]),
                add("C", [c, 20]),
                add("D", [d, 1]),
                step,
                step,
                ["end", "B"],
                step,
                ["end", "A"],
                step,
            ),
            one(
                "页不够，后面的小请求也等着",
                "pages run out: small ones behind wait too",
                10,
                8,
                6,
                add("A", [a, 40], output=8),
                add("B", [b, 40], output=8),
                add("C", [c, n]),
                add("D", [d, n]),
                step,
                step,
                ["end", "A"],
                step,
            ),
            one(
                "开头相同的两个请求，后一个下一步命中",
                "two that begin alike: the second finds a hit one step later",
                40,
                16,
                6,
                add("A", [a, 60 + n]),
                add("B", [a, 50], [b, 9]),
                step,
                step,
                step,
            ),
        ],
        "edge": [
            one(
                "没有人等",
                "nobody waits",
                9,
                4,
                3,
                step,
                add("A", [a, n]),
                step,
                step,
            ),
            one(
                "共有的恰好 32 个",
                "just 32 tokens in common",
                200,
                rng.choice([1, 2, 4]),
                6,
                add("A", [a, 32], [b, 3]),
                add("B", [a, 32], [c, 3]),
                step,
                step,
            ),
            one(
                "共有的只有 31 个",
                "only 31 tokens in common",
                200,
                1,
                6,
                add("A", [a, 31], [b, 3]),
                add("B", [a, 31], [c, 3]),
                step,
                step,
            ),
            one(
                "共有的 token 够多，整页不够",
                "enough tokens in common, but not in whole pages",
                40,
                24,
                6,
                add("A", [a, 40 + n], [b, 3]),
                add("B", [a, 40 + n], [c, 3]),
                step,
                step,
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
                step,
                step,
            ),
            one(
                "已经在缓存里的不算",
                "what is cached already does not count",
                60,
                8,
                6,
                add("A", [a, 48], [b, 3]),
                step,
                add("B", [a, 48], [c, 24], [d, n]),
                add("C", [a, 48], [c, 24], [e, n]),
                add("D", [a, 48], [c, 10]),
                step,
                step,
            ),
            one(
                "缓存之外还有 32 个共有的",
                "32 tokens in common beyond what is cached",
                60,
                8,
                6,
                add("A", [a, 48], [b, 3]),
                step,
                ["end", "A"],
                add("B", [a, 48], [c, 32], [d, n]),
                add("C", [a, 48], [c, 32], [e, n]),
                step,
                step,
            ),
            one(
                "让一步的不挡后面的人，也不丢位置",
                "who stands back does not stop the others, nor lose its place",
                60,
                8,
                2,
                add("A", [a, 50], [d, n]),
                add("B", [a, 50], [e, n]),
                add("C", [b, 9]),
                add("D", [c, 9]),
                step,
                ["end", "A"],
                step,
                ["end", "C"],
                step,
            ),
            one(
                "和这一步里进来的任何一个都要比",
                "compared with everyone let in during this step",
                90,
                8,
                8,
                add("A", [a, 40], [d, n]),
                add("B", [b, 40], [d, n]),
                add("C", [c, 40], [d, n]),
                add("D", [a, 40], [e, n]),
                add("E", [b, 40], [e, n]),
                add("F", [c, 40], [e, n]),
                step,
                step,
            ),
            one(
                "让了一步，下一步又要让",
                "stands back in one step, and again in the next",
                90,
                8,
                8,
                add("A", [a, 64], [d, n]),
                add("B", [a, 64], [b, 40], [d, n]),
                add("C", [a, 64], [b, 40], [e, n]),
                add("D", [a, 64], [c, 20]),
                step,
                step,
                step,
            ),
            one(
                "要让一步的，不问它放不放得下",
                "who stands back is not asked whether it fits",
                16,
                8,
                8,
                add("A", [a, 50], [d, n]),
                add("B", [a, 50], [e, n], output=60),
                add("C", [b, 20]),
                step,
                ["end", "A"],
                step,
                ["end", "C"],
                step,
            ),
            one(
                "缓存里的开头，在这一步里被驱逐",
                "a cached beginning is evicted in this very step",
                16,
                16,
                6,
                add("P", [a, 48]),
                step,
                ["end", "P"],
                add("Q", [b, 128]),
                step,
                ["end", "Q"],
                add("Z", [c, 128]),
                add("A", [a, 48], [d, n]),
                add("B", [a, 48], [e, n]),
                step,
                step,
            ),
            one(
                "上一步算过、后来被驱逐的开头",
                "a beginning of an earlier step that was evicted",
                8,
                16,
                6,
                add("A", [a, 48], [d, n]),
                step,
                ["end", "A"],
                add("B", [b, 120]),
                step,
                ["end", "B"],
                add("C", [a, 48], [e, n]),
                step,
            ),
            one(
                "放不下的那个，没有进来，不算",
                "who does not fit was not let in and does not count",
                12,
                8,
                6,
                add("A", [a, 30], output=3),
                add("B", [b, 64], [d, n]),
                add("C", [b, 64], [e, n]),
                step,
                ["end", "A"],
                step,
                step,
            ),
            one(
                "最后一个 token 不占位置",
                "the last token needs no place",
                8,
                8,
                6,
                add("A", [a, 20], output=13),
                add("B", [b, 20], output=14),
                step,
                ["end", "A"],
                step,
            ),
            one(
                "一次次放不下，行也不会越来越少",
                "refused again and again, and no row is lost",
                5,
                8,
                3,
                add("A", [a, 20], output=n),
                add("B", [b, 30]),
                *[step] * 4,
                ["end", "A"],
                step,
                add("C", [c, 5]),
                step,
            ),
            one(
                "_admit 答是或不是",
                "_admit says yes or no",
                6,
                8,
                2,
                add("A", [a, 20], output=3),
                add("B", [b, 60]),
                add("C", [c, 10]),
                add("D", [d, n]),
                ["admit", "A"],
                ["admit", "B"],
                ["admit", "C"],
                ["admit", "D"],
                step,
                ["end", "A"],
                step,
            ),
            one(
                "已经在 running 里的也要返回",
                "who is in running already is returned too",
                40,
                8,
                6,
                add("A", [a, 20]),
                add("B", [b, 20]),
                add("C", [c, 20]),
                ["admit", "B"],
                step,
                step,
            ),
            one(
                "后来的短，也排在后面",
                "shorter, but later",
                60,
                8,
                3,
                add("A", [a, 90]),
                add("B", [b, 60]),
                add("C", [c, 30]),
                add("D", [d, 10]),
                add("E", [e, 5]),
                step,
                ["end", "B"],
                ["end", "C"],
                step,
                add("F", [f, 1]),
                step,
            ),
        ],
        "random": [
            Case(
                "随机请求",
                "random requests",
                ops=drawn(rng, rng.randint(400, 700), rng.choice([2, 4, 8, 16]), 6, 30),
            )
            for _ in range(4)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 900, 8, 9, 90))],
    }
