# Compares the number of elements, so a transposed weight gets through.
# caught by: edge
class MergedLinear:
    def load(self, part, tensor):
        wanted = self.parts()[part]
        if tensor.numel() != wanted.numel():
            raise ValueError(part)
        tensor = tensor.reshape(wanted)
        member, name = part.split(".")
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)
