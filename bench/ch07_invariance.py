"""Chapter 7: what the other requests of a batch change about the logits of one, and its tokens.

Each request is computed alone, then in batches of several sizes, and its logits are compared round
by round, up to the first token that differs. A second record looks at one linear layer: with which
numbers of rows its first row comes out the same.
"""

from typing import Any

from _bench import StepProcess, record

SIZES = (2, 4, 8, 16)
ROWS = (1, 2, 3, 4, 5, 8, 16, 32)
REQUESTS, NEW_TOKENS = 16, 12
BEGINNINGS = (
    *("The capital of France is", "Once upon a time there was a", "The sea is", "To bake bread,"),
    *("A prime number is", "In the year 1969,", "My favourite book is", "Water boils at"),
)
ENDINGS = ("", " very")


def load() -> Any:
    from _step import model_dir

    import torch

    from minisgl.llm import LLM

    torch.set_num_threads(1)  # how rows are shared among threads is not the question here
    return LLM(model_dir(), max_seq_len=64, num_pages=4 * REQUESTS)


def logits(llm: Any, size: int) -> list[Any]:
    """For each request, the logits of each of its rounds, computed in batches of `size`."""
    from minisgl.core import SamplingParams

    prompts = [beginning + ending for ending in ENDINGS for beginning in BEGINNINGS]
    params = SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)
    forward, rounds = llm.engine.model.forward, []

    def kept() -> Any:
        rounds.append(forward())
        return rounds[-1]

    llm.engine.model.forward = kept
    found: list[Any] = []
    for first in range(0, REQUESTS, size):
        llm.generate(prompts[first : first + size], params)
        found += zip(*(one.unbind() for one in rounds), strict=True)
        rounds.clear()
    del llm.engine.model.forward
    return found


def compared(llm: Any) -> list[dict[str, int | float]]:
    import torch

    alone = logits(llm, 1)
    tops = [one.topk(2).values for rounds in alone for one in rounds]
    gap = min(float(best - second) for best, second in tops)
    rows = []
    for size in SIZES:
        equal = total = changed = 0
        largest = 0.0
        for ours, theirs in zip(alone, logits(llm, size), strict=True):
            for a, b in zip(ours, theirs, strict=True):
                total, equal = total + 1, equal + torch.equal(a, b)
                largest = max(largest, float((a - b).abs().max()))
                if a.argmax() != b.argmax():
                    changed += 1
                    break
        rows.append(
            {
                "batch_size": size,
                "rounds": total,
                "bitwise_equal": equal,
                "largest_difference": largest,
                "answers_changed": changed,
                "smallest_gap": gap,
            }
        )
    return rows


def first_row(llm: Any) -> list[dict[str, int]]:
    import torch
    import torch.nn.functional as F

    weight = next(iter(llm.engine.model.model.layers)).self_attn.qkv_proj.weight
    x = torch.randn(max(ROWS), weight.shape[1], generator=torch.Generator().manual_seed(0))
    first = {rows: F.linear(x[:rows], weight)[0] for rows in ROWS}
    return [
        {"rows": rows, "equal_to_rows": next(m for m in ROWS if torch.equal(first[m], first[rows]))}
        for rows in ROWS
    ]


def main() -> None:
    with StepProcess(7, load) as step:
        rows, first = step(compared), step(first_row)
    record(
        "ch07_invariance",
        f"{REQUESTS} greedy requests of {NEW_TOKENS} tokens, SmolLM2 in fp32 on one thread by step "
        "07, in batches, beside each computed alone: rounds that are compared, those that have "
        "all logits equal to the last bit, the largest difference of a logit, answers of which a "
        "token changed, and the smallest gap between the two best logits of any round",
        rows,
    )
    record(
        "ch07_first_row",
        "the first row of a product with SmolLM2's first qkv_proj, fp32 on one thread, by the "
        "number of rows that are computed with it: the smallest number of rows that gives the same "
        "bits",
        first,
    )


if __name__ == "__main__":
    main()
