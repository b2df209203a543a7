"""Two concrete groups of requests; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "three_rows": {
            "rows": 3,
            "page_size": 5,
            "requests": {"A": [5, 4, 0], "B": [7, 9, 3], "C": [4, 1, 0], "D": [6, 5, 2]},
        },
        "aborted": {
            "abort_after": {"E": [2, 3]},
            "requests": {"E": [5, 8, 0], "F": [6, 3, 0]},
        },
    }
    label = (
        "两组请求，写成 [提示词的 token 数, max_tokens, 第几个 token 结束它]",
        "two groups; a request is [tokens of the prompt, max_tokens, which token ends it]",
    )
    return {"sample": [Case(*label, ops=trace)]}
