"""What every benchmark of this folder is made of: fair pairs, isolated steps, a record on disk.

A benchmark is a short script. It says how to set a subject up and how to take one figure, lets
`alternate` take turns between two subjects, and hands its rows to `record`:

    from _bench import StepProcess, alternate, record

    def load():  # runs in a process of its own, in which `minisgl` is the tree of one step
        from minisgl.llm import LLM
        ...

    def milliseconds(llm, length): ...  # the same process, with what `load` has returned

    def main():
        with StepProcess(4, load) as before, StepProcess(5, load) as after:
            pair = alternate(partial(before, milliseconds, 64), partial(after, milliseconds, 64))
        record("ch05_kv_cache", "…", [{"length": 64, "before_ms": pair.a, "after_ms": pair.b}])

A run prints its figures beside the recorded ones and says what differs; with `--record` it writes
them instead. Records are data for the book: `bench/check.py` proves that each was made by the
script that is there. Measure on a machine that does nothing else: two busy processes on two cores
slow each other down many times over.
"""

import ast
import hashlib
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import median
from types import ModuleType, TracebackType
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
# Last: what a step's process imports as `minisgl` comes from the step's tree, and `_serve` checks.
sys.path.append(str(ROOT))

from tools.environment import NO_ENVIRONMENT, use_environment  # noqa: E402
from tools.lang import tr  # noqa: E402
from tools.steplib import build, load_steps  # noqa: E402

LIBRARIES = ("torch", "transformers", "safetensors", "tokenizers", "numpy")
MIN_PAIRS = 5
ALIKE = 1.2  # figures of two runs whose ratio is no larger are not worth mentioning
RECORD = "--record"

Figure = str | int | float | bool | None
Row = Mapping[str, Figure]


# --- fair pairs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two subjects measured in turns: their medians, and how they compare.

    `ratio` is the median of the pairs' own a / b, so that a machine which slows down for a while
    slows both sides of it. `spread` is the wider of the two ranges between the quartiles, as a
    fraction of the median: above 0.1 the machine was not quiet.
    """

    a: float
    b: float
    ratio: float
    spread: float


def alternate(a: Callable[[], float], b: Callable[[], float], pairs: int = MIN_PAIRS) -> Pair:
    """Take a figure of `a` and of `b` in turns, a b, b a, a b, …, after one of each to warm up.

    Raises ValueError for fewer than five pairs.
    """
    if pairs < MIN_PAIRS:
        raise ValueError(f"at least {MIN_PAIRS} pairs are needed, not {pairs}")
    a(), b()
    of_a: list[float] = []
    of_b: list[float] = []
    for number in range(pairs):
        turns = ((of_a, a), (of_b, b))
        for figures, take in turns if number % 2 == 0 else reversed(turns):
            figures.append(take())
    ratio = median(x / y for x, y in zip(of_a, of_b, strict=True))
    return Pair(median(of_a), median(of_b), ratio, max(_spread(of_a), _spread(of_b)))


def _spread(figures: Sequence[float]) -> float:
    ordered = sorted(figures)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / median(ordered)


# --- isolated steps ---------------------------------------------------------------------------


class StepProcess:
    """A process in which `minisgl` is the tree of one step and no other copy can be imported.

    `setup` runs there once; calling the object runs another function of the same script on what
    `setup` has returned, and returns its result. Arguments and results travel as JSON. Both
    functions are named at the top level of the script and import what they measure themselves.
    With `step=None` there is no tree: the process of a peer, such as transformers. In both,
    `_step` can be imported (for `model_dir`), and with a step the mains of its tree.

    Raises RuntimeError with one line when a function raises or the process ends; the traceback
    and all that is printed go to stderr.
    """

    def __init__(self, step: int | None, setup: Callable[..., object], *args: object) -> None:
        script = Path(setup.__code__.co_filename).resolve()
        self._what = f"{script.name} on step {step}" if step is not None else script.name
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(step),
            encoding="utf-8",
        )
        try:
            self(setup, *args)
        except BaseException:
            self.close()
            raise

    def __call__(self, function: Callable[..., object], *args: object) -> Any:
        """Run `function(state, *args)` in the process and return its result."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([function.__name__, args]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"{self._what}: the process of {function.__name__} has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self._what}: {function.__name__}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End the process; it may be called twice."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> "StepProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _environment(step: int | None) -> dict[str, str]:
    """The variables of a process that sees one step, computing with all cores it may use."""
    variables = {"OMP_NUM_THREADS": str(cores()), **os.environ, "PYTHONUTF8": "1"}
    variables.pop("MINISGL_TREE", None)
    variables["PYTHONPATH"] = str(ROOT / "examples")
    if step is not None:
        tree = build(load_steps(ROOT), step)
        variables["MINISGL_TREE"] = str(tree)
        variables["PYTHONPATH"] = os.pathsep.join([str(tree), str(tree / "examples")])
    return variables


