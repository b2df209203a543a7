# Puts each tensor below the one that came before, as if the checkpoint were in order.
# caught by: basic
class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        _, name = part.split(".")
        filled = vars(self).setdefault("_filled", {"weight": 0, "bias": 0})
        start = filled[name]
        self.weights()[name][start : start + len(tensor)].copy_(tensor)
        filled[name] = (start + len(tensor)) % sum(self._members.values())
