"""One concrete request; nothing is drawn."""

import random

from practice.judgelib.cases import Case


def cases(rng: random.Random) -> dict[str, list[Case]]:
    trace = {
        "prompt_len": 7,
        "max_tokens": 6,
        "eos_is_token": 4,
        "table_idx": 2,
        "max_running_reqs": 4,
        "max_seq_len": 4096,
        "num_layers": 24,
        "num_qo_heads": 14,
        "num_kv_heads": 2,
        "head_dim": 64,
        "bytes_per_number": 2,
    }
    label = "提前遇到 EOS 的一个请求", "a request that ends early, with an EOS"
    return {"sample": [Case(*label, ops=trace)]}
