"""Days on a slow device: ends that are known late, aborts and failures with passes in flight."""

import random
from itertools import count as numbers_from

from practice.judgelib.cases import Case

Op = list
NAMES = "QWERTYUIOPASDFGHJKLZXCVBNM"
ENDS = {0, 1}


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(11, 16) for _ in range(count)]


def length_of(ids: list[int]) -> int:
    """After how many tokens the answer ends by itself; 10 stands for more than are asked for."""
    text = 0
    for token in ids:
        text = (31 * text + token + 7) % 65521
    for number in range(1, 10):
        token = text // 7 % 11
        if token in ENDS:
            return number
        text = (31 * text + token + 7) % 65521
    return 10


def engine(
    num_pages: int = 60,
    size: int = 2,
    rows: int = 4,
    budget: int = 1000,
    share: float = 1.0,
    overlap: bool = True,
) -> Op:
    longest = min(40, num_pages * size + 1)
    return ["engine", num_pages, size, rows, longest, budget, share, overlap]


def drawn(rng: random.Random, count: int) -> list[Op]:
    size = rng.choice([1, 2, 4])
    num_pages = rng.randint(-(-16 // size), -(-40 // size))
    ops: list[Op] = [
        engine(
            num_pages,
            size,
            rows=rng.randint(2, 6),
            budget=rng.choice([1000, 1000, 5]),
            share=rng.choice([0.01, 0.3, 1.0]),
            overlap=rng.random() < 0.8,
        )
    ]
    texts = [words(rng, 6) for _ in range(2)]
    added: list[str] = []
    for number in range(count):
        what = rng.random()
        if what < 0.35:
            name = f"{rng.choice(NAMES)}{number}"
            ids = rng.choice(texts)[: rng.randint(0, 6)] + words(rng, rng.randint(1, 4))
            output = rng.randint(1, min(12, num_pages * size + 1 - len(ids)))
            added.append(name)
            ops.append(["add", name, ids, output])
        elif what < 0.42 and added:
            ops.append(["abort", rng.choice(added[-4:])])
        elif what < 0.45:
            ops += [["fail"], ["step"]]
        else:
            ops.append(["step"])
    return [*ops, *[["step"]] * 20]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, first: Op, *ops: Op) -> Case:
        return Case(zh, en, ops=[first, *ops])

    def apart(count: int, ends_after: int = 10) -> list[int]:
        """A prompt that begins like no other, whose answer has that many tokens of its own."""
        while True:
            ids = [16 + next(numbers), *words(rng, count - 1)]
            if length_of(ids) == ends_after:
                return ids

    def steps(count: int) -> list[Op]:
        return [["step"]] * count

    def add(name: str, ids: list[int], output: int) -> Op:
        return ["add", name, ids, output]

    numbers = numbers_from()
    n = rng.randint(2, 4)
    a, b, c = (f"{name}{rng.randint(0, 9)}" for name in rng.sample(NAMES, 3))
    return {
        "sample": [
            one(
                "A 的第二个 token 是结束 token，B 到 max_tokens 为止",
                "A's second token is an end token, B ends by max_tokens",
                engine(12, 2, rows=2),
                add("A", [2, 3, 5], 6),
                add("B", [2, 2, 2, 4], 3),
                *steps(4),
            )
        ],
        "basic": [
            one(
                "轮流，不重叠",
                "in turn, without overlap",
                engine(overlap=False),
                add(a, apart(4, ends_after=n), 9),
                add(b, apart(5), n),
                *steps(7),
            ),
            one(
                "重叠，按长度结束",
                "overlapped, ended by length",
                engine(),
                add(a, apart(4), 2),
                add(b, apart(5), 1 + n),
                add(c, apart(5), 1),
                *steps(8),
            ),
            one(
                "重叠，由结束 token 结束",
                "overlapped, ended by an end token",
                engine(),
                add(a, apart(6, ends_after=1), 8),
                add(b, apart(6, ends_after=n), 8),
                add(c, apart(5), 6),
                *steps(9),
            ),
        ],
        "edge": [
            one("没有人", "nobody is there", engine(), *steps(2), add(a, apart(3), 2), *steps(5)),
            one(
                "结束 token 正好也是最后一个",
                "the end token is the last one anyway",
                engine(),
                add(a, apart(6, ends_after=n), n),
                add(b, apart(4), 7),
                *steps(9),
            ),
            one(
                "行要等途中的前向收完才给下一个",
                "the next one waits for the row until the pass in flight is taken over",
                engine(rows=1),
                add(a, apart(6, ends_after=n), 9),
                add(b, apart(6, ends_after=2), 9),
                add(c, apart(4), 2),
                *steps(16),
            ),
            one(
                "页要等途中的前向收完才给下一个",
                "the next one waits for the pages until the pass in flight is taken over",
                engine(11, 1, rows=4),
                add(a, apart(6, ends_after=2), 5),
                add(b, apart(7), 4),
                *steps(9),
            ),
            one(
                "途中被取消",
                "aborted while in flight",
                engine(),
                add(a, apart(4), 9),
                add(b, apart(4), 6),
                *steps(n),
                ["abort", a],
                *steps(7),
            ),
            one(
                "轮流时被取消：没有一趟在途中",
                "aborted without overlap: no pass is in flight",
                engine(overlap=False),
                add(a, apart(4), 9),
                add(b, apart(4), 6),
                *steps(n),
                ["abort", a],
                *steps(2),
                add(c, apart(4), 2),
                *steps(5),
            ),
            one(
                "取消时，途中的 token 是结束 token",
                "aborted while its end token is on its way",
                engine(),
                add(a, apart(6, ends_after=2), 9),
                add(b, apart(4), 6),
                *steps(2),
                ["abort", a],
                *steps(6),
            ),
            one(
                "还在排队就被取消，取消两次，取消不认识的",
                "aborted in the queue, aborted twice, and one that nobody knows",
                engine(rows=1),
                add(a, apart(4), 4),
                add(b, apart(4), 4),
                *steps(2),
                ["abort", b],
                ["abort", b],
                ["abort", "nobody"],
                *steps(5),
            ),
            one(
                "已经结束的又被取消，它的行还在途中",
                "aborted after its end, with its row in flight",
                engine(),
                add(a, apart(6, ends_after=2), 9),
                add(b, apart(4), 6),
                *steps(3),
                ["abort", a],
                *steps(6),
            ),
            one(
                "一次前向失败，后一次已经发出",
                "a pass fails, and the next one has been launched",
                engine(),
                add(a, apart(4), 9),
                *steps(2),
                add(b, apart(4), 5),
                ["fail"],
                *steps(9),
            ),
            one(
                "失败的那次里有刚被取消的：它的 KV 不能给别人",
                "one that was just aborted is in the pass that fails: its KV is for nobody",
                engine(),
                add(a, apart(6), 9),
                add(b, apart(4), 9),
                *steps(n),
                ["abort", a],
                ["fail"],
                *steps(3),
                add(c, apart(4), 2),
                *steps(4),
            ),
            one(
                "没有重叠时失败",
                "a failure without overlap",
                engine(overlap=False),
                add(a, apart(4), 9),
                *steps(2),
                add(b, apart(4), 3),
                ["fail"],
                *steps(2),
                add(c, apart(4), 2),
                *steps(3),
            ),
            one(
                "失败的那次里有已经结束的",
                "of those in the pass that fails, one has ended before",
                engine(),
                add(a, apart(6, ends_after=1), 9),
                add(b, apart(4), 9),
                *steps(2),
                ["fail"],
                *steps(3),
                add(c, apart(4), 2),
                *steps(4),
            ),
            one(
                "提示词分块，失败时正算到一半",
                "a prompt in chunks, and a failure in the middle of it",
                engine(budget=4),
                add(a, apart(10), 3),
                add(b, apart(4), 3),
                *steps(2),
                ["fail"],
                *steps(8),
            ),
            one(
                "只剩一个 token 的分块不是 decode",
                "a chunk of one token is no decode",
                engine(budget=1),
                add(a, apart(5), 3),
                *steps(10),
            ),
            one(
                "分块的提示词在途中被取消",
                "a prompt in chunks is aborted while in flight",
                engine(budget=3),
                add(a, apart(9), 4),
                *steps(2),
                ["abort", a],
                add(b, apart(3), 2),
                *steps(6),
            ),
            one(
                "页不够：先收完途中的，还不够才让",
                "pages are short: what is in flight is taken over first",
                engine(12, 1, share=0.01),
                add(a, apart(3), 8),
                add(b, apart(3), 8),
                *steps(26),
            ),
            one(
                "分块的没轮到就被取消：谁也没在算它",
                "aborted in the middle of its prompt, while nothing is computed for it",
                engine(budget=2),
                add(a, apart(2), 9),
                *steps(2),
                add(b, apart(7), 3),
                *steps(3),
                ["abort", b],
                *steps(8),
            ),
        ],
        "random": [Case("随机请求", "random requests", ops=drawn(rng, 40)) for _ in range(6)],
        "large": [Case("很长的一天", "a long day", ops=drawn(rng, 140))],
    }
