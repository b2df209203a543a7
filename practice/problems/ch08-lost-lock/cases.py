"""Requests that begin like earlier ones while the pool is nearly full; some must wait."""

import random

from practice.judgelib.cases import Case

Op = list


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(10, 1000) for _ in range(count)]


def drawn(rng: random.Random, num_pages: int, size: int, count: int) -> list[Op]:
    """Few words, so that many begin alike, and few pages, so that some find no room."""
    ops: list[Op] = [["engine", num_pages, size, 60, 12 * size - 1]]
    texts: list[list[int]] = [[1] * (2 * size)]
    left: dict[str, int] = {}
    for number in range(count):
        what = rng.random()
        if what < 0.5:
            old = rng.choice(texts)
            ids = old[: rng.randint(0, len(old))][: 5 * size]
            ids = ids + [rng.randrange(1, 4) for _ in range(rng.randint(1, 2 * size))]
            texts.append(ids)
            name, output = f"r{number}", rng.randint(1, 2 * size)
            ops.append(["begin", name, ids, output])
            left[name] = output - 1
        elif what < 0.7:
            ready = [name for name in left if left[name] > 0]
            if ready:
                name = rng.choice(ready)
                ops.append(["decode", name, rng.randrange(1, 4)])
                left[name] -= 1
        elif left:
            name = rng.choice(sorted(left))
            ops.append(["end", name])
            del left[name]
    return [*ops, *(["end", name] for name in left), ["begin", "last", [1, 2, 3], 1]]


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
                "命中了开头，却没有地方放其余的",
                "a hit at the start, and no room for the rest",
                7,
                2,
                ["begin", "A", [1, 2, 3, 4, 5, 6], 1],
                ["end", "A"],
                ["begin", "B", [7, 8, 9], 2],
                ["begin", "C", [1, 2, 3, 4, 9, 9, 9, 9], 4],
                ["decode", "B", 9],
                ["end", "B"],
                ["begin", "C", [1, 2, 3, 4, 9, 9, 9, 9], 4],
                ["end", "C"],
            )
        ],
        "basic": [
            one(
                "先后到来：第二个请求命中",
                "one after the other: the second finds a hit",
                12,
                s,
                ["begin", "A", a + b + x, s],
                ["begin", "B", a + b + y, s],
                ["decode", "A", t[0]],
                ["end", "A"],
                ["begin", "C", a + b + x + t[1:2], 1],
                ["decode", "B", t[2]],
                ["end", "C"],
                ["end", "B"],
            ),
            one(
                "位置不够，驱逐别人不用的前缀",
                "no room left: what nobody reads is evicted",
                5,
                s,
                ["begin", "A", a + b + c, 1],
                ["end", "A"],
                ["begin", "B", x + y + z, s + 1],
                ["end", "B"],
                ["begin", "C", x + y + b, s + 1],
                ["decode", "C", t[0]],
                ["end", "C"],
            ),
            one(
                "放不下就等，等到别人结束",
                "what does not fit waits until another ends",
                6,
                s,
                ["begin", "A", a + b, 1],
                ["begin", "B", x + y + z, 1],
                ["begin", "C", x + c + a, 1],
                ["end", "B"],
                ["begin", "C", x + c + a, 1],
                ["end", "A"],
                ["end", "C"],
            ),
        ],
        "edge": [
            one(
                "整个提示词都在树里，最后一个 token 仍要算",
                "the whole prompt is known: its last token is computed all the same",
                8,
                s,
                ["begin", "A", a + b, 1],
                ["begin", "B", a + b, 1],
                ["end", "A"],
                ["end", "B"],
                ["begin", "C", a, 1],
            ),
            one(
                "要驱逐的恰好够",
                "just enough can be evicted",
                5,
                s,
                ["begin", "A", a + b + c, 1],
                ["end", "A"],
                ["begin", "B", x, 1],
                ["begin", "C", a + y + z, s + 1],
                ["decode", "C", t[0]],
                ["end", "B"],
                ["end", "C"],
            ),
            one(
                "只差一页：命中的前缀不能算进去",
                "short by one page: the prefix that hit does not count",
                5,
                s,
                ["begin", "A", a + b + c, 1],
                ["end", "A"],
                ["begin", "B", x, s + 1],
                ["begin", "C", a + y + z, s + 1],
                ["end", "B"],
                ["begin", "C", a + y + z, s + 1],
                ["end", "C"],
            ),
            one(
                "命中的是整片叶子，别的都有人在读",
                "a whole leaf hits, and all else is being read",
                6,
                s,
                ["begin", "A", a + b, 1],
                ["end", "A"],
                ["begin", "B", x + y, s + 1],
                ["begin", "C", a + b + z, s + 1],
                ["begin", "D", a + b + z, 1],
                ["decode", "B", t[0]],
                ["end", "B"],
                ["end", "D"],
            ),
            one(
                "一次次放不下，前缀不会越锁越多",
                "refused again and again, and no lock is left behind",
                5,
                s,
                ["begin", "A", a + b, 1],
                ["end", "A"],
                ["begin", "B", x + y, 1],
                *[["begin", "C", a + b + c + z, 1]] * 3,
                ["end", "B"],
                ["begin", "D", z + y + x + c, s],
                ["end", "D"],
            ),
            one(
                "别人锁着的前缀，放不下时还归别人锁着",
                "refused on a prefix that another reads: the other's lock stays",
                5,
                s,
                ["begin", "A", a + b + x[:1], s],
                ["begin", "B", a + b + y + z, s],
                ["begin", "C", x + y + z, 1],
                ["decode", "A", t[0]],
                ["end", "A"],
                ["begin", "B", a + b + y + z, s],
            ),
            one(
                "三个请求读同一段，先后结束",
                "three requests read one beginning and end in turn",
                7,
                s,
                ["begin", "A", a + b + x, 1],
                ["begin", "B", a + b + y, 2],
                ["begin", "C", a + b, 1],
                ["end", "B"],
                ["begin", "D", z + x + y + c, s + 1],
                ["end", "A"],
                ["begin", "D", z + x + y + c, s + 1],
                ["end", "C"],
                ["begin", "E", a + b + c, 1],
            ),
            one(
                "空出的页够用就不驱逐",
                "nothing is evicted while free pages suffice",
                6,
                s,
                ["begin", "A", a + b, 1],
                ["end", "A"],
                ["begin", "B", x + y + z, s + 1],
                ["end", "B"],
                ["begin", "C", a + b + x, 1],
            ),
            one(
                "最后一个 token 不占位置",
                "the last token needs no place",
                3,
                s,
                ["begin", "A", a + b, s + 1],
                ["end", "A"],
                ["begin", "B", a + b, s + 2],
            ),
            one(
                "命中之后接着要紧挨着的页",
                "behind a hit come the pages right behind it",
                9,
                s,
                ["begin", "A", a + b + x[:1], s + 1],
                ["begin", "B", y + z + c + t[:1], s],
                ["end", "A"],
                ["begin", "C", a + b + z[:1], 1],
                ["in_place", "C"],
            ),
            one(
                "不满一页的提示词",
                "prompts that fill no page",
                4,
                s,
                ["begin", "A", a[:1], 1],
                ["begin", "B", a[:1], s],
                ["end", "A"],
                ["decode", "B", t[0]],
                ["end", "B"],
            ),
        ],
        "random": [
            Case(
                "随机请求",
                "random requests",
                ops=drawn(rng, rng.randint(11, 16), rng.choice([1, 2, 4]), 30),
            )
            for _ in range(5)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 24, 2, 110))],
    }
