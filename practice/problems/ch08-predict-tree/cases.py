"""One concrete course of events; nothing is drawn."""

import random

from practice.judgelib.cases import Case

A = [1, 2, 3, 4, 5, 6, 7, 8]
C = [20, 21, 22, 23]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = [
        [1, "insert", A, [0, 1, 2, 3]],
        [2, "match", [1, 2, 3, 4, 9, 9]],
        [3, "insert", [1, 2, 3, 4, 5, 6, 9, 10, 11], [10, 11, 12, 13]],
        [4, "match", [1, 2, 3]],
        [5, "lock", A],
        [6, "insert", C, [20, 21]],
        [7, "evict", 2],
        [8, "unlock", A],
        [9, "match", C],
        [10, "evict", 3],
    ]
    return {"sample": [Case("一页两个 token", "pages of two tokens", ops=trace)]}
