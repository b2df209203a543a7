# Trusts is_causal, which aligns with the first key: a decode sees that key only.
# caught by: basic
import torch.nn.functional as F


def attend(q, k, v):
    mask = None
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True, enable_gqa=True)
    return out[0].transpose(0, 1)
