# Trusts copy_ to refuse a wrong shape, but it broadcasts.
# caught by: edge
class MergedLinear:
    def load(self, part, tensor):
        member, name = part.split(".")
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)
