"""Four concrete situations; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "one_long": {"budget": 16, "decoding": 2, "prompts": {"L": 50, "S": 9}},
        "beside_many": {"budget": 4, "decoding": 5, "prompts": {"P": 6}},
        "known_beginning": {
            "budget": 20,
            "decoding": 0,
            "prompts": {"Q": 60, "R": 30},
            "cached": {"Q": 32},
        },
        "one_beginning": {
            "budget": 24,
            "decoding": 0,
            "prompts": {"T": 50, "U": 45, "V": 20},
            "common": {"T": 40, "U": 40},
            "page_size": 16,
        },
    }
    label = (
        "四种情形，提示词写成 token 数",
        "four situations; a prompt is its number of tokens",
    )
    return {"sample": [Case(*label, ops=trace)]}
