"""Days in a pool that is too small: somebody gives way, comes back, and must say the same."""

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
                "B 让给 A，回来接着说",
                "B gives way to A, and goes on later",
                engine(6, 1),
                add("A", [1, 2], 4),
                add("B", [3, 4], 4),
                *steps(9),
            )
        ],
        "basic": [
            one(
                "谁也不用让",
                "nobody gives way",
                engine(30, 2),
                add(a, apart(3), 5),
                add(b, apart(4), 6),
                *steps(8),
            ),
            one(
                "让过的回来，行是别人用过的",
                "who gave way is back, in a row that another one had",
                engine(8, 1),
                add(a, apart(2), 5),
                add(b, apart(2), 5),
                *steps(14),
            ),
            one(
                "一起来的三个",
                "three that come together",
                engine(14, 2),
                add(a, apart(3), 8),
                add(b, apart(4), 7),
                add(c, apart(2), 9),
                *steps(40),
            ),
        ],
        "edge": [
            one(
                "没有人", "nobody is there", engine(6, 2), ["step"], add(a, apart(2), 3), *steps(4)
            ),
            one(
                "只要一个 token",
                "a single token is wanted",
                engine(6, 2),
                add(a, apart(n), 1),
                add(b, apart(4), 1),
                *steps(3),
            ),
            one(
                "放不下的不留痕迹",
                "who does not fit leaves no trace",
                engine(8, 1, share=1.0),
                add(a, apart(3), 3),
                add(b, apart(4), 2),
                add(c, apart(2), 1),
                *steps(7),
            ),
            one(
                "让过的按最坏情况等，谁也不越过它",
                "who gave way waits for its worst case, and nobody overtakes it",
                engine(10, 1),
                add(a, apart(2), 7),
                add(b, apart(2), 8),
                add(c, apart(1), 1),
                *steps(4),
                add(d, apart(1), 1),
                *steps(16),
            ),
            one(
                "让过的排回原来的位置",
                "who gave way waits where it came",
                engine(10, 1),
                add(f"Z{low}", apart(2), 7),
                add(f"Y{high}", apart(2), 7),
                add(f"X{low}", apart(4), 2),
                add(f"W{high}", apart(2), 2),
                *steps(26),
            ),
            one(
                "提示词算到一半时让过",
                "it gave way in the middle of its prompt",
                engine(18, 1, budget=5),
                add(a, apart(4), 12),
                add(b, apart(13), 2 + n),
                *steps(24),
            ),
            one(
                "回来时一段一段地算",
                "back again, it is computed piece by piece",
                engine(14, 1, budget=3),
                add(a, apart(2), 9),
                add(b, apart(3), 9),
                *steps(40),
            ),
            one(
                "提示词有一部分命中",
                "part of its prompt was cached",
                engine(16, 2),
                add(a, text, 1),
                *steps(2),
                add(b, apart(3), 9),
                add(c, [*text, 12], 9),
                add(d, [*text, 13], 5),
                *steps(40),
            ),
            one(
                "后来的先进来，前面的都被插了队",
                "a later one is let in first and overtakes those before it",
                engine(24, 1, rows=2, policy="lpm"),
                add(a, known, 1),
                *steps(2),
                add(b, apart(3), 4),
                add(c, apart(3), 5),
                add(d, [*known, 12], 3),
                add(f"{low}5", [*known, 13], 3),
                *steps(20),
            ),
            one(
                "最晚到的先进来，又要让",
                "who came last was let in first, and has to give way",
                engine(20, 1, rows=2, policy="lpm"),
                add(a, known, 1),
                *steps(2),
                add(b, apart(3), 4),
                add(c, apart(3), 12),
                add(d, [*known, 12], 9),
                *steps(40),
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
