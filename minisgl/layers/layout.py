"""How a weight lies in memory, and which way of multiplying by it is fastest on this machine.

A product with one row is bound by reading the weight, one with hundreds by arithmetic. In between,
where decoding happens, two layouts of the same numbers differ by a factor of two, and which one
wins depends on the CPU and on the shape. So it is measured, on the model's own weights.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

# `x` `[num_tokens, in_features]` and a bias or None to `[num_tokens, out_features]`.
Product = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]

ROW_COUNTS = (1, 4, 16, 64, 256)  # what is measured; between two, the larger one holds
_SAMPLES, _SAMPLE_BYTES = 4, 2**23  # several in turn, as one alone would stay in the cache
_ROUNDS, _MAX_SECONDS = 5, 0.5  # on a busy machine there are fewer rounds, but at least one
_TOLERANCE = 1.05  # what the second layout may lose where the plain weight can go then


def plain(weight: torch.Tensor) -> Product:
    """As in checkpoints: `[out_features, in_features]`."""
    return lambda x, bias: F.linear(x, weight, bias)


def transposed(weight: torch.Tensor) -> Product:
    """`[in_features, out_features]`."""
    turned = weight.t().contiguous()
    return lambda x, bias: x @ turned if bias is None else torch.addmm(bias, x, turned)


def onednn(weight: torch.Tensor) -> Product:
    """In the blocks that oneDNN chooses for this CPU."""
    ops = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight)
    return lambda x, bias: ops._linear_pointwise(x, packed, bias, "none", [], "")


def mkl(weight: torch.Tensor) -> Product:
    """Packed by MKL, which keeps the plain weight beside it.

    The operator silently computes the plain way unless the number of rows that it is told is the
    number that it gets. Which number the weight was packed for does not matter.
    """
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, len(x))


LAYOUTS = {"plain": plain, "transposed": transposed, "oneDNN": onednn, "MKL": mkl}


@dataclass(frozen=True)
class Choice:
    """The layout beside the plain one, and whether it is the faster at each of `ROW_COUNTS`."""

    second: str
    uses_second: tuple[bool, ...]  # the last holds for more rows, too

    def __post_init__(self) -> None:
        """Raise ValueError for what `choose` cannot have said."""
        flags = [type(flag) for flag in self.uses_second]
        if self.second not in LAYOUTS or flags != [bool] * len(ROW_COUNTS):
            raise ValueError(
                f"a choice must name a layout and {len(ROW_COUNTS)} bools, got {self!r}"
            )

    def __str__(self) -> str:
        if all(self.uses_second):
            return self.second
        counts = [str(n) for n, use in zip(ROW_COUNTS, self.uses_second, strict=True) if use]
        return f"{self.second} at {', '.join(counts)} rows, else plain" if counts else "plain"

    @property
    def needs_plain(self) -> bool:
        """Whether any number of rows is multiplied by the plain weight."""
        return not all(self.uses_second)

    def apply(self, weight: torch.Tensor) -> Product:
        """The product with `weight`, which for each number of rows takes the faster layout."""
        if not any(self.uses_second):
            return plain(weight)
        second = LAYOUTS[self.second](weight)
        if not self.needs_plain:
            return second
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            return (second if self.uses_second[place] else first)(x, bias)

        return product


def choose(weights: Sequence[torch.Tensor]) -> Choice:
    """The fastest choice for `weights`, all of one shape and dtype, measured on some of them."""
    times = measure(weights)
    ratios = {
        name: [own / first for own, first in zip(figures, times["plain"], strict=True)]
        for name, figures in times.items()
    }
    # Every number of rows counts the same: in seconds the largest would decide alone.
    second = min(ratios, key=lambda name: sum(min(1.0, ratio) for ratio in ratios[name]))
    if second != "plain" and max(ratios[second]) <= _TOLERANCE:
        return Choice(second, (True,) * len(ROW_COUNTS))
    return Choice(second, tuple(ratio < 1 for ratio in ratios[second]))


def measure(weights: Sequence[torch.Tensor]) -> dict[str, list[float]]:
    """Seconds of a product by layout, at each of `ROW_COUNTS`: the least of a few rounds.

    Only layouts that this build of torch has for this dtype, and that compute what is right.
    """
    samples, x = _samples(weights), _input(weights[0])
    products = {name: [make(one) for one in samples] for name, make in _right(samples[0]).items()}
    times = {name: [float("inf")] * len(ROW_COUNTS) for name in products}
    start = time.perf_counter()
    for number in range(_ROUNDS):
        for index, count in enumerate(ROW_COUNTS):
            if number and time.perf_counter() - start > _MAX_SECONDS:
                return times
            for name, same in products.items():  # side by side, so that a busy moment hits all
                times[name][index] = min(times[name][index], _time(same, x[:count]))
    return times


def _samples(weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Whole weights, or of a large one a few pieces of rows."""
    num_rows = max(1, _SAMPLE_BYTES // weights[0][0].nbytes)
    return [part for weight in weights for part in weight.split(num_rows)][:_SAMPLES]


def _input(weight: torch.Tensor) -> torch.Tensor:
    """As many rows as are measured; torch's own random numbers stay as they are."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(max(ROW_COUNTS), weight.shape[1], generator=generator).to(weight.dtype)


def _right(weight: torch.Tensor) -> dict[str, Callable[[torch.Tensor], Product]]:
    """The layouts whose products are those of `F.linear`, up to rounding."""
    x = _input(weight)
    expected = F.linear(x, weight)
    bound = torch.finfo(weight.dtype).eps ** 0.5 * expected.abs().max()
    found: dict[str, Callable[[torch.Tensor], Product]] = {"plain": plain}
    for name, make in LAYOUTS.items():
        try:
            product = make(weight)
            errors = [(product(x[:n], None) - expected[:n]).abs().max() for n in ROW_COUNTS]
        except (RuntimeError, AttributeError):  # no such operator, or not for this dtype
            continue
        if all(error <= bound for error in errors):  # NaN is not
            found[name] = make
    return found


def _time(products: Sequence[Product], x: torch.Tensor) -> float:
    """Seconds per product; of many rows one will do: their arithmetic outlasts the reading."""
    if len(x) >= 64:
        products = products[:1]
    start = time.perf_counter()
    for product in products:
        product(x, None)
    return (time.perf_counter() - start) / len(products)
