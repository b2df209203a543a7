"""Chapter 6: how many requests the same memory holds, as rows (step 5) and as pages (step 6).

And what looking a place up costs: step 6 copies a request's keys and values together before it
attends to them, where step 5 read them in place.
"""

import random
import time
from functools import partial
from typing import Any

from _bench import StepProcess, alternate, record

NUM_ROWS, MAX_SEQ_LEN = 4, 1024
POOL = NUM_ROWS * MAX_SEQ_LEN  # tokens
SHORTEST, LONGEST = 8, 256  # of a prompt, and of an answer
PAGE_SIZES = (1, 16, 64, 256)
LENGTHS = (64, 256, 1024)
TOKENS = 8  # that are timed, after a first one


def mix() -> list[tuple[int, int]]:
    """Lengths of prompts and answers, in the order of arrival: short ones are as common as long."""
    rng = random.Random(0)

    def length() -> int:
        return round(SHORTEST * (LONGEST / SHORTEST) ** rng.random())

    return [(length(), length()) for _ in range(POOL)]


def load_rows() -> Any:
    return _load(max_running_reqs=NUM_ROWS, max_seq_len=MAX_SEQ_LEN)


def load_pages(page_size: int) -> Any:
    sizes = {"page_size": page_size, "num_pages": POOL // page_size}
    return _load(max_running_reqs=POOL, max_seq_len=MAX_SEQ_LEN, **sizes)


def load_default() -> Any:
    return _load()


def _load(**options: Any) -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    return LLM(model_dir(), **options)


def _request(prompt_len: int, output_len: int) -> Any:
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    params = SamplingParams(max_tokens=output_len, ignore_eos=True)
    return Request(0, [0] * prompt_len, output_len, params)


def fill(llm: Any) -> list[int]:
    """Let the mix wait: how many become the first batch, and how many places they will fill.

    The last token of an answer is only ever an output, and takes none.
    """
    waiting = [_request(*lengths) for lengths in mix()]
    for request in waiting:
        llm.scheduler.add(request)
    llm.scheduler.step()
    batch = [request for request in waiting if request.token_ids]
    llm.scheduler.abort(0)  # they all have this uid
    return [len(batch), sum(len(one.input_ids) + one.output_len - 1 for one in batch)]


def kv_mb(llm: Any) -> float:
    return llm.engine.ctx.kv_cache.num_bytes / 1e6


def tpot(llm: Any, length: int) -> float:
    request = _request(length, 1 + TOKENS)
    llm.scheduler.add(request)
    llm.scheduler.step()
    start = time.perf_counter()
    while request.finish_reason is None:
        llm.scheduler.step()
    return 1000 * (time.perf_counter() - start) / TOKENS


def filled(process: StepProcess, layout: str, page_size: int | None) -> dict[str, Any]:
    requests, text_tokens = process(fill)
    return {
        "layout": layout,
        "page_size": page_size,
        "kv_mb": process(kv_mb),
        "requests": requests,
        "text_tokens": text_tokens,
        "utilisation_percent": 100 * text_tokens / POOL,
    }


def main() -> None:
    rows = []
    with StepProcess(5, load_rows) as contiguous:
        rows.append(filled(contiguous, f"{NUM_ROWS} rows of {MAX_SEQ_LEN}", None))
    for page_size in PAGE_SIZES:
        with StepProcess(6, load_pages, page_size) as paged:
            rows.append(filled(paged, f"{POOL // page_size} pages", page_size))
    record(
        "ch06_paged_pool",
        f"requests that become one batch in the memory of {POOL} tokens, by step 5 (rows) and by "
        f"step 6 (pages), where more are waiting than fit: prompts and answers of {SHORTEST} to "
        f"{LONGEST} tokens each, log-uniform, the same order for all; the tokens of their whole "
        f"texts, each without its last one, and which part of the memory these will fill",
        rows,
    )
    costs = []
    with StepProcess(5, load_default) as contiguous, StepProcess(6, load_default) as paged:
        for n in LENGTHS:
            pair = alternate(partial(contiguous, tpot, n), partial(paged, tpot, n))
            costs.append(
                {
                    "length": n,
                    "contiguous_tpot_ms": pair.a,
                    "paged_tpot_ms": pair.b,
                    "ratio": pair.ratio,
                    "spread": pair.spread,
                }
            )
    record(
        "ch06_lookup",
        f"one more token after `length` tokens, fp32, batch of 1, by step 5, which reads keys and "
        f"values in place, and by step 6, which gathers them by the page table: milliseconds, mean "
        f"of {TOKENS} tokens, median of 5 pairs",
        costs,
    )


if __name__ == "__main__":
    main()
