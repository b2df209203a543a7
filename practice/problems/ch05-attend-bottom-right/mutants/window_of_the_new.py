# Gives each token as many keys as the first new one has, a window that slides along.
# caught by: sample
import torch
import torch.nn.functional as F


def attend(q, k, v):
    past = len(k) - len(q)
    mask = torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).tril(past).triu()
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return out[0].transpose(0, 1)
