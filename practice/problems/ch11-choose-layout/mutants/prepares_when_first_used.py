# Puts the preparation off until a product needs it: the first step is slow.
# caught by: sample
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        made: list[Product] = []
        first = plain(weight)

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            place = bisect_left(ROW_COUNTS[:-1], len(x))
            use = self.uses_second[place]
            if use and not made:
                made.append(LAYOUTS[self.second](weight))
            return (made[0] if use else first)(x, bias)

        return product
