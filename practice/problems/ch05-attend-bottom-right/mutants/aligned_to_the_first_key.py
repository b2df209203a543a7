# Takes row i for position i, although a past lies before it.
# caught by: sample
import torch
import torch.nn.functional as F


def attend(q, k, v):
    num_new, num_all = len(q), len(k)
    mask = torch.ones(num_new, num_all, dtype=torch.bool, device=q.device).tril()
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=False, enable_gqa=True)
    return out[0].transpose(0, 1)
