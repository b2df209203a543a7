# Gives the shape of the merged tensor for each of its members.
# caught by: basic
class MergedLinear:
    def parts(self):
        return {
            f"{member}.{name}": weight.shape
            for member in self._members
            for name, weight in self.weights().items()
        }
