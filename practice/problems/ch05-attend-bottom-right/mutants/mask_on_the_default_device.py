# Makes the mask on the default device, which is not where the queries are.
# caught by: sample
import torch
import torch.nn.functional as F


def attend(q, k, v):
    num_new, num_all = len(q), len(k)
    mask = torch.ones(num_new, num_all, dtype=torch.bool).tril(num_all - num_new)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return out[0].transpose(0, 1)
