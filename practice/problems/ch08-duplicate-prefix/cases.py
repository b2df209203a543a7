"""Days of a small engine: requests that come together, and requests that follow each other."""

import random

from practice.judgelib.cases import Case

Op = list


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(10, 1000) for _ in range(count)]


def drawn(rng: random.Random, num_pages: int, size: int, count: int) -> list[Op]:
    """Requests of few words, so that many begin alike; each op knows what is running."""
    ops: list[Op] = [["engine", num_pages, size, 40, 12 * size]]
    texts: list[list[int]] = [[1] * (2 * size)]
    waiting: list[str] = []
    left: dict[str, int] = {}
    pages, number = 0, 0
    need: dict[str, int] = {}
    for _ in range(count):
        what = rng.random()
        if what < 0.45:
            old = rng.choice(texts)
            ids = old[: rng.randint(0, len(old))][: 5 * size]
            ids = ids + [rng.randrange(1, 4) for _ in range(rng.randint(1, 2 * size))]
            output = rng.randint(1, 2 * size)
            cost = -(-(len(ids) + output - 1) // size)
            texts.append(ids)
            # All that run fit without sharing, so that every admission succeeds.
            if pages + cost > num_pages:
                continue
            pages += cost
            number += 1
            name = f"r{number}"
            need[name], left[name] = cost, output
            ops.append(["admit", name, ids, output])
            waiting.append(name)
        elif what < 0.75:
            names = waiting if waiting else [one for one in left if left[one] > 0]
            if names:
                ops.append(["forward", list(names), [rng.randrange(1, 4) for _ in names]])
            for name in names:
                left[name] -= 1
            waiting = []
        else:
            ready = [name for name in left if name not in waiting]
            if ready:
                name = rng.choice(ready)
                ops.append(["finish", name])
                pages -= need[name]
                del left[name]
    return ops


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, num_pages: int, size: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["engine", num_pages, size, 5, 6 * size - 1], *ops])

    s = rng.choice([2, 3])
    a, b, c = (words(rng, s) for _ in range(3))
    x, y, z = ([1 + i, *words(rng, s - 1)] for i in range(3))
    t = words(rng, 8)
    return {
        "sample": [
            one(
                "两个请求在同一批里，开头相同",
                "two requests in one batch that begin alike",
                8,
                2,
                ["admit", "A", [1, 2, 3, 4, 5], 3],
                ["admit", "B", [1, 2, 3, 4, 6], 3],
                ["forward", ["A", "B"], [7, 8]],
                ["forward", ["A", "B"], [9, 9]],
                ["finish", "A"],
                ["finish", "B"],
            )
        ],
        "basic": [
            one(
                "三份相同的提示词在同一批里",
                "the same prompt three times in one batch",
                16,
                s,
                *[["admit", name, a + b + t[:1], s] for name in "ABC"],
                ["forward", ["A", "B", "C"], t[1:4]],
                ["forward", ["A", "B", "C"], t[4:7]],
                ["finish", "B"],
                ["finish", "A"],
                ["finish", "C"],
            ),
            one(
                "先后到来：第二个请求命中",
                "one after the other: the second finds a hit",
                12,
                s,
                ["admit", "A", a + b + x, s],
                ["forward", ["A"], t[:1]],
                ["admit", "B", a + b + y, s],
                ["forward", ["B"], t[1:2]],
                ["forward", ["A", "B"], t[2:4]],
                ["finish", "A"],
                ["admit", "C", a + b + x + t[:1], 1],
                ["finish", "B"],
                ["forward", ["C"], t[5:6]],
            ),
            one(
                "结束后留在树里，位置不够就驱逐",
                "kept after its end, evicted for want of room",
                5,
                s,
                ["admit", "A", a + b, 2 * s],
                ["forward", ["A"], t[:1]],
                ["finish", "A"],
                ["admit", "B", x + y, 2 * s],
                ["forward", ["B"], t[:1]],
                ["finish", "B"],
                ["admit", "C", a + b + c, 2 * s],
                ["forward", ["C"], t[:1]],
            ),
        ],
        "edge": [
            one(
                "命中之后又重复：一段共享，一段要还",
                "duplicates behind a hit: one part is shared, one goes back",
                16,
                s,
                ["admit", "A", a + t[:1], s],
                ["forward", ["A"], t[1:2]],
                ["admit", "B", a + b + c + x[:1], s],
                ["admit", "C", a + b + y, s],
                ["forward", ["B", "C"], t[2:4]],
                ["forward", ["A", "B", "C"], t[4:7]],
                ["finish", "B"],
                ["forward", ["A", "C"], t[:2]] if s > 2 else ["finish", "C"],
            ),
            one(
                "重复的页还回去后，立刻被别人写上",
                "the duplicate pages go back and are written at once",
                6,
                s,
                ["admit", "A", a + b + x[:1], s],
                ["admit", "B", a + b + y[:1], s],
                ["forward", ["A", "B"], t[:2]],
                ["admit", "C", z + c[:1], s],
                ["forward", ["C"], t[2:3]],
                ["forward", ["A", "B", "C"], t[3:6]],
                ["finish", "B"],
                ["finish", "A"],
                ["finish", "C"],
            ),
            one(
                "提示词整页结束：最后一个 token 仍要计算",
                "a prompt of whole pages: its last token is computed all the same",
                12,
                s,
                ["admit", "A", a + b, s],
                ["admit", "B", a + b, s],
                ["forward", ["A", "B"], t[:2]],
                ["admit", "C", a + b, 1],
                ["forward", ["C"], t[2:3]],
                ["finish", "A"],
                ["forward", ["B"], t[3:4]],
                ["finish", "C"],
            ),
            one(
                "不满一页的提示词",
                "prompts that fill no page",
                6,
                s,
                ["admit", "A", a[:1], 1],
                ["admit", "B", a[:1], s],
                ["forward", ["A", "B"], t[:2]],
                ["finish", "A"],
                ["forward", ["B"], t[2:3]],
                ["finish", "B"],
            ),
            one(
                "还没算就被取消",
                "cancelled before anything was computed",
                8,
                s,
                ["admit", "A", a + b + x, 1],
                ["admit", "B", a + b + y, 1],
                ["finish", "A"],
                ["forward", ["B"], t[:1]],
                ["admit", "C", a + b + z, 1],
                ["finish", "C"],
                ["finish", "B"],
            ),
            one(
                "恰好放得下，再多一个就放不下",
                "just enough room, and one page too little",
                5,
                s,
                ["admit", "A", a + x[:1], s + 1],
                ["forward", ["A"], t[:1]],
                ["admit", "B", a + y + z, 2],
                ["admit", "C", a + y, 2],
                ["forward", ["C"], t[1:2]],
                ["finish", "A"],
                ["finish", "C"],
                ["admit", "D", y + z + x + b, s],
                ["forward", ["D"], t[2:3]],
            ),
            one(
                "命中之后接着要紧挨着的页",
                "behind a hit come the pages right behind it",
                9,
                s,
                ["admit", "A", a + b + x[:1], s + 1],
                ["admit", "B", y + z + c + t[:1], s],
                ["forward", ["A", "B"], t[:2]],
                ["finish", "A"],
                ["admit", "C", a + b + z[:1], 1],
                ["in_place", "C"],
                ["forward", ["B", "C"], t[2:4]],
            ),
            one(
                "整行占满，末页伸出行外",
                "a row filled to its end, and a last page that goes on behind it",
                12,
                s,
                ["admit", "A", a + b + x, 3 * s],
                ["admit", "B", a + b + x, 2 * s],
                ["forward", ["A", "B"], t[:2]],
                ["forward", ["A", "B"], t[2:4]],
                ["finish", "A"],
            ),
            one(
                "一个结束，另一个还在读同一份",
                "one ends while the other still reads the same copy",
                7,
                s,
                ["admit", "A", a + b + x[:1], 1],
                ["admit", "B", a + b + y[:1], s],
                ["forward", ["A", "B"], t[:2]],
                ["finish", "A"],
                ["admit", "C", z + x, 1],
                ["forward", ["C"], t[2:3]],
                ["forward", ["B"], t[3:4]],
            ),
        ],
        "random": [
            Case(
                "随机请求",
                "random requests",
                ops=drawn(rng, rng.randint(14, 22), rng.choice([1, 2, 4]), 24),
            )
            for _ in range(5)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 40, 2, 90))],
    }
