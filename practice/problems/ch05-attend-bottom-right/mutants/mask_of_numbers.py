# Makes the mask of ones and zeros, which are added to the scores.
# caught by: sample
import torch
import torch.nn.functional as F


def attend(q, k, v):
    num_new, num_all = len(q), len(k)
    mask = torch.ones(num_new, num_all, device=q.device).tril(num_all - num_new)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=False, enable_gqa=True)
    return out[0].transpose(0, 1)
