# Calls a batch decode as soon as one request computes one token.
# caught by: sample
from itertools import accumulate

import torch


def ragged_batch(lengths: list[tuple[int, int]]) -> dict[str, torch.Tensor | str]:
    """`lengths` is (cached_len, device_len) of each request, in the order of the batch."""
    extend = [device_len - cached_len for cached_len, device_len in lengths]
    bounds_q = list(accumulate(extend, initial=0))
    bounds_k = list(accumulate((device_len for _, device_len in lengths), initial=0))
    positions = [position for length in lengths for position in range(*length)]
    return {
        "cu_seqlens_q": torch.tensor(bounds_q, dtype=torch.int32),
        "cu_seqlens_k": torch.tensor(bounds_k, dtype=torch.int32),
        "positions": torch.tensor(positions),  # int64, as Python ints become
        "logits_rows": torch.tensor(bounds_q[1:]) - 1,
        "phase": "decode" if any(count == 1 for count in extend) else "prefill",
    }
