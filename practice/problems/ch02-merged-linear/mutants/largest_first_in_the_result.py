# Cuts the result by size, while the rows stand in the order of the members.
# caught by: edge
class MergedLinear:
    def forward_split(self, x):
        return self.forward(x).split(sorted(self._members.values(), reverse=True), dim=-1)
