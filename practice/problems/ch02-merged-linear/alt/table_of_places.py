# A table from every name to the view that it fills; load and parts only look into it.
import torch


class MergedLinear:
    def _places(self):
        return {
            f"{member}.{name}": block
            for name, whole in self.weights().items()
            for member, block in zip(
                self._members, whole.split(tuple(self._members.values())), strict=True
            )
        }

    def parts(self):
        return {name: place.size() for name, place in self._places().items()}

    def load(self, part, tensor):
        place = self._places()[part]
        if place.shape != tensor.shape:
            raise ValueError(part)
        place[...] = tensor

    def forward_split(self, x):
        ends = torch.tensor(list(self._members.values())).cumsum(0)[:-1].tolist()
        return torch.tensor_split(self.forward(x), ends, dim=1)
