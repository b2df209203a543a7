"""Lays the batch out token by token, as (request, position), and reads everything off that."""

from typing import Any

import torch

from practice.judgelib.cases import Case


def expected(case: Case) -> dict[str, Any]:
    (lengths,) = case.args
    rows, visible = [], []
    for request, (cached, device) in enumerate(lengths):
        for position in range(device):
            visible.append(request)
            if position >= cached:
                rows.append((request, position))
    every = range(len(lengths))
    owners = [request for request, _ in rows]

    def before(found: list[int]) -> list[int]:
        return [sum(one < request for one in found) for request in range(len(lengths) + 1)]

    last = [max(row for row, owner in enumerate(owners) if owner == request) for request in every]
    alone = [owners.count(request) == 1 for request in every]
    return {
        "cu_seqlens_q": torch.tensor(before(owners), dtype=torch.int32),
        "cu_seqlens_k": torch.tensor(before(visible), dtype=torch.int32),
        "positions": torch.tensor([position for _, position in rows], dtype=torch.int64),
        "logits_rows": torch.tensor(last, dtype=torch.int64),
        "phase": "prefill" if False in alone else "decode",
    }
