"""A fault of one line in the cache or the scheduler is seen by the random workloads.

Each fault is planted in the code that is there: where a line has changed, its fault fails by name
and is written anew. `python3 tests/test_planted_faults.py` prints what each workload said.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from test_ch10_workloads import NUM_WORKLOADS, Workload


@dataclass(frozen=True)
class Fault:
    """One line, and what stands there instead."""

    name: str
    module: str
    line: str
    instead: str


MANAGER, TREE = "minisgl.kvcache.manager", "minisgl.kvcache.radix_tree"
SCHEDULER, PREFILL = "minisgl.scheduler.scheduler", "minisgl.scheduler.prefill"

FAULTS = [
    Fault(
        "a refused reservation keeps its lock",
        MANAGER,
        "            self._tree.unlock(prefix)\n            return None",
        "            return None",
    ),
    Fault(
        "the whole prompt is taken from the cache",
        MANAGER,
        "prefix = self._tree.match(input_ids[:-1])",
        "prefix = self._tree.match(input_ids)",
    ),
    Fault(
        "a prefix is locked after room was made for the rest",
        MANAGER,
        "        self._tree.lock(prefix)\n        own = self._allocate("
        "count, after=shared[-1] if shared else None)\n",
        "        own = self._allocate(count, after=shared[-1] if shared else None)\n"
        "        self._tree.lock(prefix)\n",
    ),
    Fault(
        "a page too few for a request that is admitted",
        MANAGER,
        "count = -(-num_tokens // self._page_size) - len(shared)",
        "count = num_tokens // self._page_size - len(shared)",
    ),
    Fault(
        "a request grows a token late",
        MANAGER,
        "count = -(-req.device_len // self._page_size) - len(handle.pages)",
        "count = -(-req.cached_len // self._page_size) - len(handle.pages)",
    ),
    Fault(
        "new pages are written over a row's first ones",
        MANAGER,
        "self._write(req.table_idx, more, first=len(handle.pages))",
        "self._write(req.table_idx, more)",
    ),
    Fault(
        "evicted pages are not free",
        MANAGER,
        "self._allocator.free(self._tree.evict(missing))",
        "self._tree.evict(missing)",
    ),
    Fault(
        "the old prefix stays locked when a prompt is cached",
        MANAGER,
        "        self._tree.unlock(old.prefix)\n",
        "",
    ),
    Fault(
        "duplicates are freed, and go on being read",
        MANAGER,
        "            self._write(req.table_idx, pages)\n",
        "",
    ),
    Fault(
        "duplicates are read, and not freed",
        MANAGER,
        "            self._allocator.free(duplicates)\n",
        "",
    ),
    Fault(
        "pages are freed twice",
        MANAGER,
        "self._allocator.free(self._own_pages(req))",
        "self._allocator.free(req.cache_handle.pages)",
    ),
    Fault(
        "the tree gets a page that is not whole",
        MANAGER,
        "num_pages = min(req.cached_len, len(req.input_ids) - 1) // self._page_size",
        "num_pages = -(-min(req.cached_len, len(req.input_ids) - 1) // self._page_size)",
    ),
    Fault(
        "one half of a split node loses its locks",
        TREE,
        "node.keys[:at], node.pages[:at], parent, {node.keys[at]: node}, node.lock_count",
        "node.keys[:at], node.pages[:at], parent, {node.keys[at]: node}",
    ),
    Fault(
        "a locked leaf can be evicted",
        TREE,
        "                del self._unlocked[node]\n",
        "",
    ),
    Fault(
        "a leaf that was shortened keeps its keys",
        TREE,
        "del leaf.keys[keep:], leaf.pages[keep:]",
        "del leaf.pages[keep:]",
    ),
    Fault(
        "pages that differ in their last token are the same",
        TREE,
        "return [tuple(input_ids[i : i + size]) for i in range(0, whole, size)]",
        "return [(*input_ids[i : i + size - 1], 0) for i in range(0, whole, size)]",
    ),
    Fault(
        "a free page is lost when two runs are joined",
        "minisgl.kvcache.allocator",
        "                first = before_first\n",
        "",
    ),
    Fault(
        "a chunk ends a token beyond the budget",
        PREFILL,
        "req.device_len = min(len(ids), req.cached_len + num_tokens)",
        "req.device_len = min(len(ids), req.cached_len + num_tokens + 1)",
    ),
    Fault(
        "a request that does not fit keeps its row",
        PREFILL,
        "            self._table.free(table_idx)\n            return False",
        "            return False",
    ),
    Fault(
        "a small request overtakes one that does not fit",
        PREFILL,
        "                if not self._admit(request, ids):\n                    break",
        "                if not self._admit(request, ids):\n                    continue",
    ),
    Fault(
        "whoever was retracted waits behind all others",
        PREFILL,
        "sorted(waiting, key=lambda one: one.number)",
        "waiting",
    ),
    Fault(
        "a retracted request keeps its row",
        SCHEDULER,
        "        self._cache.free(request.req)\n        self._table.free(request.req.table_idx)\n",
        "        self._cache.free(request.req)\n",
    ),
    Fault(
        "the oldest gives way",
        SCHEDULER,
        "(youngest := running.pop()).is_running",
        "(youngest := running.pop(0)).is_running",
    ),
    Fault(
        "the KV of a pass that failed is kept",
        SCHEDULER,
        "(self._cache.drop if failed else self._cache.free)(request.req)",
        "self._cache.free(request.req)",
    ),
    Fault(
        "a token is written where the one before it lies",
        SCHEDULER,
        "self._table.token_pool[rows[last], batch.positions[last] + 1] = output.next_tokens",
        "self._table.token_pool[rows[last], batch.positions[last]] = output.next_tokens",
    ),
    Fault(
        "a chunk yields a token",
        SCHEDULER,
        "yields_token = torch.tensor([not req.is_chunk for req in reqs])",
        "yields_token = torch.tensor([True for req in reqs])",
    ),
    Fault(
        "an answer has a token too many",
        "minisgl.scheduler.request",
        'return "length" if len(req.input_ids) == req.max_device_len else None',
        'return "length" if len(req.input_ids) > req.max_device_len else None',
    ),
    Fault(
        "the end of an answer is seen a token late",
        "minisgl.scheduler.request",
        "if int(req.input_ids[-1]) in",
        "if int(req.input_ids[-2]) in",
    ),
]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """In a `with` block, the code has this fault."""
    original = importlib.import_module(fault.module)
    source = Path(str(original.__file__)).read_text("utf-8")
    assert source.count(fault.line) == 1, f"{fault.name}: {fault.line!r} is not there (once)"
    faulty = ModuleType(fault.module)
    exec(compile(source.replace(fault.line, fault.instead), fault.name, "exec"), vars(faulty))
    with pytest.MonkeyPatch.context() as patch:
        for name, now in vars(faulty).items():
            if isinstance(now, FunctionType) and now.__module__ == fault.module:
                patch.setattr(getattr(original, name), "__code__", now.__code__)
            elif inspect.isclass(now) and now.__module__ == fault.module:
                for attribute, value in vars(now).items():
                    if isinstance(value, FunctionType | property):
                        patch.setattr(getattr(original, name), attribute, value)
        yield


def first_complaint(fault: Fault) -> tuple[int, BaseException] | None:
    """The first workload that fails with this fault, and how; None if none does."""
    with planted(fault):
        for seed in range(NUM_WORKLOADS):
            try:
                Workload(seed).run()
            except Exception as error:
                return seed, error
    return None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(fault: Fault) -> None:
    found = first_complaint(fault)
    assert found is not None
    Workload(found[0]).run()  # without the fault there is nothing to complain of


def main() -> None:
    for fault in FAULTS:
        found = first_complaint(fault)
        said = f"workload {found[0]}: {found[1]!r}" if found else "NOT SEEN"
        print(f"{fault.name:60} {said[:100]}")


if __name__ == "__main__":
    main()
