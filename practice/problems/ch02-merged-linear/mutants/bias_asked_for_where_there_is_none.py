# Lists a bias for every member, whether the layer has one or not.
# caught by: basic
import torch


class MergedLinear:
    def parts(self):
        found = {}
        for member, rows in self._members.items():
            found[f"{member}.weight"] = torch.Size([rows, self.weight.shape[1]])
            found[f"{member}.bias"] = torch.Size([rows])
        return found
