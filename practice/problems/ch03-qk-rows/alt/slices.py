# Every other row of each head, then the rest.
import torch


def to_hub_rows(weight, num_heads):
    heads = weight.chunk(num_heads)
    return torch.cat([half for head in heads for half in (head[0::2], head[1::2])])
