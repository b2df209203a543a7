# Counts what a layout loses where it will not be used.
# caught by: basic
def choose(weights: Sequence[torch.Tensor]) -> Choice:
    times = measure(weights)
    ratios = {
        name: [own / first for own, first in zip(figures, times["plain"], strict=True)]
        for name, figures in times.items()
    }
    second = min(ratios, key=lambda name: sum(ratio for ratio in ratios[name]))
    if second != "plain" and max(ratios[second]) <= _TOLERANCE:
        return Choice(second, (True,) * len(ROW_COUNTS))
    return Choice(second, tuple(ratio < 1 for ratio in ratios[second]))
