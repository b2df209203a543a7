# Multiplies once per member: the values are right, the point of merging is lost.
# caught by: basic
import torch.nn.functional as F


class MergedLinear:
    def forward_split(self, x):
        rows = list(self._members.values())
        biases = [None] * len(rows) if self.bias is None else self.bias.split(rows)
        weights = self.weight.split(rows)
        return tuple(F.linear(x, w, b) for w, b in zip(weights, biases, strict=True))
