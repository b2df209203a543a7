# Looks at the keys of this round only: the cache is written and never read.
# caught by: sample
import torch.nn.functional as F


def attend(q, k, v):
    num_new = len(q)
    k, v = k[-num_new:], v[-num_new:]
    mask = None
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True, enable_gqa=True)
    return out[0].transpose(0, 1)
