# Adds up seconds, so that 256 rows decide alone.
# caught by: edge
def choose(weights: Sequence[torch.Tensor]) -> Choice:
    times = measure(weights)
    ratios = {
        name: [own / first for own, first in zip(figures, times["plain"], strict=True)]
        for name, figures in times.items()
    }
    second = min(ratios, key=lambda name: sum(map(min, times[name], times["plain"])))
    if second != "plain" and max(ratios[second]) <= _TOLERANCE:
        return Choice(second, (True,) * len(ROW_COUNTS))
    return Choice(second, tuple(ratio < 1 for ratio in ratios[second]))
