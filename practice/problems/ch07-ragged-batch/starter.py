"""What a forward pass must know of the requests that it computes together."""

import torch


def ragged_batch(lengths: list[tuple[int, int]]) -> dict[str, torch.Tensor | str]:
    """`lengths` is (cached_len, device_len) of each request, in the order of the batch."""
    raise NotImplementedError("ch07-ragged-batch: ragged_batch")
