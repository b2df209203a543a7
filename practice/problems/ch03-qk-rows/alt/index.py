# Works out for every row of the result where it comes from.
import torch


def to_hub_rows(weight, num_heads):
    half = weight.shape[0] // num_heads // 2
    row = torch.arange(weight.shape[0])
    head, channel = row // (2 * half), row % (2 * half)
    place, pair = channel // half, channel % half
    return weight[head * 2 * half + 2 * pair + place]
