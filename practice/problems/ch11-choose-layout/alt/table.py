# Spells the numbers of rows out as a table, and adds up what is saved in a loop.
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        first = plain(weight)
        second = LAYOUTS[self.second](weight) if any(self.uses_second) else first
        table = [self.uses_second[0]]
        for count, use in zip(ROW_COUNTS, self.uses_second, strict=True):
            table += [use] * (count + 1 - len(table))

        def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            return (second if table[min(len(x), len(table) - 1)] else first)(x, bias)

        return product


def choose(weights: Sequence[torch.Tensor]) -> Choice:
    times = measure(weights)
    best, most = "plain", 0.0
    for name, figures in times.items():
        saved = 0.0
        for own, first in zip(figures, times["plain"], strict=True):
            saved += max(0.0, 1 - own / first)
        if saved > most:
            best, most = name, saved
    flags = [own < first for own, first in zip(times[best], times["plain"], strict=True)]
    if best != "plain":
        pairs = zip(times[best], times["plain"], strict=True)
        if all(own / first <= _TOLERANCE for own, first in pairs):
            flags = [True] * len(flags)
    return Choice(best, tuple(flags))
