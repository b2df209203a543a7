# Prepares the second layout when it is needed, each time anew.
# caught by: sample
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            return (LAYOUTS[self.second](weight) if self.uses_second[place] else first)(x, bias)

        return product
