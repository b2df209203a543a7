"""Days on which a row's scores, or a whole pass, goes wrong now and then."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(5, 15) for _ in range(count)]


def drawn(rng: random.Random, size: int, rows: int, count: int) -> list[Op]:
    """So many pages that nothing is ever evicted: what is kept is all that was ever sound."""
    ops: list[Op] = [["engine", 60 * count, size, rows, 40]]
    texts = [words(rng, 12) for _ in range(3)]
    names: list[str] = []
    for number in range(count):
        what = rng.random()
        if what < 0.4:
            ids = rng.choice(texts)[: rng.randint(0, 12)] + words(rng, rng.randint(1, 4))
            texts = [*texts[:3], *texts[3:][-3:], ids]
            name = f"r{number}"
            names.append(name)
            options: list[Any] = []
            if rng.random() < 0.2:
                options.append(["stop", [rng.randrange(5)]])
            if rng.random() < 0.15:
                options.append([rng.choice(["timeout", "queue_timeout"]), rng.randint(1, 6)])
            ops.append(["add", name, ids, rng.randint(1, 6), *options])
        elif what < 0.5 and names:
            ops.append(["abort", names.pop(rng.randrange(len(names)))])
        elif what < 0.62 and names:
            ops.append(["step", "nan", rng.sample(names, min(2, len(names)))])
        elif what < 0.68:
            ops.append(["step", rng.choice(["raises", "raises late"])])
        else:
            ops.append(["step"])
    return [*ops, *[["step"]] * 12]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, num_pages: int, size: int, rows: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["engine", num_pages, size, rows, 40], *ops])

    s = rng.choice([2, 3])
    a, b = words(rng, 2 * s), words(rng, 2 * s)
    x, y, z = ([1 + i, *words(rng, s)] for i in range(3))
    step: Op = ["step"]

    def nan(*names: str) -> Op:
        return ["step", "nan", list(names)]

    return {
        "sample": [
            one(
                "A 第一次前向就没有可用的 logits，B 的提示词和它一样",
                "A has no scores in its first pass, and B asks the same",
                8,
                2,
                4,
                ["add", "A", [11, 12, 13, 14, 9], 2],
                nan("A"),
                ["add", "B", [11, 12, 13, 14, 9], 2],
                step,
                step,
            )
        ],
        "basic": [
            one(
                "没有人出错",
                "nobody fails",
                20,
                s,
                4,
                ["add", "A", a + x, 2],
                ["add", "B", b + y, 4],
                step,
                step,
                ["add", "C", a + z, 1],
                step,
                step,
                step,
            ),
            one(
                "decode 时才出错",
                "the scores fail in a decode",
                20,
                s,
                4,
                ["add", "A", a + x, 5],
                step,
                step,
                nan("A"),
                ["add", "B", a + x, 3],
                step,
                step,
                step,
            ),
            one(
                "整个前向失败",
                "a whole pass fails",
                30,
                s,
                4,
                ["add", "A", a + x, 3],
                ["add", "B", b + y, 3],
                ["step", "raises"],
                ["add", "C", a + x, 2],
                step,
                step,
            ),
        ],
        "edge": [
            one(
                "一个出错，同一批里的邻居照常",
                "one fails, its neighbours in the batch go on",
                30,
                s,
                4,
                ["add", "A", a + x, 3],
                ["add", "B", b + y, 3],
                ["add", "C", y + b, 3],
                nan("B"),
                step,
                step,
            ),
            one(
                "邻居和出错的开头一样",
                "a neighbour begins like the one that fails",
                30,
                s,
                4,
                ["add", "A", a + x, 3],
                ["add", "B", a + y, 3],
                nan("A"),
                step,
                step,
            ),
            one(
                "出错的读着别人算好的开头",
                "the one that fails reads a beginning that another has computed",
                30,
                s,
                4,
                ["add", "A", a + x, 6],
                step,
                ["add", "B", a + y + b, 3],
                nan("B"),
                ["add", "C", a + y + b, 2],
                step,
                step,
                step,
                step,
            ),
            one(
                "不满一页的提示词出错",
                "a prompt that fills no page fails",
                9,
                3,
                2,
                ["add", "A", a[:2], 2],
                nan("A"),
                ["add", "B", a[:2], 2],
                step,
                step,
            ),
            one(
                "第一个 token 就是最后一个",
                "the first token is the last",
                20,
                s,
                4,
                ["add", "A", a + x, 1],
                ["add", "B", b + y, 1],
                nan("B"),
                ["add", "C", b + y, 1],
                ["add", "D", a + x, 1],
                step,
            ),
            one(
                "前向的失败到取 token 时才发现",
                "a pass's failure is noticed when its tokens are read",
                30,
                s,
                4,
                ["add", "A", a + x, 3],
                ["add", "B", b + y, 3],
                ["step", "raises late"],
                ["add", "C", b + y, 2],
                step,
                step,
            ),
            one(
                "decode 的前向失败，等着的不受牵连",
                "a decode fails; who waits is spared",
                30,
                s,
                2,
                ["add", "A", a + x, 5],
                ["add", "B", b + y, 5],
                ["add", "C", a + y, 2],
                step,
                step,
                ["step", "raises late"],
                step,
                step,
            ),
            one(
                "prefill 的前向失败，正在 decode 的不受牵连",
                "a prefill fails; who decodes is spared",
                30,
                s,
                3,
                ["add", "A", a + x, 4],
                step,
                ["add", "B", b + y, 2],
                ["step", "raises"],
                step,
                step,
                step,
            ),
            one(
                "取消和超时的，KV 留下",
                "the KV of who is aborted or late stays",
                40,
                s,
                3,
                ["add", "A", a + x, 6],
                ["add", "B", b + y, 6, ["timeout", 3]],
                ["add", "C", z + a, 6],
                ["add", "D", x + b, 6, ["queue_timeout", 2]],
                step,
                step,
                ["abort", "A"],
                ["abort", "Z"],
                step,
                step,
                ["add", "E", a + x, 1],
                ["add", "F", b + y, 1],
                step,
                step,
            ),
            one(
                "腾地方时，好的被驱逐，坏的不会留下",
                "room is made: sound KV is evicted, spoilt KV was never there",
                6,
                2,
                2,
                ["add", "A", [11, 12, 13, 14, 15], 2],
                step,
                step,
                ["add", "B", [5, 6, 7, 8, 9], 2],
                nan("B"),
                ["add", "C", [7, 6, 5, 9, 8, 7, 6, 5, 9], 2],
                step,
                step,
                ["add", "D", [11, 12, 13, 14, 15], 1],
                step,
            ),
            one(
                "一个接一个地出错，行和页都不少",
                "failure after failure, and no row or page is lost",
                7,
                2,
                2,
                *[op for name in "ABCDE" for op in (["add", name, a[:4] + x[:2], 4], nan(name))],
                ["add", "F", a[:4] + x[:2], 2],
                step,
                step,
            ),
            one(
                "停在停止符上",
                "a stop token ends it",
                20,
                s,
                4,
                ["add", "A", a + x, 6, ["stop", [(len(a + x) + 2) % 5]]],
                step,
                step,
                step,
                step,
            ),
        ],
        "random": [
            Case("随机请求", "random requests", ops=drawn(rng, rng.choice([1, 2, 4]), 3, 40))
            for _ in range(4)
        ],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 2, 6, 100))],
    }
