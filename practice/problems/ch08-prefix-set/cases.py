"""Texts that begin alike, are put in, looked up and forgotten."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list[Any]


def tokens(rng: random.Random, count: int) -> list[int]:
    """Different tokens, so that pages only agree where a case wants it."""
    return rng.sample(range(200_000), count)


def drawn(rng: random.Random, rounds: int, longest: int) -> list[Op]:
    """Few different tokens and texts that grow out of older ones: much is shared."""
    size = rng.randint(1, 4)
    pages = [[rng.choice([1, 2, 1 + 2**16]) for _ in range(size)] for _ in range(3)]
    ops: list[Op] = [["new", size]]
    texts: list[list[int]] = [[]]
    for _ in range(rounds):
        text = rng.choice(texts)
        text = text[: rng.randint(0, len(text))] if rng.random() < 0.4 else text
        text = text[: len(text) // size * size]
        for _ in range(rng.randint(0, 3)):
            text = text + rng.choice(pages)
        text = text[: longest * size] + [1] * rng.randrange(size)
        name = rng.choice(["insert", "insert", "match", "forget"])
        ops.append([name, text])
        if name == "insert":
            texts.append(text)
    return ops


def long_text(rng: random.Random) -> list[Op]:
    """More pages than Python lets functions call themselves; a second text leaves it late."""
    text = tokens(rng, 1100)
    at = rng.randint(1000, 1090)
    other = text[:at] + tokens(rng, 4)
    return [
        ["new", 1],
        ["insert", text],
        ["insert", other],
        ["match", text[: at + 5]],
        ["forget", text],
        ["match", text],
        ["forget", other],
    ]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, size: int, *ops: Op) -> Case:
        return Case(zh, en, ops=[["new", size], *ops])

    a, b, c, d, e, f, g, h = tokens(rng, 8)
    head, left, right = [a, b], [c, d], [e, f]
    long = [*head, *left, *right]
    return {
        "sample": [
            one(
                "共用第一页的两段文本",
                "two texts that share their first page",
                2,
                ["insert", [1, 2, 3, 4, 5]],
                ["insert", [1, 2, 7, 8, 9, 9]],
                ["match", [1, 2, 3, 4, 5, 6]],
                ["match", [1, 2, 3, 8]],
                ["match", [3, 4]],
                ["forget", [1, 2, 7, 8]],
                ["forget", [1, 2, 7, 8, 9, 9]],
                ["insert", [1, 2, 7, 8]],
            )
        ],
        "basic": [
            one("放进去再查", "put in and looked up", 2, ["insert", long], ["match", long]),
            one("再放一次", "put in twice", 2, ["insert", long], ["insert", long]),
            one(
                "末尾不满一页",
                "no whole page at the end",
                3,
                ["insert", [a, b, c, d]],
                ["match", [a, b, c, d]],
                ["insert", [a, b, c, d, e]],
            ),
            one(
                "在一页中间分开",
                "branches off inside a page",
                4,
                ["insert", [a, b, c, d, e, f, g, h]],
                ["match", [a, b, c, d, e, f, h, g]],
            ),
            one(
                "查找不留下痕迹",
                "a match leaves nothing behind",
                2,
                ["insert", head],
                ["match", long],
                ["insert", long],
                ["match", long],
            ),
            one(
                "忘掉一段，共用的一页留下",
                "one of two forgotten, the shared page stays",
                2,
                ["insert", head + left],
                ["insert", head + right],
                ["forget", head + left],
                ["match", head + left],
                ["match", head + right],
            ),
            one(
                "没有分岔，全部忘掉",
                "no branch: all of it goes",
                2,
                ["insert", long],
                ["forget", long],
                ["match", long],
                ["insert", long],
            ),
        ],
        "edge": [
            one(
                "空文本和不满一页的文本",
                "no token, and less than a page",
                3,
                ["insert", []],
                ["insert", [a, b]],
                ["match", [a, b]],
                ["forget", [a, b]],
                ["insert", [a, b, c]],
                ["match", []],
            ),
            one(
                "一页一个 token",
                "one token a page",
                1,
                ["insert", [a, b, c]],
                ["match", [a, b, d, c]],
                ["forget", [a, b, c]],
            ),
            one(
                "同样的一页接在不同的页后面",
                "the same page after different ones",
                2,
                ["insert", head + right],
                ["insert", left + right],
                ["match", right],
                ["forget", left + right],
                ["match", head + right],
            ),
            one(
                "同一页连着出现",
                "the same page again and again",
                2,
                ["insert", head * 3],
                ["match", head * 5],
                ["insert", head * 4],
                ["forget", head * 3],
                ["forget", head * 4],
            ),
            one(
                "中间隔着不认识的一页",
                "an unknown page in between",
                2,
                ["insert", head + right],
                ["match", head + left + right],
                ["forget", left + head],
                ["forget", head + left + right],
            ),
            one(
                "同样的 token，次序不同",
                "the same tokens in another order",
                2,
                ["insert", [a, b]],
                ["match", [b, a]],
                ["insert", [b, a]],
            ),
            one(
                "数字连起来写一样",
                "the same digits in a row",
                2,
                ["insert", [1, 23]],
                ["match", [12, 3]],
                ["insert", [12, 3]],
            ),
            one(
                "token 编号很大，低 16 位相同",
                "large token ids that agree in their last 16 bits",
                2,
                ["insert", [a % 2**16, b]],
                ["match", [a % 2**16 + 2**16, b]],
                ["insert", [a % 2**16, b % 2**16 + 2**17]],
                ["insert", [a % 2**16 + 2**17, b]],
                ["forget", [a % 2**16 + 2**17, b]],
            ),
            *[
                one(
                    f"一页里只有第 {at + 1} 个 token 不同",
                    f"pages that differ in token {at + 1} only",
                    4,
                    ["insert", [a, b, c, d, *long[:4]]],
                    ["match", [*[a, b, c, d][:at], h, *[a, b, c, d][at + 1 :], *long[:4]]],
                    ["insert", [*[a, b, c, d][:at], h, *[a, b, c, d][at + 1 :]]],
                )
                for at in range(4)
            ],
            one(
                "要忘的文本后面还有别的",
                "a text that goes on cannot be forgotten",
                2,
                ["insert", long],
                ["forget", head + left],
                ["match", long],
            ),
            one(
                "要忘的文本比记住的长",
                "forget more than is known",
                2,
                ["insert", head + left],
                ["forget", long],
                ["insert", head],
            ),
            one(
                "单独放过的短文本一起忘掉",
                "a shorter text that was put in by itself goes too",
                2,
                ["insert", head],
                ["insert", head + left],
                ["forget", head + left],
                ["match", head],
            ),
            one(
                "忘掉之后，另一段才能忘掉开头",
                "the last one takes the shared page along",
                2,
                ["insert", head + left],
                ["insert", head + right],
                ["forget", head + right],
                ["forget", head + left],
                ["forget", head],
            ),
            one(
                "两个集合互不相干",
                "two sets have nothing in common",
                2,
                ["insert", long],
                ["new", 2],
                ["match", long],
                ["insert", head],
            ),
        ],
        "random": [
            Case(
                "随机的操作，开头大多相同",
                "random operations, much is shared",
                ops=drawn(rng, 30, 8),
            )
            for _ in range(6)
        ],
        "large": [
            Case("一千一百页的文本", "a text of 1100 pages", ops=long_text(rng)),
            Case("很多操作", "many operations", ops=drawn(rng, 200, 16)),
        ],
    }
