# Sorts the members by name, so that k stands above q.
# caught by: basic
class MergedLinear:
    def load(self, part, tensor):
        self._check_shape(part, tensor)
        member, name = part.split(".")
        start = sum(rows for other, rows in self._members.items() if other < member)
        self.weights()[name][start : start + len(tensor)].copy_(tensor)
