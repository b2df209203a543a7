# Cuts the result along the tokens, not along the features.
# caught by: basic
class MergedLinear:
    def forward_split(self, x):
        return self.forward(x).split(list(self._members.values()), dim=0)
