"""Batches of prefills, hits and decodes in every mixture."""

import random

from practice.judgelib.cases import Case

Lengths = list[tuple[int, int]]


def drawn(rng: random.Random, count: int, longest: int) -> Lengths:
    found: Lengths = []
    for _ in range(count):
        device = rng.randint(2, longest)
        cached = rng.choice([0, rng.randrange(device), device - 1])
        found.append((cached, device))
    return found


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *lengths: tuple[int, int]) -> Case:
        return Case(zh, en, args=(list(lengths),))

    n, m, k = rng.randint(3, 9), rng.randint(10, 19), rng.randint(20, 30)
    hit = rng.randint(1, m - 2)
    return {
        "sample": [
            one(
                "一个 prefill、一个命中前缀的 prefill、一个 decode",
                "a prefill, a prefill with a hit, a decode",
                (0, 3),
                (4, 6),
                (9, 10),
            )
        ],
        "basic": [
            one("一个请求，没有命中", "one request, no hit", (0, n)),
            one("一个请求，命中一段", "one request with a hit", (hit, m)),
            one("都是 decode", "decodes only", (m - 1, m), (n - 1, n), (k - 1, k)),
            one("两个 prefill，长短不同", "two prefills of different length", (0, m), (0, n)),
        ],
        "edge": [
            one("只有一个 token 的提示词", "a prompt of one token", (0, 1)),
            one("两个一个 token 的提示词", "two prompts of one token", (0, 1), (0, 1)),
            one(
                "decode 中混进一个 prefill",
                "a prefill among decodes",
                (m - 1, m),
                (0, n),
                (k, k + 1),
            ),
            one(
                "最后一个是 prefill",
                "the last one is a prefill",
                (m - 1, m),
                (k, k + 1),
                (n, n + 2),
            ),
            one("都命中，但还要算几个", "hits, and more to compute", (n, n + 2), (m, m + 5)),
            one("命中到只剩一个", "hits up to the last token", (n - 1, n), (m - 1, m)),
            one("每个请求恰好算两个", "each computes exactly two", (n, n + 2), (0, 2), (k, k + 2)),
            one("两个请求长度一样", "two requests of the same lengths", (hit, m), (hit, m)),
            one("一个 decode", "one decode", (k - 1, k)),
        ],
        "random": [
            Case("随机长度", "random lengths", args=(drawn(rng, rng.randint(2, 8), 40),))
            for _ in range(6)
        ],
        "large": [
            Case("六十个请求", "sixty requests", args=(drawn(rng, 60, 60),)),
            Case(
                "五十个 decode",
                "fifty decodes",
                args=([(size, size + 1) for size in rng.sample(range(1, 60), 50)],),
            ),
        ],
    }
