"""Requests that share beginnings of several nodes, and end in any order while pages run short."""

import random

from practice.judgelib.cases import Case

Op = list


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(10, 1000) for _ in range(count)]


def drawn(rng: random.Random, size: int, count: int) -> list[Op]:
    ops: list[Op] = [["tree", size]]
    texts, page, number = [[1] * size], 0, 0
    reading: list[str] = []
    for _ in range(count):
        what = rng.random()
        if what < 0.6:
            old = rng.choice(texts)
            ids = old[: rng.randint(0, len(old))]
            ids = ids + [rng.randrange(1, 4) for _ in range(rng.randint(0, 4 * size))]
            if what < 0.35:
                texts.append(ids)
                ops.append(["keep", ids, page])
                page += len(ids) // size
            else:
                number += 1
                reading.append(f"r{number}")
                ops.append(["begin", reading[-1], ids])
        elif what < 0.75 and reading:
            ops.append(["end", reading.pop(rng.randrange(len(reading)))])
        elif what < 0.88:
            ops.append(["evict", rng.randint(1, 5)])
        else:
            ops.append(["room"])
    return [*ops, *(["end", who] for who in reading), ["room"], ["evict", 3], ["evict", 999]]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, size: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["tree", size], *ops])

    s = rng.choice([1, 2, 3])
    a, b, c, d = (words(rng, s) for _ in range(4))
    # They differ from each other and from all others in their first token.
    u, v, w, x, y, z = ([1 + i, *words(rng, s - 1)] for i in range(6))
    return {
        "sample": [
            one(
                "两个请求共用两段开头，一个先结束",
                "two requests share a beginning of two nodes, and one ends first",
                1,
                ["keep", [1, 2, 3], 10],
                ["keep", [1, 2, 4], 20],
                ["keep", [1, 5], 30],
                ["begin", "A", [1, 2, 3, 9]],
                ["begin", "B", [1, 2, 4, 9]],
                ["end", "A"],
                ["room"],
                ["evict", 9],
                ["end", "B"],
                ["room"],
            )
        ],
        "basic": [
            one(
                "一个请求，开始到结束",
                "one request from begin to end",
                s,
                ["keep", a + b + u, 0],
                ["keep", a + b + v, 10],
                ["begin", "A", a + b + u],
                ["room"],
                ["evict", 9],
                ["end", "A"],
                ["room"],
                ["evict", 2],
            ),
            one(
                "同样的提示词，两个请求",
                "the same prompt, two requests",
                s,
                ["keep", a + b + c, 0],
                ["begin", "A", a + b + c],
                ["begin", "B", a + b + c],
                ["end", "B"],
                ["room"],
                ["evict", 9],
                ["end", "A"],
                ["room"],
                ["evict", 9],
            ),
            one(
                "最久没用的先走，从末尾走起",
                "the least recently used goes first, and from its end",
                s,
                ["keep", u + a + b, 0],
                ["keep", v + c + d, 10],
                ["begin", "A", u + a + b],
                ["end", "A"],
                ["evict", 1],
                ["evict", 3],
                ["evict", 1],
            ),
        ],
        "edge": [
            one(
                "三段开头，四个请求交错结束",
                "a beginning of three nodes, four requests that end crosswise",
                s,
                ["keep", a + u + v + w, 0],
                ["keep", a + u + v + x, 10],
                ["keep", a + u + y, 20],
                ["keep", a + z, 30],
                ["begin", "A", a + u + v + w],
                ["begin", "B", a + z],
                ["begin", "C", a + u + v + x],
                ["begin", "D", a + u],
                ["room"],
                ["end", "B"],
                ["end", "A"],
                ["room"],
                ["evict", 99],
                ["end", "D"],
                ["evict", 99],
                ["end", "C"],
                ["room"],
                ["evict", 99],
            ),
            one(
                "读着的节点被切开",
                "a node is cut while it is read",
                s,
                ["keep", a + b + c + d, 0],
                ["begin", "A", a + b + c + d],
                ["begin", "B", a + b],
                ["keep", a + b + c + u, 10],
                ["end", "B"],
                ["evict", 9],
                ["room"],
                ["end", "A"],
                ["room"],
                ["evict", 9],
            ),
            one(
                "读着的前缀又加长了",
                "a prefix grows while it is read",
                s,
                ["keep", a + b, 0],
                ["begin", "A", a + b],
                ["keep", a + b + c + d, 10],
                ["begin", "B", a + b + c],
                ["end", "A"],
                ["room"],
                ["evict", 9],
                ["end", "B"],
                ["evict", 9],
            ),
            one(
                "什么也没命中的请求",
                "a request that hits nothing",
                s,
                ["keep", u + a, 0],
                ["begin", "A", v + a],
                ["room"],
                ["evict", 1],
                ["end", "A"],
                ["evict", 1],
            ),
            one(
                "结束两次是错误，而且什么也不改变",
                "ending twice is an error and changes nothing",
                s,
                ["keep", a + u, 0],
                ["keep", a + v, 10],
                ["begin", "A", a + u],
                ["begin", "B", a],
                ["end", "A"],
                ["end", "A"],
                ["room"],
                ["evict", 9],
                ["end", "B"],
                ["room"],
            ),
            one(
                "刚结束的比没人读过的后走",
                "what was read until now goes after what nobody read",
                s,
                ["keep", u + a, 0],
                ["begin", "A", u + a],
                ["keep", v + b, 10],
                ["keep", w + c, 20],
                ["end", "A"],
                ["evict", 2],
                ["evict", 2],
                ["evict", 2],
            ),
        ],
        "random": [
            Case("随机操作", "random operations", ops=drawn(rng, rng.choice([1, 2, 4]), 30))
            for _ in range(6)
        ],
        "large": [Case("很长的日志", "a long log", ops=drawn(rng, 1, 140))],
    }
