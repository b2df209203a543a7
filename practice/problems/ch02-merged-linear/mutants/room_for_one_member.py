# Makes room for the largest member only.
# caught by: sample
class MergedLinear:
    def __init__(self, in_features, members, bias):
        super().__init__(in_features, max(members.values()), bias)
        self._members = members
