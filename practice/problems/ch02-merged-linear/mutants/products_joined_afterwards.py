# Multiplies once per member and joins the results: as many products as before the merging.
# caught by: basic
import torch
import torch.nn.functional as F


class MergedLinear:
    def forward_split(self, x):
        rows = list(self._members.values())
        biases = [None] * len(rows) if self.bias is None else self.bias.split(rows)
        weights = self.weight.split(rows)
        pieces = [F.linear(x, w, b) for w, b in zip(weights, biases, strict=True)]
        return torch.cat(pieces, dim=-1).split(rows, dim=-1)
