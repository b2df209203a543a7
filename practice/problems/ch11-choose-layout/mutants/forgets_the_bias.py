# Hands no bias on.
# caught by: edge
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        second = LAYOUTS[self.second](weight)
        if not self.needs_plain:
            return second
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            return (second if self.uses_second[place] else first)(x, None)

        return product
