# Works out where every member starts once, in the constructor; no split anywhere.
import itertools

import torch


class MergedLinear:
    def __init__(self, in_features, members, bias):
        ends = list(itertools.accumulate(members.values()))
        super().__init__(in_features, ends[-1], bias)
        starts = [0, *ends[:-1]]
        self._rows = {name: slice(*ends) for name, *ends in zip(members, starts, ends, strict=True)}

    def parts(self):
        columns = self.weight.shape[1]
        found = {}
        for member, rows in self._rows.items():
            count = rows.stop - rows.start
            found[f"{member}.weight"] = torch.Size((count, columns))
            if self.bias is not None:
                found[f"{member}.bias"] = torch.Size((count,))
        return found

    def load(self, part, tensor):
        wanted = self.parts()[part]
        if tuple(tensor.shape) != tuple(wanted):
            raise ValueError(f"{part}: {tuple(tensor.shape)} is not {tuple(wanted)}")
        member, _, kind = part.partition(".")
        getattr(self, kind)[self._rows[member]] = tensor

    def forward_split(self, x):
        result = x @ self.weight.t()
        if self.bias is not None:
            result = result + self.bias
        return tuple(result[:, rows] for rows in self._rows.values())
