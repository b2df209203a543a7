"""Weights of all shapes; a head_dim of 4 is rare, since there the way back is the way there."""

import random

import torch

from practice.judgelib.cases import Case, randn


def one(
    rng: random.Random,
    zh: str,
    en: str,
    heads: int,
    dim: int,
    *columns: int,
    dtype: torch.dtype = torch.float32,
    plain: bool = False,
) -> Case:
    weight = randn(rng, heads * dim, *columns)
    if dtype == torch.bfloat16:  # also numbers beyond float16, at both ends
        weight[::2] *= 2.0**40
        weight[1::3] *= 2.0**-80
    weight = weight.to(dtype)
    return Case(zh, en, args=(weight, heads), plain=plain)


def sample() -> Case:
    rows = [
        [100 * head + 10 * pair + place, (head * 3 + pair) * 2 + place]
        for head in range(2)
        for pair in range(3)
        for place in range(2)
    ]
    weight = torch.tensor(rows, dtype=torch.float32)
    return Case("两个头，head_dim 是 6", "two heads with a head_dim of 6", args=(weight, 2))


def cases(rng: random.Random) -> dict[str, list[Case]]:
    heads, half = rng.randint(2, 5), rng.randint(3, 6)
    return {
        "sample": [sample()],
        "basic": [
            one(rng, "一个头", "one head", 1, 6, 3),
            one(rng, "三个头", "three heads", 3, 8, 4),
            one(rng, "行数等于列数", "as many rows as columns", 2, 6, 12),
        ],
        "edge": [
            one(
                rng,
                "head_dim 是 2：每个头只有一对，什么都不动",
                "a head_dim of 2: nothing moves",
                heads,
                2,
                5,
                plain=True,
            ),
            one(rng, "head_dim 是 4", "a head_dim of 4", heads, 4, 5),
            one(rng, "对数是奇数", "an odd number of pairs", heads, 10, 5),
            one(rng, "头数等于 head_dim", "as many heads as channels in a head", 6, 6, 5),
            one(rng, "只有一列", "a single column", heads, 2 * half, 1),
            one(rng, "偏置", "a bias", heads, 2 * half),
            one(rng, "一个头的偏置", "the bias of one head", 1, 2 * half),
            one(rng, "bfloat16", "bfloat16", heads, 2 * half, 4, dtype=torch.bfloat16),
            one(rng, "float16", "float16", heads, 2 * half, 4, dtype=torch.float16),
        ],
        "random": [
            one(
                rng,
                "随机形状",
                "random shapes",
                rng.randint(1, 8),
                2 * rng.randint(3, 12),
                rng.randint(1, 20),
            )
            for _ in range(6)
        ],
        "large": [
            one(rng, "SmolLM2 的 q，少一些列", "SmolLM2's q with fewer columns", 9, 64, 48),
            one(rng, "SmolLM2 的 k，少一些列", "SmolLM2's k with fewer columns", 3, 64, 48),
        ],
    }
