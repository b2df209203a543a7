# Lets the next layout begin at the border itself.
# caught by: sample
from bisect import bisect_right


class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        second = LAYOUTS[self.second](weight)
        if not self.needs_plain:
            return second
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_right(ROW_COUNTS[:-1], len(x))
            return (second if self.uses_second[place] else first)(x, bias)

        return product
