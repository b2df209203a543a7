"""One concrete distribution, one row of scores, one request; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "probabilities_in_32nds": [2, 10, 4, 1, 8, 4, 2, 1],
        "uniform": 0.5,
        "scores": [1.75, 3.375, 6.0, -0.5, 5.25],
        "prompt": [3, 1, 4, 1],
        "generated": [2, 4, 2],
        "repetition_penalty": 2.0,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.5,
        "prompt_len": 12,
        "num_generated": 5,
    }
    label = "一个分布，一行 logits，一个请求", "a distribution, a row of scores, a request"
    return {"sample": [Case(*label, ops=trace)]}
