"""One concrete model and one concrete machine; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "weights": 128_000_000,
        "read_gb_s": 16,
        "kinds": {
            "fp32": {"bytes": 4, "gflop_s": 256},
            "bf16_imitated": {"bytes": 2, "gflop_s": 64},
            "bf16": {"bytes": 2, "gflop_s": 1024},
        },
        "plain_fp32_ms": {8: 64},
    }
    label = "一个模型，一台机器，三种算法", "a model, a machine, and three ways to compute"
    return {"sample": [Case(*label, ops=trace)]}
