"""Operations on a tree: cuts at every place, under locks, with children, and what goes first."""

import random

from practice.judgelib.cases import Case

Op = list


def run_of(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(10, 1000) for _ in range(count)]


def drawn(rng: random.Random, size: int, count: int) -> list[Op]:
    """Texts that begin like earlier ones, and everything a tree is asked for."""
    ops: list[Op] = [["tree", size]]
    texts, page, names, locked = [[1] * size], 0, 0, []
    found: list[str] = []

    def text() -> list[int]:
        old = rng.choice(texts)
        new = old[: rng.randint(0, len(old))]
        new = new + [rng.randrange(1, 4) for _ in range(rng.randint(0, 5 * size))]
        texts.append(new)
        return new

    for _ in range(count):
        what = rng.random()
        if what < 0.35:
            ids = text()
            ops.append(["insert", ids, page])
            page += len(ids) // size
        elif what < 0.5:
            ops.append(["match", text()])
        elif what < 0.65:
            names += 1
            ops.append(["find", f"h{names}", text()])
            found.append(f"h{names}")
        elif what < 0.78 and found:
            ops.append(["lock", rng.choice(found)])
            locked.append(ops[-1][1])
        elif what < 0.9 and locked:
            ops.append(["unlock", locked.pop(rng.randrange(len(locked)))])
        elif what >= 0.9:
            ops.append(["evict", rng.randint(1, 6)])
            found = sorted(set(locked))
    return ops


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, size: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["tree", size], *ops])

    size = rng.choice([2, 3])
    a, b, c, d = (run_of(rng, size) for _ in range(4))
    e, f, g, h = ([1 + i, *run_of(rng, size - 1)] for i in range(4))
    whole = a + b + c + d
    return {
        "sample": [
            one(
                "锁住整段之后，在中间分裂",
                "cut in the middle while all of it is locked",
                2,
                ["insert", [1, 2, 3, 4, 5, 6], 0],
                ["find", "long", [1, 2, 3, 4, 5, 6]],
                ["lock", "long"],
                ["match", [1, 2, 3, 9]],
                ["insert", [1, 2, 7, 8], 3],
            )
        ],
        "basic": [
            one(
                "match 在节点中间结束",
                "a match ends inside a node",
                size,
                ["insert", whole, 5],
                ["match", a + b],
                ["match", whole],
            ),
            one(
                "插入的文本在中间分岔",
                "an inserted text branches off in the middle",
                size,
                ["insert", whole, 0],
                ["insert", a + b + e + f, 4],
                ["match", a + b + e],
                ["match", whole],
            ),
            one(
                "match 恰好在节点末尾结束，不用分裂",
                "a match ends exactly with a node: no cut",
                size,
                ["insert", a + b, 0],
                ["insert", a + b + c + d, 2],
                ["match", a + b],
                ["match", a + b + c + d + e],
            ),
            one(
                "刚用过的最后才走",
                "what was used just now goes last",
                size,
                ["insert", a + b, 0],
                ["insert", e + f, 2],
                ["match", a + b],
                ["evict", 2],
                ["evict", 1],
            ),
        ],
        "edge": [
            one(
                "分裂上锁的节点，再要回能要的页",
                "a locked node is cut, then all that may go is evicted",
                size,
                ["insert", whole, 0],
                ["find", "x", a + b + c],
                ["lock", "x"],
                ["find", "y", a],
                ["lock", "y"],
                ["evict", 9],
                ["unlock", "x"],
                ["evict", 9],
            ),
            one(
                "同一个句柄锁两次，分裂，解锁两次",
                "one handle locked twice, a cut, two unlocks",
                size,
                ["insert", whole, 0],
                ["find", "x", whole],
                ["lock", "x"],
                ["lock", "x"],
                ["match", a + b],
                ["unlock", "x"],
                ["evict", 9],
                ["unlock", "x"],
                ["evict", 3],
            ),
            one(
                "先找到，分裂之后才上锁",
                "found first, locked after the cut",
                size,
                ["insert", whole, 0],
                ["find", "x", whole],
                ["match", a + b + c],
                ["match", a],
                ["lock", "x"],
                ["evict", 9],
                ["unlock", "x"],
            ),
            one(
                "分裂有子节点的节点",
                "a node with children is cut",
                size,
                ["insert", a + b + c, 0],
                ["insert", a + b + c + e, 10],
                ["insert", a + b + c + f + g, 20],
                ["find", "x", a + b + c + f],
                ["lock", "x"],
                ["match", a],
                ["match", a + b + c + e + h],
                ["evict", 9],
            ),
            one(
                "第一页就不同",
                "different from the first page on",
                size,
                ["insert", a + b, 0],
                ["insert", e + b, 2],
                ["match", f + b],
                ["match", a[:-1]],
            ),
            one(
                "在一页中间分岔，这一页不算",
                "a branch inside a page: that page does not count",
                size,
                ["insert", whole, 0],
                ["match", a + b[:-1]],
                ["insert", a + b[:-1] + [5] + e, 4],
                ["match", a + b + c[:1]],
            ),
            one(
                "同一段连续分裂三次，句柄各在其位",
                "the same run is cut three times, each handle in its place",
                size,
                ["insert", whole + e, 0],
                ["find", "e", whole + e],
                ["find", "d", whole],
                ["find", "b", a + b],
                ["find", "a", a],
                ["lock", "d"],
                ["lock", "a"],
                ["find", "c", a + b + c],
                ["lock", "c"],
                ["unlock", "d"],
                ["evict", 9],
            ),
            one(
                "用过的前半段留下，没用过的后半段先走",
                "the front that was used stays, the rest that was not goes first",
                size,
                ["insert", whole, 0],
                ["insert", e + f, 4],
                ["match", a + b],
                ["evict", 2],
                ["evict", 2],
            ),
            one(
                "用过一条路径，路上的每个节点都算用过",
                "a match uses every node on its way",
                size,
                ["insert", a + b, 0],
                ["insert", whole, 10],
                ["insert", e + f, 20],
                ["match", whole + g],
                ["evict", 2],
                ["evict", 1],
                ["evict", 2],
            ),
            one(
                "在深处分裂，上面的节点也算用过",
                "a cut far down uses the nodes above it too",
                size,
                ["insert", a, 0],
                ["insert", a + b, 10],
                ["insert", whole, 20],
                ["insert", e + f, 30],
                ["match", a + b + c + g],
                ["evict", 1],
                ["evict", 2],
                ["evict", 2],
            ),
            one(
                "空文本和空前缀",
                "an empty text and an empty prefix",
                size,
                ["match", []],
                ["find", "x", a],
                ["lock", "x"],
                ["insert", a + b, 0],
                ["match", a],
                ["unlock", "x"],
            ),
            one(
                "一页一个 token",
                "pages of one token",
                1,
                ["insert", [1, 2, 3, 4], 0],
                ["insert", [1, 2, 5], 4],
                ["match", [1, 3]],
                ["evict", 2],
            ),
        ],
        "random": [
            Case("随机操作", "random operations", ops=drawn(rng, rng.choice([1, 2, 4]), 25))
            for _ in range(6)
        ],
        "large": [Case("很长的日志", "a long log", ops=drawn(rng, 2, 80))],
    }
