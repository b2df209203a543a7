"""One pair at a time with Python's own complex numbers."""

import cmath

import torch

from practice.judgelib.cases import Case


def expected(case: Case) -> torch.Tensor:
    q, positions, theta = case.args
    half = q.shape[2] // 2
    frequencies = [theta ** (-2 * i / (2 * half)) for i in range(half)]
    rows = []
    for token, position in zip(q.tolist(), positions.tolist(), strict=True):
        turns = [cmath.exp(1j * position * frequency) for frequency in frequencies]
        heads = []
        for head in token:
            points = [complex(head[i], head[i + half]) * turns[i] for i in range(half)]
            heads.append([z.real for z in points] + [z.imag for z in points])
        rows.append(heads)
    return torch.tensor(rows, dtype=torch.float32)
