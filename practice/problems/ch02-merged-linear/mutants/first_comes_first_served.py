# Keeps the first tensor of a name and ignores the second.
# caught by: edge
class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        seen = vars(self).setdefault("_seen", set())
        if part in seen:
            return
        seen.add(part)
        member, name = part.split(".")
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)