def _serve(script: Path) -> None:
    """Be the process: one JSON line in, [function, arguments], one out, until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the measured code prints must not mix with the answers
    module = _load(script)
    state: list[object] = []
    for line in sys.stdin:
        name, args = json.loads(line)
        try:
            result = getattr(module, name)(*state, *args)
            _assert_isolated()
            if not state:
                state, result = [result], None
            answer = json.dumps({"result": result})
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            answer = json.dumps({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
        answers.write(answer + "\n")
        answers.flush()


def _load(script: Path) -> ModuleType:
    sys.path.insert(0, str(script.parent))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    spec.loader.exec_module(module)
    return module


def _assert_isolated() -> None:
    tree = Path(os.environ.get("MINISGL_TREE", os.devnull)).resolve()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "minisgl":
            place = Path(module.__file__ or "").resolve()
            assert place.is_relative_to(tree), f"{name} was imported from {place}"


# --- records ----------------------------------------------------------------------------------


def record(key: str, what: str, rows: Iterable[Row], libraries: Iterable[str] = ()) -> None:
    """Print the rows beside those of `bench/KEY.json`; with `--record` make them that record.

    `what` is one sentence that says what was measured, units included; rows are flat, all with
    the same columns. `libraries` are peers whose versions belong in the record.
    """
    script = Path(sys.modules["__main__"].__file__ or "").resolve()
    rounded = [{name: _rounded(figure) for name, figure in row.items()} for row in rows]
    path = script.parent / f"{key}.json"
    print(table(rounded))
    if RECORD not in sys.argv:
        print("\n".join(_compared(path, rounded)), flush=True)
        return
    document = {
        "key": key,
        "what": what,
        "machine": machine(),
        "versions": versions(libraries),
        "date": datetime.now(UTC).date().isoformat(),
        "script": {"path": f"bench/{script.name}", "sha256": script_hash(script)},
        "rows": rounded,
    }
    draft = path.with_suffix(".draft")
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    draft.write_text(text + "\n", "utf-8")
    draft.replace(path)
    print(tr(f"已记录：bench/{path.name}", f"recorded: bench/{path.name}"))


def _compared(path: Path, rows: Sequence[Row]) -> Iterator[str]:
    """The record of an earlier run, in lines, and how these rows differ from it."""
    if not path.is_file():
        yield tr(f"还没有 bench/{path.name}：加 {RECORD} 记录", f"not recorded yet: add {RECORD}")
        return
    document = json.loads(path.read_text("utf-8"))
    before, where = document["rows"], document["machine"]
    place = f"bench/{path.name} ({document['date']}, {where['cpu']}, {where['cores']} cores)"
    yield tr(f"记录 {place}：", f"the record {place}:")
    yield table(before)
    found = list(_differences(before, rows))
    yield from found or [tr("没有明显的不同", "nothing differs by much")]
    yield tr(f"记录没有改动；加 {RECORD} 用这次的替换", f"the record stays; {RECORD} replaces it")


def _differences(before: Sequence[Row], rows: Sequence[Row]) -> Iterator[str]:
    if [list(row) for row in before] != [list(row) for row in rows]:
        yield tr("行数或列与记录的不同", "the rows or columns differ from the recorded ones")
        return
    for old, new in zip(before, rows, strict=True):
        for name, was in old.items():
            if name != "spread" and not _alike(was, new[name]):
                row = next(f"{key}={value}" for key, value in new.items())
                yield f"  {row}  {name}: {was} → {new[name]}"


def _alike(was: Figure, now: Figure) -> bool:
    if isinstance(was, float) and isinstance(now, int | float) and was * now > 0:
        return 1 / ALIKE <= now / was <= ALIKE
    return was == now


def _rounded(figure: Figure) -> Figure:
    """Four significant digits: the rest of a measured figure is noise."""
    if not isinstance(figure, float) or not figure or not math.isfinite(figure):
        return figure
    return round(figure, 3 - math.floor(math.log10(abs(figure))))


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text, the names of the columns first."""
    lines = [list(rows[0]), *([str(figure) for figure in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def script_hash(script: Path) -> str:
    """Return a hash of what a script does, whatever its format, comments and docstrings.

    It is the same on every version of Python, which the text of `ast.dump` is not.
    """
    return _hash(script.read_text("utf-8"))


@cache
def _hash(source: str) -> str:
    return hashlib.sha256(_canonical(ast.parse(source)).encode()).hexdigest()


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _canonical(node: object) -> str:
    if isinstance(node, list):
        return "[" + ",".join(_canonical(one) for one in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.JoinedStr):  # Python 3.12.1 ends some of them with an empty text
        fields["values"] = [part for part in node.values if getattr(part, "value", part) != ""]
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        fields["body"] = fields["body"][1:]
    kept = (
        f"{name}={_canonical(value)}"
        for name, value in fields.items()
        if value not in (None, []) or name == "value"  # a newer Python has more empty fields
    )
    return f"{type(node).__name__}({','.join(kept)})"


def versions(libraries: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in (*LIBRARIES, *libraries):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str | int | float]:
    """Return what figures depend on, and nothing that says whose machine it is."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "os": _os_name(),
    }


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, encoding="utf-8").stdout.strip()
    return platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release().partition('.')[0]}"


def _begin(arguments: list[str]) -> None:
    """Start a benchmark from the command line: check its arguments, find the right Python."""
    script = Path(arguments[0]).resolve()
    if script.parent != BENCH or script.name in ("_bench.py", "check.py"):
        return
    if arguments[1:] not in ([], [RECORD]):
        meaning = tr("把结果写进记录", "the figures become the record")
        raise SystemExit(f"python3 bench/{script.name} [{RECORD}]    # {RECORD}: {meaning}")
    use_environment(ROOT, "torch")
    if importlib.util.find_spec("torch") is None:
        raise SystemExit(tr(*NO_ENVIRONMENT))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
else:
    _begin(sys.argv)
