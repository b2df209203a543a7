# Writes every bias to the top, as if each member had a bias of its own.
# caught by: basic
class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        member, name = part.split(".")
        if name == "bias":
            self.bias[: len(tensor)].copy_(tensor)
            return
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)
