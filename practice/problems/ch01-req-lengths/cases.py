"""Requests of all kinds, from admission to the last token, and some that must be refused."""

import random

from practice.judgelib.cases import Case

Op = list


def life(prompt: list[int], cached: int, output: int, tokens: list[int]) -> list[Op]:
    """Admission, prefill and one decode for every further token."""
    ops: list[Op] = [["admit", prompt, cached, output]]
    for token in tokens:
        ops += [["complete"], ["append", [token]]]
    return ops


def chunked(rng: random.Random) -> list[Op]:
    """A prompt computed in chunks, then decoded."""
    length = rng.randint(12, 40)
    cached = rng.randint(0, 5)
    ops: list[Op] = [["admit", tokens(rng, length), cached, 4]]
    for end in (*sorted(rng.sample(range(cached + 1, length), 3)), length):
        ops += [["chunk", end], ["complete"]]
    return [*ops, ["append", [7]], ["complete"], ["append", [8]]]


def tokens(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(50_000) for _ in range(count)]


def drawn(rng: random.Random, longest: int) -> list[Op]:
    """A request of random lengths whose tokens come late: several at once, or after two rounds."""
    length = rng.randint(1, longest)
    output = rng.randint(2, 12)
    ops: list[Op] = [["admit", tokens(rng, length), rng.randrange(length), output]]
    owed = 0
    for _ in range(rng.randint(1, output)):
        ops.append(["complete"])
        owed += 1
        if rng.random() < 0.6:
            ops.append(["append", tokens(rng, owed)])
            owed = 0
    return ops


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, ops: list[Op]) -> Case:
        return Case(zh, en, ops=ops)

    n = rng.randint(3, 9)
    hit = rng.randint(1, n - 1)
    return {
        "sample": [
            one(
                "提示词 6 个 token，命中 2 个，最多生成 3 个",
                "a prompt of six tokens, two of them hits, at most three to generate",
                life([0, 1, 2, 3, 4, 5], 2, 3, [100, 101, 102]),
            )
        ],
        "basic": [
            one("没有命中", "no prefix hit", life(tokens(rng, n), 0, 3, [5, 6])),
            one("命中一部分", "a prefix hit", life(tokens(rng, n), hit, 4, [5, 6, 7])),
            one("一直生成到上限", "up to the last token", life(tokens(rng, n), hit, 3, [5, 6, 7])),
        ],
        "edge": [
            one("提示词只有一个 token", "a prompt of one token", life([9], 0, 2, [1, 2])),
            one("只差最后一个没命中", "all but the last hit", life(tokens(rng, n), n - 1, 2, [3])),
            one("只生成一个", "one token to generate", life(tokens(rng, n), hit, 1, [3])),
            one("一个也不生成", "none to generate", life(tokens(rng, n), hit, 0, [])),
            one("全部命中，应当拒绝", "all hit: refused", [["admit", tokens(rng, n), n, 3]]),
            one("命中比提示词长", "more hits than tokens", [["admit", tokens(rng, n), n + 2, 3]]),
            one("负的 cached_len", "a negative cached_len", [["admit", tokens(rng, n), -1, 3]]),
            one("负的 output_len", "a negative output_len", [["admit", tokens(rng, n), 0, -2]]),
            one("空提示词", "an empty prompt", [["admit", [], 0, 3]]),
            one("提示词分块计算", "a prompt in chunks", chunked(rng)),
            one(
                "两个内容相同的请求",
                "two requests with the same content",
                [["admit", tokens(rng, n), hit, 3], ["twin"]],
            ),
            one(
                "一次追加几个 token，调用者的提示词不变",
                "several tokens at once, and the caller's prompt stays as it was",
                [
                    ["admit", tokens(rng, n), hit, 5],
                    ["complete"],
                    ["complete"],
                    ["append", tokens(rng, 2)],
                    ["append", tokens(rng, 3)],
                    ["prompt"],
                ],
            ),
        ],
        "random": [
            one("随机长度，token 晚到", "random lengths, tokens that come late", drawn(rng, 30))
            for _ in range(6)
        ],
        "large": [one("长提示词", "a long prompt", drawn(rng, 400)) for _ in range(2)],
    }
