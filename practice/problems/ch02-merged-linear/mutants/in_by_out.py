# Takes weights to be stored as inputs by outputs.
# caught by: basic
import torch


class MergedLinear:
    def parts(self):
        return {
            f"{member}.{name}": torch.Size([*weight.shape[1:], rows])
            for member, rows in self._members.items()
            for name, weight in self.weights().items()
        }
