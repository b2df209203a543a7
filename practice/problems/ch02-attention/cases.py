"""Sequences of all lengths and groupings; the scores are large enough for mistakes to show."""

import random

import torch

from practice.judgelib.cases import Case, randn


def one(
    rng: random.Random, zh: str, en: str, n: int, heads: int, kv: int, dim: int, scale: float = 2.0
) -> Case:
    q = randn(rng, n, heads, dim, scale=scale)
    k = randn(rng, n, kv, dim, scale=scale)
    return Case(zh, en, args=(q, k, randn(rng, n, kv, dim, scale=3.0)))


def sample() -> Case:
    q = torch.tensor([[[1.0, 0.0, 2.0, 0.0]], [[0.0, 4.0, 0.0, 0.0]]])
    k = torch.tensor([[[1.0, 1.0, 0.0, 0.0]], [[0.0, 2.0, 0.0, 1.0]]])
    v = torch.tensor([[[10.0, 0.0, -4.0, 1.0]], [[0.0, 20.0, 8.0, 1.0]]])
    return Case("两个 token，一个头", "two tokens, one head", args=(q, k, v))


def overflow(rng: random.Random) -> Case:
    """Scores around 95, whose exp is beyond float32, with a few keys close to the best."""
    dim = 16
    direction = randn(rng, 1, 1, dim)
    direction = direction / direction.norm()
    q = direction * 19.5 + randn(rng, 6, 2, dim, scale=0.05)
    k = direction * 19.5 + randn(rng, 6, 2, dim, scale=0.05)
    v = randn(rng, 6, 2, dim)
    return Case("得分大到 exp 溢出", "scores so large that exp overflows", args=(q, k, v))


def far_apart(rng: random.Random) -> Case:
    """Scores around -120 for the first tokens' keys and 120 for those after them.

    One maximum for several rows leaves a row of zeros behind, and so does the maximum of keys that
    a row does not see; a mask of -100 weighs more than the visible keys.
    """
    q = randn(rng, 1, 1, 16)
    q = q / q.norm() * 22 + randn(rng, 6, 2, 16, scale=0.05)
    k = torch.cat([-q[:3].flip(0), q[3:]])
    return Case("得分相差很大", "scores that are far apart", args=(q, k, randn(rng, 6, 2, 16)))


def far_below(rng: random.Random) -> Case:
    """Scores around -15,000 for the first tokens' keys and 15,000 for those after them.

    Whole numbers and a head_dim of 16: every way to scale gives these scores without an error.
    """
    q, k = (
        torch.tensor([[[rng.randint(-2, 2) for _ in range(16)] for _ in "ab"] for _ in "abcdef"])
        for _ in "qk"
    )
    q[:, :, 0], k[:3, :, 0], k[3:, :, 0] = 250, -240, 240
    args = q.float(), k.float(), randn(rng, 6, 2, 16)
    return Case("看得见的得分都在 -15000 左右", "all visible scores are around -15,000", args=args)


def cases(rng: random.Random) -> dict[str, list[Case]]:
    return {
        "sample": [sample()],
        "basic": [
            one(rng, "一个头", "one head", 4, 1, 1, 8),
            one(rng, "每个 q 头有自己的 k、v 头", "a key-value head per query head", 5, 3, 3, 4),
            one(rng, "六个 q 头，两个 k、v 头", "six query heads, two key-value", 5, 6, 2, 8),
        ],
        "edge": [
            Case(
                "只有一个 token：结果就是 v",
                "one token: the result is v",
                args=(randn(rng, 1, 2, 8), randn(rng, 1, 2, 8), randn(rng, 1, 2, 8)),
                plain=True,
            ),
            one(rng, "所有 q 头共用一个 k、v 头", "all query heads share one", 6, 4, 1, 8),
            one(rng, "head_dim 是 1", "a head_dim of 1", 7, 2, 2, 1),
            one(rng, "头数等于 token 数", "as many heads as tokens", 4, 4, 2, 4),
            overflow(rng),
            far_apart(rng),
            far_below(rng),
        ],
        "random": [
            one(
                rng,
                "随机形状",
                "random shapes",
                rng.randint(3, 17),
                (kv := rng.randint(1, 3)) * rng.randint(1, 3),
                kv,
                rng.choice([2, 4, 8, 16]),
            )
            for _ in range(6)
        ],
        "large": [one(rng, "长一些的序列", "a longer sequence", 48, 4, 2, 32, 1.5)],
    }
