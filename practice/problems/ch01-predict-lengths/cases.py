"""One concrete request; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {"prompt_len": 40, "cached_len": 16, "max_tokens": 12}
    return {"sample": [Case("一个请求", "one request", ops=trace)]}
