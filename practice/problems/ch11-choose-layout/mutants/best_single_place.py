# Takes the layout with the largest gain in one place.
# caught by: edge
def choose(weights: Sequence[torch.Tensor]) -> Choice:
    times = measure(weights)
    ratios = {
        name: [own / first for own, first in zip(figures, times["plain"], strict=True)]
        for name, figures in times.items()
    }
    second = min(ratios, key=lambda name: min(1.0, min(ratios[name])))
    if second != "plain" and max(ratios[second]) <= _TOLERANCE:
        return Choice(second, (True,) * len(ROW_COUNTS))
    return Choice(second, tuple(ratio < 1 for ratio in ratios[second]))
