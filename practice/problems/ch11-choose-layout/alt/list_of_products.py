# A list of products by number of rows instead of flags; candidates are sorted.
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        ways = {False: plain(weight)}
        if True in self.uses_second:
            ways[True] = LAYOUTS[self.second](weight)
        products = [ways[self.uses_second[0]]]
        for count, use in zip(ROW_COUNTS, self.uses_second, strict=True):
            products.extend([ways[use]] * (count - len(products) + 1))

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            number = len(x)
            return (products[number] if number < len(products) else products[-1])(x, bias)

        return product


def choose(weights: Sequence[torch.Tensor]) -> Choice:
    times = measure(weights)
    plain_times = times["plain"]

    def gains(name: str) -> list[float]:
        pairs = zip(times[name], plain_times, strict=True)
        return [max(1 - mine / theirs, 0) for mine, theirs in pairs]

    ranked = sorted(times, key=lambda name: -sum(gains(name)))
    second = ranked[0]
    worst = max(mine / theirs for mine, theirs in zip(times[second], plain_times, strict=True))
    everywhere = second != "plain" and not worst > _TOLERANCE
    return Choice(second, tuple(everywhere or gain > 0 for gain in gains(second)))
