# Writes softmax as exp over its sum, which overflows.
# caught by: edge
import torch


def attend(q, k, v):
    group = q.shape[1] // k.shape[1]
    q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.exp() * torch.ones_like(scores).tril(k.shape[1] - q.shape[1])
    return (weights @ v / weights.sum(-1, keepdim=True)).transpose(0, 1)
