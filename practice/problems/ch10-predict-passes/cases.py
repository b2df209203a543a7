"""Three concrete waiting lines; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "short_rows": {
            "rows": 2,
            "requests": {"A": [6, 2], "B": [9, 5], "C": [4, 3], "D": [7, 1], "E": [5, 4]},
        },
        "few_pages": {
            "rows": 4,
            "pages": 8,
            "page_size": 16,
            "requests": {"P": [33, 4], "Q": [20, 3], "R": [70, 2], "S": [10, 3]},
        },
        "one_beginning": {
            "rows": 4,
            "page_size": 16,
            "common": 40,
            "requests": {"T": [50, 3], "U": [45, 3], "V": [60, 1]},
        },
    }
    label = (
        "三支队伍，请求写成 [提示词的 token 数, 输出的 token 数]",
        "three waiting lines; a request is [tokens of the prompt, tokens of the output]",
    )
    return {"sample": [Case(*label, ops=trace)]}
