# Puts queries of zeros in front, so that the mask becomes a square, and cuts them off again.
import torch
import torch.nn.functional as F


def attend(q, k, v):
    past = len(k) - len(q)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    q = torch.cat((q.new_zeros(past, *q.shape[1:]), q))
    q, k, v = (x.permute(1, 0, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(1, 0, 2)[past:]
