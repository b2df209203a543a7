"""Fixtures and rules of every test run: at the root, in a built step, in a reader's workspace."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
TREE = Path(os.environ.get("MINISGL_TREE") or HERE).resolve()

# Threads that spin while they wait make torch ten times slower wherever other processes run too;
# OpenMP reads this when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(TREE))
sys.path.append(str(HERE / "examples"))

# Test or test file that a later chapter has ended -> why; and those left out of this run.
_retired: dict[str, str] = {}
_left_out: dict[str, str] = {}
# Test file of which a check of the last step has proved all -> how many tests it has.
_proved: dict[str, int] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "leave out the test files that `steps.py check` has proved on what lies here now"
    parser.addoption("--without-proved", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Learn what is retired, from what a built step carries or from the manifests."""
    stored = HERE / "tests" / "retired.json"
    if stored.is_file():
        _retired.update(json.loads(stored.read_text("utf-8")))
    elif (HERE / "steps").is_dir():
        from tools.steplib import StepError, load_steps, proved, retirements

        try:
            book = load_steps(HERE)
            if config.getoption("--without-proved"):
                _proved.update(proved(book))
        except StepError as error:
            raise pytest.UsageError(str(error)) from None
        _retired.update(retirements(book, book.last.number))


def pytest_report_header() -> list[str]:
    known = f"{sum(_proved.values())} results known from the last step's check"
    return [known] if _proved else []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A file that is retired as a whole may import what is gone; what is proved is left out."""
    if not collection_path.is_relative_to(HERE):
        return None
    name = collection_path.relative_to(HERE).as_posix()
    if name in _retired:
        _left_out[name] = _retired[name]
    return True if name in _retired or name in _proved else None


def _is_part(nodeid: str, test: str) -> bool:
    return nodeid == test or nodeid.startswith((f"{test}::", f"{test}["))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept: list[pytest.Item] = []
    gone: list[pytest.Item] = []
    for item in items:
        reasons = [why for test, why in _retired.items() if _is_part(item.nodeid, test)]
        (gone if reasons else kept).append(item)
        if reasons:
            _left_out[item.nodeid] = reasons[0]
    if gone:
        items[:] = kept
        config.hook.pytest_deselected(items=gone)


def pytest_report_collectionfinish() -> list[str]:
    return [f"retired: {name}: {why}" for name, why in _left_out.items()]


@pytest.fixture(autouse=True)
def _package_is_of_this_tree() -> Iterator[None]:
    """A test must never see another copy of the package than the one it is about."""
    yield
    ours = [name for name in [*sys.modules] if name == "minisgl" or name.startswith("minisgl.")]
    for name in ours:
        place = _resolved(sys.modules[name].__file__ or "")
        assert place.is_relative_to(TREE / "minisgl"), f"{name} was imported from {place}"


@cache
def _resolved(path: str) -> Path:
    return Path(path).resolve()


@pytest.fixture(scope="session")
def real_model() -> Path:
    """The folder of the real model; a test that asks for it fails where there is none."""
    try:
        return importlib.import_module("_step").model_dir()
    except SystemExit as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function from an architecture's name to the folder of a tiny random model of it."""
    from tiny_models import make_tiny_model

    made: dict[str, Path] = {}

    def folder_of(arch: str) -> Path:
        if arch not in made:
            made[arch] = make_tiny_model(arch, tmp_path_factory.mktemp(arch))
        return made[arch]

    return folder_of
