"""The same with tensor operations: repeat, subtract, compare."""

import torch


def ragged_batch(lengths):
    cached, device = torch.tensor(lengths, dtype=torch.int64).unbind(1)
    extend = device - cached

    def bounds(counts):
        return torch.nn.functional.pad(counts.cumsum(0), (1, 0)).int()

    ends = extend.cumsum(0)
    start_of_row = (cached - (ends - extend)).repeat_interleave(extend)
    return {
        "phase": ("prefill", "decode")[int(torch.equal(extend, torch.ones_like(extend)))],
        "logits_rows": ends - 1,
        "positions": torch.arange(int(extend.sum())) + start_of_row,
        "cu_seqlens_k": bounds(device),
        "cu_seqlens_q": bounds(extend),
    }
