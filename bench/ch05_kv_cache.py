"""Chapter 5: what one more token costs, recomputing everything (step 4) and with a KV cache.

And what the cache takes for it: the memory that a request reserves, and what it has filled.
"""

import time
from functools import partial
from itertools import count
from typing import Any

from _bench import StepProcess, alternate, record

UIDS = count()  # one that is aborted must not share its number with the next
LENGTHS = (16, 64, 256, 1024)
TOKENS = 3  # that are timed, after a first one


def load() -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    return LLM(model_dir())


def begin(llm: Any, length: int) -> Any:
    """A request whose prompt has been computed."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    params = SamplingParams(max_tokens=1 + TOKENS, ignore_eos=True)
    request = Request(next(UIDS), [0] * length, 1 + TOKENS, params)
    llm.scheduler.add(request)
    llm.scheduler.step()
    return request


def tpot(llm: Any, length: int) -> float:
    request = begin(llm, length)
    start = time.perf_counter()
    while request.finish_reason is None:
        llm.scheduler.step()
    return 1000 * (time.perf_counter() - start) / TOKENS


def gflop(llm: Any, length: int) -> float:
    from torch.utils.flop_counter import FlopCounterMode

    request = begin(llm, length)
    with FlopCounterMode(display=False) as counter:
        llm.scheduler.step()
    llm.scheduler.abort(request.uid)
    return counter.get_total_flops() / 1e9


def kv_mb(llm: Any, length: int) -> list[float]:
    """What a row of the cache takes, and how much of it a request has filled at its second token.

    Its prompt and its first token have keys and values then; its second token has none.
    """
    cache = llm.engine.ctx.kv_cache
    reserved = cache.num_bytes / llm.engine.config.max_running_reqs
    return [reserved / 1e6, reserved * (length + 1) / llm.engine.max_seq_len / 1e6]


def main() -> None:
    rows = []
    with StepProcess(4, load) as before, StepProcess(5, load) as after:
        for n in LENGTHS:
            pair = alternate(partial(before, tpot, n), partial(after, tpot, n))
            reserved, used = after(kv_mb, n)
            rows.append(
                {
                    "length": n,
                    "recompute_gflop": before(gflop, n),
                    "kv_cache_gflop": after(gflop, n),
                    "recompute_tpot_ms": pair.a,
                    "kv_cache_tpot_ms": pair.b,
                    "ratio": pair.ratio,
                    "spread": pair.spread,
                    "reserved_mb": reserved,
                    "used_mb": used,
                }
            )
    record(
        "ch05_kv_cache",
        f"one more token after `length` tokens, fp32, batch of 1, by step 4 and by step 5: GFLOP, "
        f"and milliseconds (mean of {TOKENS} tokens, median of 5 pairs); memory for the keys and "
        f"values of that request, reserved and used, in MB",
        rows,
    )


if __name__ == "__main__":
    main()
