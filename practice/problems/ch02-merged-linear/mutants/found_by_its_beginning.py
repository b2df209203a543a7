# Finds the member by the beginning of the name, and query_norm begins with query too.
# caught by: edge
class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        name = part.rpartition(".")[2]
        index = next(i for i, member in enumerate(self._members) if part.startswith(member))
        self.weights()[name].split(list(self._members.values()))[index].copy_(tensor)
