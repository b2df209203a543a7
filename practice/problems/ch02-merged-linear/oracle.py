"""Every member is a layer of its own here, with its rows as lists of numbers."""

from typing import Any

import torch

from practice.judgelib.cases import Case

Rows = list[list[float]]


def expected(case: Case) -> list[Any]:
    results: list[Any] = []
    weights: dict[str, Rows] = {}
    biases: dict[str, Rows] = {}
    dtype = torch.float32
    columns, has_bias = 0, False
    for name, *values in case.ops:
        if name == "new":
            columns, members, has_bias, kind = values
            dtype = getattr(torch, kind)
            weights = {member: [[0.0] * columns] * rows for member, rows in members.items()}
            biases = {member: [[0.0]] * rows for member, rows in members.items()}
            shapes = {f"{member}.weight": [rows, columns] for member, rows in members.items()}
            if has_bias:
                shapes |= {f"{member}.bias": [rows] for member, rows in members.items()}
            results.append(shapes)
        elif name == "load":
            member, kind = values[0].split(".")
            known = weights if kind == "weight" else biases
            shape = [len(weights[member]), columns] if kind == "weight" else [len(biases[member])]
            fits = list(values[1].shape) == shape
            if fits:
                numbers = values[1].to(dtype).tolist()
                known[member] = numbers if kind == "weight" else [[number] for number in numbers]
            stacked = [row for rows in weights.values() for row in rows]
            bias = [number for rows in biases.values() for row in rows for number in row]
            results.append(
                {
                    "raised": None if fits else "ValueError",
                    "weight": torch.tensor(stacked, dtype=dtype),
                    "bias": torch.tensor(bias, dtype=dtype) if has_bias else None,
                    "same_place": True,
                }
            )
        else:
            x = values[0].tolist()
            pieces = [
                torch.tensor(
                    [products(token, rows, biases[member]) for token in x], dtype=dtype
                ).reshape(len(x), len(rows))
                for member, rows in weights.items()
            ]
            results.append({"pieces": pieces, "products": 1, "one_result": True, "x_kept": True})
    return results


def products(token: list[float], rows: Rows, bias: Rows) -> list[float]:
    return [
        sum(a * b for a, b in zip(token, row, strict=True)) + start
        for row, (start,) in zip(rows, bias, strict=True)
    ]
