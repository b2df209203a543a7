"""Read `steps/chNN_name/step.toml`: what each chapter writes, removes, runs and tests."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tools.lang import tr

from .errors import StepError

FOLDER = re.compile(r"ch(\d{2})_(\w+)")
TYPES: dict[str, type] = {
    "part": int,
    "page": str,
    "main": str,
    "concept": str,
    "overrun": str,
    "title": dict,
    "tests": list,
    "writes": list,
    "removes": list,
    "retires": list,
    "ahead": dict,
}
OPTIONAL = {"overrun", "retires", "ahead"}
PLACES = {"main": "examples/", "tests": "tests/", "writes": "minisgl/", "removes": "minisgl/"}


@dataclass(frozen=True)
class Retirement:
    """A test that a chapter ends: `by` takes its place, `why` says what changed."""

    test: str
    by: str
    why: str


@dataclass(frozen=True)
class Step:
    """One chapter as its manifest states it; paths are relative to the repository root."""

    folder: Path
    number: int
    name: str
    part: int
    page: str
    main: str
    concept: str
    title: dict[str, str]
    tests: tuple[str, ...]
    writes: tuple[str, ...]
    removes: tuple[str, ...]
    retires: tuple[Retirement, ...] = ()
    ahead: dict[str, int] = field(default_factory=dict)
    overrun: str = ""

    @property
    def label(self) -> str:
        """The chapter as error messages name it: `ch05`."""
        return f"ch{self.number:02}"


@dataclass(frozen=True)
class Book:
    """All steps of a repository, in order."""

    root: Path
    steps: tuple[Step, ...]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, number: int) -> Step:
        """Return step `number`, or raise StepError that names the steps there are."""
        for step in self.steps:
            if step.number == number:
                return step
        first, last = self.steps[0].number, self.last.number
        raise StepError(
            tr(
                f"没有第 {number} 步：现有第 {first} 到 {last} 步",
                f"there is no step {number}: the steps are {first} to {last}",
            )
        )

    @property
    def last(self) -> Step:
        """The newest step, whose tree is the shipped package."""
        return self.steps[-1]

    def up_to(self, number: int) -> tuple[Step, ...]:
        """Return the steps with a number of at most `number`."""
        return tuple(step for step in self.steps if step.number <= number)

    def before(self, step: Step) -> Step | None:
        """Return the step that comes before `step`, None for the first."""
        earlier = self.up_to(step.number - 1)
        return earlier[-1] if earlier else None


def load_steps(root: Path) -> Book:
    """Read every manifest under `root/steps`; StepError on the first that is not well formed."""
    folders = sorted(path.parent for path in (root / "steps").glob("*/step.toml"))
    steps = tuple(_load(folder, root) for folder in folders)
    if not steps:
        raise StepError(f"{root / 'steps'}: no chNN_name/step.toml in it")
    numbers = [step.number for step in steps]
    for number in numbers:
        if numbers.count(number) > 1:
            raise StepError(f"steps: two folders for chapter {number:02}")
    return Book(root, steps)


def _load(folder: Path, root: Path) -> Step:
    where = (folder / "step.toml").relative_to(root).as_posix()
    matched = FOLDER.fullmatch(folder.name)
    if not matched:
        raise StepError(f"{where}: the folder is not named chNN_name")
    try:
        data = tomllib.loads((folder / "step.toml").read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StepError(f"{where}: {error}") from None
    _check_types(data, where)
    _check_paths(data, where)
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
    }
    values["retires"] = tuple(_retirement(entry, where) for entry in data.get("retires", ()))
    return Step(folder=folder, number=int(matched[1]), name=folder.name, **values)


def _check_types(data: dict[str, Any], where: str) -> None:
    for key in data:
        if key not in TYPES:
            raise StepError(f"{where}: unknown key `{key}`")
    for key, kind in TYPES.items():
        if key not in data:
            if key not in OPTIONAL:
                raise StepError(f"{where}: key `{key}` is missing")
        elif type(data[key]) is not kind:
            raise StepError(f"{where}: `{key}` must be of type {kind.__name__}")
    if set(data["title"]) != {"zh", "en"}:
        raise StepError(f"{where}: `title` must have the keys zh and en")
    for name, chapter in data.get("ahead", {}).items():
        if type(chapter) is not int or not re.fullmatch(r"minisgl(\.\w+)+", name):
            raise StepError(f'{where}: [ahead] needs "minisgl.module.Name" = chapter, not {name!r}')


def _check_paths(data: dict[str, Any], where: str) -> None:
    for key, place in PLACES.items():
        paths = [data[key]] if key == "main" else data[key]
        for path in paths:
            if not isinstance(path, str) or not _is_plain(path) or not path.startswith(place):
                raise StepError(f"{where}: `{key}`: {path!r} is not a plain path under {place}")
            if paths.count(path) > 1:
                raise StepError(f"{where}: `{key}` names {path} twice")
    both = set(data["writes"]) & set(data["removes"])
    if both:
        raise StepError(f"{where}: writes and removes {min(both)}")


def _is_plain(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return path == "/".join(parts) and ".." not in parts and "\\" not in path and path[0] != "/"


def _retirement(entry: Any, where: str) -> Retirement:
    if not isinstance(entry, dict) or set(entry) != {"test", "by", "why"}:
        raise StepError(f"{where}: each of `retires` needs exactly the keys test, by and why")
    if not all(isinstance(value, str) and value for value in entry.values()):
        raise StepError(f"{where}: test, by and why of `retires` are texts, none of them empty")
    return Retirement(**entry)
