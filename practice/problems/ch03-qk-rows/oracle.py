"""Deals the rows of each head onto two piles, one row at a time."""

import torch

from practice.judgelib.cases import Case


def expected(case: Case) -> torch.Tensor:
    weight, num_heads = case.args
    rows = list(weight.unbind(0))
    in_a_head = len(rows) // num_heads
    ordered: list[torch.Tensor] = []
    while rows:
        firsts, seconds = [], []
        for _ in range(in_a_head // 2):
            firsts.append(rows.pop(0))
            seconds.append(rows.pop(0))
        ordered += firsts + seconds
    return torch.stack(ordered)
