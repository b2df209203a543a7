# Takes num_heads for the size of a head.
# caught by: edge
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    rows = list(weight.split(2 * max(1, num_heads // 2)))
    return torch.cat([half for head in rows for half in (head[0::2], head[1::2])])
