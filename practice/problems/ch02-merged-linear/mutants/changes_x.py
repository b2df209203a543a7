# Takes x for its own, although the caller may need it again.
# caught by: basic
class MergedLinear:
    def forward_split(self, x):
        y = self.forward(x)
        x.zero_()
        return y.split(list(self._members.values()), dim=-1)
