# Multiplies by the weight itself and forgets the bias.
# caught by: basic
class MergedLinear:
    def forward_split(self, x):
        return (x @ self.weight.T).split(list(self._members.values()), dim=-1)
