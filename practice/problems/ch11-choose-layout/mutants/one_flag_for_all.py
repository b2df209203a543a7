# Uses the second layout for all numbers of rows as soon as one uses it.
# caught by: sample
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        second = LAYOUTS[self.second](weight)
        return second
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            return (second if self.uses_second[place] else first)(x, bias)

        return product
