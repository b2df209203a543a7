"""Plays the request token by token with the positions themselves."""

from typing import Any

from practice.judgelib.cases import Case


def expected(case: Case) -> dict[str, Any]:
    prompt, hits, output = (case.ops[key] for key in ("prompt_len", "cached_len", "max_tokens"))
    stored, now = set(range(hits)), set(range(hits, prompt))
    places, ids = set(range(prompt + output)), list(range(prompt))
    computed, states = 0, []

    def triple() -> tuple[int, int, int]:
        return len(stored), len(stored | now), len(places - stored - now)

    states.append(triple())
    first = len(now)
    while True:
        computed += len(now)
        stored |= now
        now = {max(stored) + 1}
        ids.append(-1)
        states.append(triple())
        if not places - stored - now:
            break
    return {
        "admitted": states[0],
        "prefill_tokens": first,
        "after_prefill": states[1],
        "after_decode_5": states[6],
        "decode_rounds": len(states) - 2,
        "final_ids": len(ids),
        "kv_computed": computed,
    }
