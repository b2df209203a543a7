"""Chapter 8: what the radix cache saves, and what it costs to give a prefix up.

Step 07 and step 08 serve the same requests, one after another. Each round brings new prompts, so
a round never profits from the one before it, only requests of a round from each other.
"""

import random
import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

from _bench import StepProcess, alternate, record

NUM_REQUESTS, NEW_TOKENS, QUESTION_LEN = 4, 4, 16
PREFIX_LENS = (64, 256, 1024)
FOREST, CHAIN = "leaves side by side", "each below the last"
NUM_NODES, DEPTHS, FEW_PAGES = (100, 1000, 10_000), (100, 1000), 10

Prompts = Iterator[list[int]]


def load() -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    # As many tokens as a round of the longest prompts needs: what is older is evicted.
    return LLM(model_dir(), max_seq_len=1152, num_pages=4 * 1152 // 16), random.Random(0)


def some_tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(100, 40_000) for _ in range(count)]


# --- workloads --------------------------------------------------------------------------------


def serve(state: Any, workload: str) -> dict[str, Any]:
    """Answer one round; seconds for all, each one's time to the first token, tokens cached."""
    llm, chance = state
    prompt = some_tokens(chance, 256)
    seconds, ttft, cached, total = 0.0, [], 0, 0
    for _ in range(NUM_REQUESTS):
        question = some_tokens(chance, QUESTION_LEN)
        if workload == "nothing shared":
            prompt = some_tokens(chance, 256)
        answer, first, rest, hits = ask(llm, prompt + question)
        ttft.append(1000 * first)
        seconds += first + rest
        cached, total = cached + hits, total + len(prompt) + len(question)
        if workload == "a conversation":
            prompt = prompt + question + answer
    return {"seconds": seconds, "ttft_ms": median(ttft[1:]), "hit_rate": cached / total}


def ask(llm: Any, prompt: list[int]) -> tuple[list[int], float, float, int]:
    """The answer, seconds to its first token, seconds for the others, tokens found in the cache."""
    from minisgl.core import SamplingParams

    computed: list[int] = []
    forward_batch = llm.engine.forward_batch

    def counting(batch: Any) -> Any:
        computed.append(len(batch.input_ids))
        return forward_batch(batch)

    llm.engine.forward_batch = counting
    params = SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)
    start = time.perf_counter()
    stream = llm.stream(prompt, params)
    answer = list(next(stream).token_ids)
    first = time.perf_counter() - start
    answer += [token for piece in stream for token in piece.token_ids]
    rest = time.perf_counter() - start - first
    llm.engine.forward_batch = forward_batch
    return answer, first, rest, len(prompt) - computed[0]


def workload_rows(before: StepProcess, after: StepProcess) -> Iterator[dict[str, Any]]:
    for workload in ("nothing shared", "one system prompt", "a conversation"):
        rounds: dict[StepProcess, list[dict[str, Any]]] = {before: [], after: []}

        def seconds(step: StepProcess, workload: str = workload, rounds: Any = rounds) -> float:
            rounds[step].append(step(serve, workload))
            return rounds[step][-1]["seconds"]

        pair = alternate(partial(seconds, before), partial(seconds, after))
        ttft_before, ttft_after = (median(r["ttft_ms"] for r in rounds[s]) for s in rounds)
        yield {
            "workload": workload,
            "hit_rate": rounds[after][-1]["hit_rate"],
            "ttft_step_07_ms": ttft_before,
            "ttft_step_08_ms": ttft_after,
            "seconds_step_07": pair.a,
            "seconds_step_08": pair.b,
            "speedup": pair.ratio,
            "spread": pair.spread,
        }


# --- time to first token ----------------------------------------------------------------------


def ttft_cold(state: Any, prefix_len: int) -> float:
    llm, chance = state
    return 1000 * ask(llm, some_tokens(chance, prefix_len + QUESTION_LEN))[1]


