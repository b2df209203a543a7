# One product for each token, where one product does for all.
# caught by: basic
import torch


class MergedLinear:
    def forward_split(self, x):
        rows = list(self._members.values())
        result = x.new_empty(len(x), sum(rows))
        for token, out in zip(x, result, strict=True):
            torch.mv(self.weight, token, out=out)
        if self.bias is not None:
            result += self.bias
        return result.split(rows, dim=-1)
