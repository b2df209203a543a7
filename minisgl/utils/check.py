"""The check at every border: is this value a number within its bounds?"""

from __future__ import annotations

import math
import reprlib
import sys
from typing import Any


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    whole: bool = False,
) -> None:
    """Check that `value` is a finite number (an integer, if `whole`) from `low` to `high`.

    Both bounds are included, unless `open_low` excludes `low`. A bool does not count as a number,
    nor does an integer as a finite number if it is too large for a float.

    Raises:
        ValueError: it is not; the message has `name`, the rule and the value.
    """
    good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    # NaN fails every comparison. An integer of any size can be compared with a float.
    good = good and low <= value <= high and (whole or abs(value) <= sys.float_info.max)
    if good and not (open_low and value == low):
        return
    bounds = [f"{'>' if open_low else '≥'} {low}"] * (low > -math.inf)
    bounds += [f"≤ {high}"] * (high < math.inf)
    rule = f"{'an integer' if whole else 'a finite number'} {' and '.join(bounds)}".rstrip()
    raise ValueError(f"{name} must be {rule}, got {reprlib.repr(value)}")
