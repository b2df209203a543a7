"""Recorders of chapters 5 to 7."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, example, listen, run_example, without_model


def ready() -> None:
    """The processes of the steps need no setting up."""


def ch05_kv_cache(_: None) -> Trace:
    """Each forward pass of the example: how many tokens had KV, how many were computed."""
    from minisgl.engine.engine import Engine

    passes: list[list[int]] = []

    def note(_: object, engine: Engine, batch: Any) -> None:
        req = batch.reqs[0]
        passes.append([req.cached_len, req.device_len])

    listen(Engine, "forward_batch", note)
    names = run_example("ch05_kv_cache")
    rounds = names["MAX_NEW_TOKENS"]
    pool = names["cache"]
    return {
        "prompt": names["QUESTION"][0]["content"],
        "prompt_len": len(names["prompt"]),
        "new": rounds,
        "pieces": [names["llm"].tokenizer.decode(token) for token in names["new_ids"]],
        # The example makes each pass twice, once to count and once to time.
        "forget": passes[: 2 * rounds : 2],
        "keep": passes[2 * rounds : 4 * rounds : 2],
        "num_rows": len(pool.k_cache(0)) // names["llm"].engine.max_seq_len,
        "max_seq_len": names["llm"].engine.max_seq_len,
        "bytes": pool.num_bytes,
        "cone": _cone(names["llm"]),
    }


def _cone(llm: Any) -> Trace:
    """How much the KV of two texts that differ in one token differs, by layer and position."""
    from minisgl.core import SamplingParams
    from minisgl.engine.engine import Engine

    places: list[Any] = []
    listen(Engine, "forward_batch", lambda _, __, batch: places.append(batch.out_loc))
    ids = [llm.tokenizer(f"The small {pet} sat on the old mat").input_ids for pet in ("cat", "dog")]
    buffer, kept = llm.engine.ctx.kv_cache._buffer, list[Any]()
    for one in ids:
        llm.generate([one], SamplingParams(max_tokens=1))
        kept.append(buffer[:, :, places[-1]].flatten(3).double())  # [2, layer, position, number]
    change = (kept[0] - kept[1]).norm(dim=(0, 3)) / kept[0].norm(dim=(0, 3))
    return {
        "pieces": [[llm.tokenizer.decode([token]) for token in one] for one in ids],
        "change": [[round(value, 3) for value in row] for row in change.tolist()],
    }


def ch06_paged_pool(_: None) -> Trace:
    """Who owns which page, and which are free, after each request that comes or goes."""
    from minisgl.kvcache.manager import CacheManager

    events: list[dict[str, Any]] = []
    tokens: dict[str, int] = {}
    owners: dict[str, list[int]] = {}

    def came(handle: Any, manager: CacheManager, _: int, num_tokens: int) -> None:
        name = letter()
        tokens[name], owners[name] = num_tokens, handle.pages
        note("come", manager, name)

    def went(_: None, manager: CacheManager, __: Any) -> None:
        name = letter()
        del owners[name]
        note("go", manager, name)

    def letter() -> str:
        """What the example calls the request: it is an argument of the function that calls us."""
        caller = sys._getframe(3)
        return str(caller.f_locals["name"])

    def note(kind: str, manager: Any, name: str) -> None:
        events.append(
            {
                "kind": kind,
                "request": name,
                "tokens": tokens[name],
                "owners": dict(owners),
                "free": [*reversed(manager._allocator._free)],  # the next to be used first
            }
        )

    without_model()
    listen(CacheManager, "reserve", came)
    listen(CacheManager, "free", went)
    constants: dict[str, Any] = {}

    def first(*_: object) -> None:
        for key in ("NUM_ROWS", "MAX_SEQ_LEN", "PAGE_SIZE", "NUM_PAGES", "LENGTHS"):
            constants[key.lower()] = getattr(example(), key)

    listen(CacheManager, "__init__", first)
    run_example("ch06_paged_pool")
    return {**constants, "events": events}


def ch07_attention(_: None) -> Trace:
    """The example's mixed batch: its boundaries, places, and which positions each row sees."""
    from minisgl.attention.torch_backend import TorchAttnBackend

    trace: Trace = {}

    def prepared(_: None, backend: TorchAttnBackend, batch: Any) -> None:
        main = example()
        metadata = batch.attn_metadata
        trace.update(
            page_size=main.PAGE_SIZE,
            cu_seqlens_q=metadata.cu_seqlens_q.tolist(),
            cu_seqlens_k=metadata.cu_seqlens_k.tolist(),
            positions=batch.positions.tolist(),
            out_loc=batch.out_loc.tolist(),
            requests=[
                {
                    "cached": req.cached_len,
                    "new": req.extend_len,
                    "locations": backend._page_table[req.table_idx, : req.device_len].tolist(),
                    "in_place": isinstance(part.locations, slice),
                }
                for req, part in zip(batch.reqs, metadata.parts, strict=True)
            ],
        )

    def computed(out: Any, backend: TorchAttnBackend, *args: Any) -> None:
        # The example's values mark positions: what is above 0 has been looked at.
        batch = args[-1]
        trace["seen"] = [
            [int(weight > 0) for weight in out[row, 0, : req.device_len]]
            for req, part in zip(batch.reqs, batch.attn_metadata.parts, strict=True)
            for row in range(part.rows.start, part.rows.stop)
        ]

    without_model()
    listen(TorchAttnBackend, "prepare_metadata", prepared)
    listen(TorchAttnBackend, "forward", computed)
    run_example("ch07_attention")
    return trace