def ttft_warm(state: Any, prefix_len: int) -> float:
    llm, chance = state
    prefix = some_tokens(random.Random(prefix_len), prefix_len)  # the same at every call
    _, first, _, hits = ask(llm, prefix + some_tokens(chance, QUESTION_LEN))
    return 1000 * first if hits else float("nan")


def ttft_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for prefix_len in PREFIX_LENS:
        step(ttft_warm, prefix_len)  # brings the prefix
        pair = alternate(partial(step, ttft_cold, prefix_len), partial(step, ttft_warm, prefix_len))
        yield {
            "prefix_tokens": prefix_len,
            "new_tokens": QUESTION_LEN,
            "cold_ms": pair.a,
            "warm_ms": pair.b,
            "ratio": pair.ratio,
            "spread": pair.spread,
        }


# --- the cost of an eviction ------------------------------------------------------------------


def nothing() -> None:
    """What the process of the trees needs before it begins."""


def evict(_: None, shape: str, num_nodes: int, num_pages: int) -> dict[str, Any]:
    """Evict from a tree whose nodes have one page each and have all been used since they came."""
    from minisgl.kvcache.radix_tree import RadixNode, RadixTree

    def grown() -> RadixTree:
        tree = RadixTree(page_size=1)
        texts = [[0, leaf] for leaf in range(1, num_nodes)]
        if shape == CHAIN:  # a conversation, whose every turn brought a page
            texts = [list(range(end)) for end in range(1, num_nodes + 1)]
        for text in texts:
            tree.insert(text, text)
        for text in texts:
            tree.match(text)
        return tree

    tree = grown()
    start = time.perf_counter()
    tree.evict(num_pages)
    microseconds = 1e6 * (time.perf_counter() - start)
    touched: set[int] = set()

    def spy(node: object, name: str) -> object:
        touched.add(id(node))
        return object.__getattribute__(node, name)

    tree, original = grown(), RadixNode.__getattribute__
    RadixNode.__getattribute__ = spy  # type: ignore[method-assign]
    tree.evict(num_pages)
    RadixNode.__getattribute__ = original  # type: ignore[method-assign]
    return {"nodes_touched": len(touched), "microseconds": microseconds}


def eviction_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    cases = [(FOREST, nodes, FEW_PAGES) for nodes in NUM_NODES]
    cases += [(FOREST, NUM_NODES[-1], pages) for pages in (1, 100, 1000)]
    cases += [(CHAIN, depth, FEW_PAGES) for depth in DEPTHS]
    for shape, num_nodes, num_pages in cases:
        rounds = [step(evict, shape, num_nodes, num_pages) for _ in range(5)]
        yield {
            "tree": shape,
            "nodes_in_tree": num_nodes,
            "pages_evicted": num_pages,
            "nodes_touched": rounds[0]["nodes_touched"],
            # Each page costs at most its leaf and the node above, which may be a leaf then.
            "nodes_at_most": 2 * num_pages,
            "microseconds": median(one["microseconds"] for one in rounds),
        }


def main() -> None:
    with StepProcess(8, nothing) as step:
        record(
            "ch08_eviction",
            "evicting pages from a radix tree whose nodes have one page each and were all used "
            "again after they came: tree nodes that are looked at, how many these may be, and "
            "microseconds, medians of 5",
            eviction_rows(step),
        )
    with StepProcess(7, load) as before, StepProcess(8, load) as after:
        record(
            "ch08_radix_cache",
            f"{NUM_REQUESTS} requests of about 270 tokens, one after another, each answered by "
            f"{NEW_TOKENS}, SmolLM2 in fp32, without (step 07) and with the radix cache (step 08): "
            "part of the prompt tokens found in the cache, milliseconds to the first token from "
            "the second request on, seconds for all; medians of 5 pairs",
            workload_rows(before, after),
        )
        record(
            "ch08_ttft",
            "milliseconds to the first token, SmolLM2 in fp32, of a prompt that the radix cache "
            "has never seen and of one that shares its first tokens; medians of 5 pairs",
            ttft_rows(after),
        )


if __name__ == "__main__":
    main()
