# Takes all members to be of the same size: right for gate and up only.
# caught by: basic
class MergedLinear:
    def forward_split(self, x):
        return self.forward(x).chunk(len(self._members), dim=-1)
