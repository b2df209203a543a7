"""Plays the request with the stored places themselves, one per position, layer, half and head."""

from typing import Any

from practice.judgelib.cases import Case


def expected(case: Case) -> dict[str, Any]:
    trace = case.ops
    tokens = ["prompt"] * trace["prompt_len"]
    places: set[tuple[int, int, int, int]] = set()
    stored: list[int] = []
    rounds: list[list[int]] = []
    uncached = generated = 0
    while generated < trace["max_tokens"] and "eos" not in tokens:
        now = [position for position in range(len(tokens)) if position not in stored]
        rounds.append(now)
        uncached += len(tokens)
        stored += now
        places |= {
            (position, layer, half, head)
            for position in now
            for layer in range(trace["num_layers"])
            for half in range(2)
            for head in range(trace["num_kv_heads"])
        }
        generated += 1
        tokens.append("eos" if generated == trace["eos_is_token"] else "generated")
    place_bytes = trace["head_dim"] * trace["bytes_per_number"]
    first = [place for place in places if place[0] == 0]
    room = [trace["max_seq_len"]] * trace["max_running_reqs"]
    return {
        "extend_lens": [len(now) for now in rounds],
        "last_positions": [now[-1] for now in rounds],
        "never_computed": next(p for p in range(len(tokens)) if p not in stored),
        "last_location": sum(room[: trace["table_idx"]]) + stored[-1],
        "bytes_per_token": len(first) * place_bytes,
        "bytes_used": len(places) * place_bytes,
        "bytes_reserved": sum(room) * len(first) * place_bytes,
        "tokens_computed": len(stored),
        "tokens_without_cache": uncached,
    }
