# Prepares the second layout even if no number of rows uses it.
# caught by: edge
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        second = LAYOUTS[self.second](weight)
        if not self.needs_plain:
            return second
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            return (second if self.uses_second[place] else first)(x, bias)

        return product
