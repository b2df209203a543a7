"""Rounds of attention: whole prefills, chunks and decodes, with heads in groups."""

import random
from typing import Any

import torch

from practice.judgelib.cases import Case, randn

Op = list[Any]


def attend(rng: random.Random, new: int, past: int, heads: int, kv: int, dim: int) -> Op:
    """`new` tokens after `past` ones; the scores are large enough for mistakes to show."""
    q = randn(rng, new, heads, dim, scale=2.0)
    k = randn(rng, new + past, kv, dim, scale=2.0)
    return ["attend", q, k, randn(rng, new + past, kv, dim, scale=3.0)]


def rounds(rng: random.Random, lengths: list[int], heads: int, kv: int, dim: int) -> list[Op]:
    """One sequence whose keys and values grow from round to round."""
    total = sum(lengths)
    k = randn(rng, total, kv, dim, scale=2.0)
    v = randn(rng, total, kv, dim, scale=3.0)
    ops: list[Op] = []
    end = 0
    for new in lengths:
        end += new
        q = randn(rng, new, heads, dim, scale=2.0)
        ops.append(["attend", q, k[:end].clone(), v[:end].clone()])
    return ops


def sample() -> list[Op]:
    """With queries of 0 all visible keys count the same: a result is a plain mean."""
    k = torch.tensor([[[1.0]], [[-2.0]], [[3.0]], [[5.0]]])
    v = torch.tensor([[[10.0]], [[20.0]], [[60.0]], [[6.0]]])
    return [
        ["attend", torch.zeros(2, 1, 1), k, v],
        ["attend", torch.zeros(1, 1, 1), k[:3].clone(), v[:3].clone()],
    ]


def overflow(rng: random.Random) -> Op:
    """Scores around 95, whose exp is beyond float32."""
    direction = randn(rng, 1, 1, 16)
    direction = direction / direction.norm() * 19.5
    q = direction + randn(rng, 3, 2, 16, scale=0.05)
    k = direction + randn(rng, 7, 2, 16, scale=0.05)
    return ["attend", q, k, randn(rng, 7, 2, 16, scale=3.0)]


def far_apart(rng: random.Random) -> Op:
    """Scores around -120 for old keys and 120 for new ones, which the first tokens do not see.

    One maximum for several rows leaves a row of zeros behind; a mask of -100 weighs more than the
    visible keys.
    """
    q = randn(rng, 1, 1, 16)
    q = q / q.norm() * 22 + randn(rng, 4, 2, 16, scale=0.05)
    k = torch.cat([-q, -q[:2].flip(0), q[2:]])
    return ["attend", q, k, randn(rng, 8, 2, 16)]


def far_below(rng: random.Random) -> Op:
    """Scores around -15,000 for old keys and 15,000 for new ones, which the first do not see.

    Whole numbers and a head_dim of 16: every way to scale gives these scores without an error.
    """
    q = torch.tensor([[[rng.randint(-2, 2) for _ in range(16)] for _ in "ab"] for _ in range(4)])
    k = torch.tensor([[[rng.randint(-2, 2) for _ in range(16)] for _ in "ab"] for _ in range(8)])
    q[:, :, 0], k[:6, :, 0], k[6:, :, 0] = 250, -240, 240
    return ["attend", q.float(), k.float(), randn(rng, 8, 2, 16)]


def drawn(rng: random.Random, most: int) -> Op:
    kv = rng.randint(1, 3)
    new, past = rng.randint(2, most), rng.randint(1, most)
    return attend(rng, new, past, kv * rng.randint(1, 3), kv, rng.choice([2, 4, 8, 16]))


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: Op, plain: bool = False) -> Case:
        return Case(zh, en, ops=list(ops), plain=plain)

    return {
        "sample": [
            one(
                "q 全为 0，结果是可见的 v 的平均值",
                "queries of 0: the mean of the visible values",
                *sample(),
            )
        ],
        "basic": [
            one("整个提示词", "a whole prompt", attend(rng, 5, 0, 2, 2, 4)),
            one("decode：只有一个新 token", "a decode: one new token", attend(rng, 1, 6, 2, 2, 4)),
            one("一块提示词，前面已有缓存", "a chunk after a past", attend(rng, 3, 4, 2, 2, 4)),
            one("q 头比 k、v 头多", "grouped heads", attend(rng, 4, 3, 6, 2, 4)),
        ],
        "edge": [
            one("序列只有一个 token", "a sequence of one token", attend(rng, 1, 0, 2, 1, 4)),
            one("只有一个旧 token", "one past token", attend(rng, 5, 1, 2, 2, 4)),
            one("新的比旧的多", "more new tokens than past ones", attend(rng, 7, 3, 3, 3, 4)),
            one("新的和旧的一样多", "as many new as past", attend(rng, 4, 4, 4, 2, 8)),
            one(
                "两个新 token，很长的过去", "two new after a long past", attend(rng, 2, 40, 2, 1, 8)
            ),
            one("所有 q 头共用一个 k、v 头", "one key-value head", attend(rng, 3, 3, 4, 1, 8)),
            one("head_dim 是 1", "a head_dim of 1", attend(rng, 3, 5, 2, 2, 1)),
            one("头数等于 token 数", "as many heads as tokens", attend(rng, 4, 2, 4, 2, 4)),
            one("得分大到 exp 溢出", "scores so large that exp overflows", overflow(rng)),
            one("得分相差很大", "scores that are far apart", far_apart(rng)),
            one(
                "看得见的得分都在 -15000 左右",
                "all visible scores are around -15,000",
                far_below(rng),
            ),
            one(
                "一个序列的几轮：两块提示词，三次 decode",
                "rounds of one sequence: two chunks, three decodes",
                *rounds(rng, [4, 3, 1, 1, 1], 4, 2, 8),
            ),
        ],
        "random": [one("随机形状", "random shapes", drawn(rng, 12)) for _ in range(5)],
        "large": [one("长一些的序列", "a longer sequence", attend(rng, 24, 72, 4, 2, 32))],
    }
