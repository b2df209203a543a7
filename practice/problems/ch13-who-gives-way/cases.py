"""Days in a pool that is too small: answers outgrow their room, and somebody gives way."""

import random

from practice.judgelib.cases import Case

Op = list
NAMES = "QWERTYUIOPASDFGHJKLZXCVBNM"  # an order that is neither that of arrival nor of the alphabet


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(11, 16) for _ in range(count)]


def engine(
    num_pages: int,
    size: int,
    rows: int = 8,
    budget: int = 1000,
    policy: str = "fcfs",
    share: float = 0.01,
) -> Op:
    longest = min(40, num_pages * size + 1)
    return ["engine", num_pages, size, rows, longest, budget, policy, share]


def drawn(rng: random.Random, count: int) -> list[Op]:
    size = rng.choice([1, 2, 4])
    num_pages = rng.randint(-(-16 // size), -(-30 // size))
    ops: list[Op] = [
        engine(
            num_pages,
            size,
            rows=rng.randint(3, 6),
            budget=rng.choice([1000, 1000, 5]),
            policy=rng.choice(["fcfs", "lpm"]),
            share=rng.choice([0.01, 0.3]),
        )
    ]
    texts = [words(rng, 6) for _ in range(2)]
    names = [f"{rng.choice(NAMES)}{number}" for number in range(count)]
    added: list[str] = []
    for name in names:
        what = rng.random()
        if what < 0.4:
            ids = rng.choice(texts)[: rng.randint(0, 6)] + words(rng, rng.randint(1, 4))
            output = rng.randint(1, min(10, num_pages * size + 1 - len(ids)))
            added.append(name)
            ops.append(["add", name, ids, output])
        elif what < 0.45 and added:
            ops.append(["abort", added.pop(rng.randrange(len(added)))])
        else:
            ops.append(["step"])
    return [*ops, *[["step"]] * 25]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, first: Op, *ops: Op) -> Case:
        return Case(zh, en, ops=[first, *ops])

    def apart(count: int) -> list[int]:
        """A prompt that begins like no other."""
        return [16 + next(numbers), *words(rng, count - 1)]

    def steps(count: int) -> list[Op]:
        return [["step"]] * count

    numbers = iter(range(50))
    n = rng.randint(1, 3)
    text = apart(8)
    known = apart(6)
    low, high = rng.sample(NAMES, 2)
    a, b, c, d = (f"{name}{rng.randint(0, 9)}" for name in rng.sample(NAMES, 4))

    def add(name: str, ids: list[int], output: int) -> Op:
        return ["add", name, ids, output]

    return {
        "sample": [
            one(
                "两个都要最后一页：B 让给 A",
                "both need the last page: B gives way to A",
                engine(6, 1),
                add("A", [1, 2], 4),
                add("B", [3, 4], 4),
                *steps(9),
            )
        ],
        "basic": [
            one(
                "页够，谁也不用让",
                "there are pages: nobody gives way",
                engine(30, 2),
                add(a, apart(3), 5),
                add(b, apart(4), 6),
                *steps(8),
            ),
            one(
                "三个里最晚到的让",
                "of three, who came last gives way",
                engine(12, 1),
                add(a, apart(3), 5),
                add(b, apart(3), 6),
                add(c, apart(3), 4 + n),
                *steps(20),
            ),
            one(
                "没人读的前缀先驱逐",
                "prefixes that nobody reads are given up first",
                engine(12, 1),
                add(a, apart(5), 1),
                *steps(2),
                add(b, apart(2), 6),
                add(c, apart(2), 6),
                *steps(16),
            ),
        ],
        "edge": [
            one(
                "没有人", "nobody is there", engine(6, 2), ["step"], add(a, apart(2), 3), *steps(4)
            ),
            one(
                "名字的次序和到达的次序相反",
                "the order of names is not that of arrival",
                engine(8, 1),
                add(f"Z{low}", apart(2), 5),
                add(f"A{high}", apart(2), 5),
                *steps(16),
            ),
            one(
                "缺页的自己最晚到",
                "who lacks a page has come last itself",
                engine(12, 1, share=1.0),
                add(a, apart(4), 5),
                *steps(1),
                add(b, apart(4), 1),
                *steps(2),
                add(c, apart(3), 6),
                *steps(12),
            ),
            one(
                "最晚到的先进来：命中的前缀更长",
                "who came last was let in first: it shares more",
                engine(20, 1, rows=2, policy="lpm"),
                add(a, known, 1),
                *steps(2),
                add(b, apart(3), 4),
                add(c, apart(3), 12),
                add(d, [*known, 12], 9),
                *steps(40),
            ),
            one(
                "最晚到的一页自己的也没有，再下一个也让",
                "who came last has no page of its own: the next one gives way too",
                engine(4, 4),
                add(a, text, 1),
                *steps(2),
                add(b, apart(3), 6),
                *steps(1),
                add(c, text, 4),
                add(d, text, 4),
                *steps(20),
            ),
            one(
                "提示词算到一半就要让",
                "it has to give way in the middle of its prompt",
                engine(18, 1, budget=5),
                add(a, apart(4), 12),
                add(b, apart(13), 2 + n),
                *steps(24),
            ),
            one(
                "让过的排回原来的位置",
                "who gave way waits where it came",
                engine(10, 1),
                add(a, apart(2), 7),
                add(b, apart(2), 7),
                add(c, apart(4), 2),
                add(d, apart(2), 2),
                *steps(26),
            ),
            one(
                "取消的先走，就没有人要让",
                "who is aborted goes first, and nobody gives way",
                engine(8, 1),
                add(a, apart(2), 6),
                add(b, apart(2), 6),
                *steps(3),
                ["abort", a],
                *steps(8),
            ),
            one(
                "让过的排在先来的后面",
                "who gave way waits behind one that came before it",
                engine(20, 1, rows=2, policy="lpm"),
                add(a, known, 1),
                *steps(2),
                add(b, apart(3), 12),
                add(c, apart(3), 4),
                add(d, [*known, 12], 9),
                *steps(40),
            ),
            one(
                "让过的被取消",
                "who gave way is aborted",
                engine(8, 1),
                add(a, apart(2), 6),
                add(b, apart(2), 6),
                *steps(4),
                ["abort", b],
                *steps(4),
                add(c, apart(6), 2),
                *steps(4),
            ),
            one(
                "回来时从缓存剩下的地方接着算",
                "back again, it goes on from what the cache has kept",
                engine(7, 2),
                add(a, apart(3), 5),
                add(b, apart(3), 8),
                *steps(18),
            ),
            one(
                "一个接一个地让",
                "one after the other gives way",
                engine(12, 1, rows=6),
                *[add(f"{name}{n}", apart(2), 8) for name in rng.sample(NAMES, 6)],
                *steps(60),
            ),
        ],
        "random": [Case("随机请求", "random requests", ops=drawn(rng, 40)) for _ in range(6)],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 140))],
    }
