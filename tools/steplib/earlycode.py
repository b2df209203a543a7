"""Rule 2: a step holds what its main and tests need, and nothing that only comes later."""

from collections.abc import Iterator, Mapping

from .build import CONFTEST, live_tests, package_files
from .closure import Import, closure, missing, provides
from .manifest import Book, Step
from .names import Definition, attributes, definitions, uses, uses_outside_annotations
from .source import decode
from .storage import written_by


def code_problems(book: Book, number: int, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield unreached files, imports that find nothing, and names without a use.

    `files` is the assembled folder of step `number`.
    """
    roots = [book[number].main, *live_tests(book, number), CONFTEST]
    used_files = closure(files, roots)
    package = [path for path in files if path.startswith("minisgl/")]
    for path in package:
        if path not in used_files:
            yield f"{path} is not reached from the step's main or tests"
    yield from _import_problems(book, number, files)
    yield from _name_problems(book, number, files, package)
    yield from _promise_problems(book, number, files)


def promises(book: Book, number: int) -> dict[str, int]:
    """Return what the steps up to `number` may name ahead: name -> the chapter it waits for."""
    return {name: at for step in book.up_to(number) for name, at in step.ahead.items()}


def _import_problems(book: Book, number: int, files: Mapping[str, bytes]) -> Iterator[str]:
    ahead = promises(book, number)
    for path in (path for path in files if path.endswith(".py")):
        for wanted in missing(files, path):
            where = f"{path}:{wanted.line}"
            if ahead.get(wanted.dotted, 0) <= number:
                yield f"{where}: {wanted.dotted} is not in the tree"
            elif not wanted.typing:
                yield f"{where}: {wanted.dotted} is allowed ahead in annotations only"
            elif wanted.name:
                for line in uses_outside_annotations(decode(files[path], path), path, wanted.name):
                    yield f"{path}:{line}: {wanted.name} is allowed ahead in annotations only"


def _name_problems(
    book: Book, number: int, files: Mapping[str, bytes], package: list[str]
) -> Iterator[str]:
    ahead = promises(book, number)
    unused = unused_names(files, package)
    for one in unused:
        waits_for = ahead.get(one.dotted, 0)
        if waits_for > number:
            if not one.annotated_field:
                yield f"{one.path}:{one.first}: [ahead] can excuse a field, not {one.qualname}"
            continue
        later = _first_use(book, number, one.name)
        why = f"only {later.label} uses it" if later else "nothing uses it"
        yield f"{one.path}:{one.first}: {one.qualname}: {why}"


def unused_names(files: Mapping[str, bytes], package: list[str]) -> list[Definition]:
    """Return the definitions of the package whose name nothing in `files` uses."""
    places: dict[str, set[tuple[str, int]]] = {}
    sources = {path: decode(files[path], path) for path in files if path.endswith(".py")}
    for path, text in sources.items():
        for name, line in uses(text, path):
            places.setdefault(name, set()).add((path, line))
    native = "\n".join(
        files[path].decode("utf-8", "replace") for path in package if path not in sources
    )
    found: dict[str, Definition] = {}
    for path in package:
        for one in definitions(sources[path], path) if path in sources else ():
            used = any(
                other != path or not one.first <= line <= one.last
                for other, line in places.get(one.name, ())
            )
            if not used and one.name not in native:
                found.setdefault(one.dotted, one)
    return list(found.values())


def _first_use(book: Book, number: int, name: str) -> Step | None:
    for step in book:
        if step.number > number:
            mine = [version.location for version in written_by(book, step)]
            mine += [book.root / path for path in (step.main, *step.tests)]
            for location in mine:
                if location.suffix == ".py" and location.is_file():
                    where = str(location)
                    text = decode(location.read_bytes(), where)
                    if any(used == name for used, _ in uses(text, where)):
                        return step
    return None


def _promise_problems(book: Book, number: int, files: Mapping[str, bytes]) -> Iterator[str]:
    """A field that waits for a chapter is neither read nor set elsewhere before it."""
    for name, chapter in promises(book, number).items():
        owner = _field(files, name)
        if owner is None and name in book[number].ahead and not _is_asked_for(files, name):
            yield f"[ahead] {name}: the step does not name it"
        if name in book[number].ahead and chapter <= number:
            yield f"[ahead] {name}: chapter {chapter} is not a later one"
        elif owner and chapter > number:
            for path, line in _places(files, owner):
                yield f"{path}:{line}: {owner.qualname} waits for chapter {chapter} ([ahead])"


def _field(files: Mapping[str, bytes], dotted: str) -> Definition | None:
    """Return the definition in the package that an entry of `[ahead]` means, if it is one."""
    for path in files:
        if path.startswith("minisgl/") and path.endswith(".py"):
            for one in definitions(decode(files[path], path), path):
                if one.dotted == dotted:
                    return one
    return None


def _is_asked_for(files: Mapping[str, bytes], dotted: str) -> bool:
    paths = [path for path in files if path.endswith(".py")]
    return any(wanted.dotted == dotted for path in paths for wanted in missing(files, path))


def _places(files: Mapping[str, bytes], owner: Definition) -> Iterator[tuple[str, int]]:
    """Where package code outside the owner's file reads or sets a field of that name."""
    for path in files:
        if path.startswith("minisgl/") and path.endswith(".py") and path != owner.path:
            for name, line in sorted(attributes(decode(files[path], path), path)):
                if name == owner.name:
                    yield path, line


def promise_problems(book: Book) -> Iterator[str]:
    """Yield what `[ahead]` promises and its chapter does not bring: a class, the use of a field."""
    for name, chapter in promises(book, book.last.number).items():
        if chapter in {step.number for step in book}:
            files = package_files(book, chapter)
            module, _, last = name.rpartition(".")
            owner = _field(files, name)
            there = provides(files, Import(module, last, 0, True))
            if not there and not (owner and any(_places(files, owner))):
                yield f"[ahead] {name}: chapter {chapter} does not bring it"


def promises_to_come(book: Book) -> dict[str, int]:
    """Return the promises whose chapter is not written yet."""
    last = book.last.number
    return {name: at for name, at in promises(book, last).items() if at > last}
