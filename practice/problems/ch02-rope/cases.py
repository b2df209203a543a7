"""Positions in any order; every coordinate is far from 0, so that no wrong turn goes unseen."""

import random

import torch

from practice.judgelib.cases import Case


def queries(rng: random.Random, *shape: int) -> torch.Tensor:
    """Numbers of either sign between 0.5 and 2."""
    generator = torch.Generator().manual_seed(rng.getrandbits(62))
    sizes = torch.rand(shape, generator=generator) * 1.5 + 0.5
    return torch.where(torch.rand(shape, generator=generator) < 0.5, -sizes, sizes)


def one(
    rng: random.Random,
    zh: str,
    en: str,
    positions: list[int],
    heads: int,
    dim: int,
    theta: float = 10000.0,
    dtype: torch.dtype = torch.int64,
    plain: bool = False,
) -> Case:
    q = queries(rng, len(positions), heads, dim)
    return Case(zh, en, args=(q, torch.tensor(positions, dtype=dtype), theta), plain=plain)


def sample() -> Case:
    q = torch.tensor([[[1.0, 0.0, 0.0, 2.0]], [[1.0, 0.0, 0.0, 2.0]], [[3.0, 0.0, 4.0, 1.0]]])
    args = (q, torch.tensor([0, 1, 10]), 100.0)
    return Case("三个 token，位置 0、1、10", "three tokens at positions 0, 1 and 10", args=args)


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def shuffled(count: int, first: int, last: int) -> list[int]:
        return rng.sample(range(first, last), count)

    start = rng.randint(20, 60)
    return {
        "sample": [sample()],
        "basic": [
            one(rng, "从位置 0 开始", "from position 0 on", [0, 1, 2, 3, 4], 2, 8),
            one(
                rng,
                "接着前缀缓存往下算",
                "going on behind a prefix hit",
                list(range(start, start + 4)),
                3,
                8,
            ),
            one(
                rng,
                "两个请求拼成一批",
                "two requests in one batch",
                [*range(4), *range(start, start + 3)],
                1,
                6,
            ),
        ],
        "edge": [
            one(rng, "位置全是 0，结果就是 q", "all at position 0", [0, 0, 0], 2, 8, plain=True),
            one(rng, "head_dim 是 2", "a head_dim of 2", shuffled(5, 1, 40), 2, 2),
            one(rng, "只有一个 token", "a single token", [rng.randint(5, 40)], 3, 8),
            one(rng, "头数等于 token 数", "as many heads as tokens", shuffled(4, 1, 40), 4, 6),
            one(
                rng,
                "token 数、头数、对数相同",
                "as many tokens, heads and pairs",
                shuffled(4, 1, 40),
                4,
                8,
            ),
            one(rng, "位置重复", "repeated positions", [7, start, 7, start, 7], 2, 8),
            one(
                rng,
                "decode：各请求的位置互不相干",
                "a decode, every request somewhere else",
                sorted(shuffled(6, 1, 300), reverse=True),
                2,
                16,
                dtype=torch.int32,
            ),
            one(
                rng,
                "bfloat16 表示不了的位置",
                "positions that bfloat16 does not have",
                [2 * place + 1 for place in shuffled(6, 150, 500)],
                2,
                16,
            ),
            one(
                rng,
                "float16 表示不了的位置",
                "positions that float16 does not have",
                [2 * place + 1 for place in shuffled(6, 1100, 2000)],
                2,
                16,
            ),
            one(rng, "很小的 theta", "a small theta", shuffled(5, 1, 40), 2, 8, theta=50.0),
            one(rng, "很大的 theta", "a large theta", shuffled(5, 1, 40), 2, 8, theta=500000.0),
        ],
        "random": [
            one(
                rng,
                "随机形状和位置",
                "random shapes and positions",
                [rng.randint(1, 900) for _ in range(rng.randint(2, 12))],
                rng.randint(1, 5),
                2 * rng.randint(2, 12),
                rng.choice([100.0, 1000.0, 10000.0]),
                rng.choice([torch.int32, torch.int64]),
            )
            for _ in range(6)
        ],
        "large": [
            one(
                rng,
                "SmolLM2 的形状：9 个头，head_dim 64，theta 100000",
                "the shape of SmolLM2: nine heads, a head_dim of 64, theta 100000",
                shuffled(24, 1, 4096),
                9,
                64,
                100000.0,
            )
        ],
    }
