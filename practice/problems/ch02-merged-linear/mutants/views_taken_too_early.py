# Takes the members' views in the constructor, before the tensors have any memory.
# caught by: sample
class MergedLinear:
    def __init__(self, in_features, members, bias):
        super().__init__(in_features, sum(members.values()), bias)
        self._members = members
        rows = list(members.values())
        self._blocks = {
            f"{member}.{name}": block
            for name, whole in self.weights().items()
            for member, block in zip(members, whole.split(rows), strict=True)
        }

    def load(self, part, tensor):
        self._check_shape(part, tensor)
        self._blocks[part].copy_(tensor)
