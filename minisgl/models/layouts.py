"""Which layout each weight of a model gets: measured once per machine, remembered in a file."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tqdm import tqdm

from minisgl.layers.base import Layer
from minisgl.layers.embedding import LMHead
from minisgl.layers.layout import Choice, choose
from minisgl.layers.linear import Linear

_MIN_BYTES = 2**20  # a smaller weight stays in the processor's cache, whatever its layout
_QUIET = 0.7  # of the processor; what was measured with less for us holds for this run only
# What tells processors apart in /proc/cpuinfo; its other lines, such as the clock, change.
_CPU_FIELDS = ("model", "cpu family", "stepping", "cache size", "flags", "CPU", "Features")


def lay_out(model: Layer, progress: bool = False) -> dict[str, Choice]:
    """Give every large matrix on the CPU the layout that is fastest here; says which, by shape.

    Measuring takes a second or two, the first time; `progress` shows a bar. A weight that no
    number of rows is multiplied by as it is gives its memory back, so that a model takes about as
    much as before; otherwise up to twice as much.
    """
    groups = _groups(model)
    machine = _machine()
    known = _read(machine)
    new = [name for name in groups if name not in known]
    start, start_cpu = time.perf_counter(), time.process_time()
    for name in tqdm(new, desc="measure layouts", unit="shape") if progress and new else new:
        known[name] = choose([layer.matrix for layer in groups[name]])
    elapsed, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    if new and cpu >= _QUIET * torch.get_num_threads() * elapsed:
        _write(machine, known)
    for name, layers in groups.items():
        for layer in layers:
            layer.use_layout(known[name])
    return {name: known[name] for name in groups}


def _groups(model: Layer) -> dict[str, list[Linear | LMHead]]:
    """The layers with a large matrix on the CPU, by what decides about its layout."""
    groups: dict[str, list[Linear | LMHead]] = {}
    for layer in _descendants(model):
        if not isinstance(layer, Linear | LMHead):
            continue
        matrix = layer.matrix
        if matrix.is_cpu and matrix.nbytes >= _MIN_BYTES:
            rows, columns = matrix.shape
            name = f"{columns} → {rows}, {str(matrix.dtype).removeprefix('torch.')}"
            groups.setdefault(name, []).append(layer)
    return groups


def _descendants(layer: Layer) -> Iterator[Layer]:
    yield layer
    for _, child in layer.children():
        yield from _descendants(child)


def _machine() -> str:
    """What the fastest layout depends on: the processor, its threads, and this torch."""
    return f"{_processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _processor() -> str:
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text("utf-8").partition("\n\n")
    except OSError:  # not Linux
        return f"{platform.processor()} {platform.machine()}"
    return ", ".join(line for line in first.splitlines() if line.startswith(_CPU_FIELDS))


def _file(machine: str) -> Path:
    """Where the choices are remembered; a RuntimeError where there is no home folder."""
    home = Path(os.environ.get("MINISGL_HOME") or "~/.cache/minisgl").expanduser()
    return home / "layouts" / f"{hashlib.sha256(machine.encode()).hexdigest()[:16]}.json"


def _read(machine: str) -> dict[str, Choice]:
    """What was measured before; nothing where the file is not there or not ours."""
    try:
        choices = json.loads(_file(machine).read_text("utf-8"))["choices"]
        return {
            name: Choice(one["second"], tuple(one["uses_second"])) for name, one in choices.items()
        }
    except (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError):
        return {}


def _write(machine: str, choices: dict[str, Choice]) -> None:
    """Remember; where nothing can be written it is measured again next time."""
    content = {"machine": machine, "choices": {name: asdict(one) for name, one in choices.items()}}
    with suppress(OSError, RuntimeError):
        file = _file(machine)
        file.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=file.parent) as folder:  # two processes may be here at once
            draft = Path(folder, file.name)
            draft.write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")
            draft.replace(file)
