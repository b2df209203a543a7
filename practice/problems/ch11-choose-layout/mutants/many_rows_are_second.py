# Takes the second layout beyond what was measured, as it is for large batches.
# caught by: sample
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
            return (second if self.uses_second[place] or len(x) > 256 else first)(x, bias)

        return product
