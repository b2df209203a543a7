# Checks after copying, when a tensor that broadcasts has done its damage.
# caught by: edge
class MergedLinear:
    def load(self, part, tensor):
        member, name = part.split(".")
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)
        self._check_shape(part, tensor)
