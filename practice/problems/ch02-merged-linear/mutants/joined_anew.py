# Joins a new tensor on every load: twice the memory, and the old place is lost.
# caught by: basic
import torch


class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        member, name = part.split(".")
        whole = self.weights()[name]
        blocks = list(whole.split(list(self._members.values())))
        blocks[list(self._members).index(member)] = tensor.to(whole.dtype)
        setattr(self, name, torch.cat(blocks))
