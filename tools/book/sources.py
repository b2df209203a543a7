"""What pages are generated from: steps, settings, records, problems; each is read once."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

from practice.judgelib.catalogue import Catalogue, load_catalogue
from tools.book.errors import BookError
from tools.book.settings import Settings, load_settings
from tools.book.texts import read_text
from tools.steplib import Book, Step, load_steps, package_files
from tools.steplib.source import decode

BRANCH = "main"
LOCAL = "source:"  # a file's address while the repository has none, see `local.py`
TEXT = r"""f?"[^"]*"|f?'[^']*'"""
TR = re.compile(rf"(?:_step\.)?\btr\(\s*(?P<zh>{TEXT}),\s*(?P<en>{TEXT}),?\s*\)")


class Sources:
    """One repository, seen by the generator."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._packages: dict[int, dict[str, str]] = {}
        self.hashes: dict[int, str] = {}  # of what each main runs on, see `records`

    @cached_property
    def book(self) -> Book:
        """The steps."""
        return load_steps(self.root)

    @cached_property
    def settings(self) -> Settings:
        """docs/book.toml."""
        return load_settings(self.root)

    @cached_property
    def problems(self) -> Catalogue:
        """The practice problems."""
        return load_catalogue(self.root)

    @cached_property
    def repository(self) -> str:
        """The address of the repository, without a slash at the end, or nothing.

        pyproject.toml has it once there is one: `[project.urls]`, `Repository = "…"`.
        """
        try:
            data: dict[str, Any] = tomllib.loads(self.read("pyproject.toml"))
        except tomllib.TOMLDecodeError as error:
            raise BookError(*[f"pyproject.toml: {error}"] * 2) from None
        urls = data.get("project", {}).get("urls", {})
        return str(urls.get("Repository", "")).rstrip("/")

    def blob(self, path: str, lines: str = "") -> str:
        """The address of a file of the repository, at `lines` such as `L3-L9`."""
        where = f"{self.repository}/blob/{BRANCH}/" if self.repository else LOCAL
        return f"{where}{path}" + (f"#{lines}" if lines else "")

    def step_of(self, page: str) -> Step | None:
        """The step whose page this is, if it is a chapter's."""
        return next((step for step in self.book if step.page == page), None)

    def step(self, label: str) -> Step:
        """The step that `ch05` names."""
        for step in self.book:
            if step.label == label:
                return step
        raise BookError(f"没有章节 {label}", f"there is no chapter {label}")

    def package(self, number: int) -> dict[str, str]:
        """Path -> text of the package after a chapter."""
        if number not in self._packages:
            files = package_files(self.book, number)
            self._packages[number] = {path: decode(files[path], path) for path in files}
        return self._packages[number]

    def before(self, step: Step) -> dict[str, str]:
        """What the reader has before a chapter: the package."""
        earlier = self.book.before(step)
        return self.package(earlier.number) if earlier else {}

    def after(self, step: Step, language: str) -> dict[str, str]:
        """What the reader of a page in `language` has typed after a chapter: the package.

        A chapter that writes nothing into the package has its main as what the reader writes.
        """
        files = self.package(step.number)
        if step.writes or step.removes:
            return files
        return files | {step.main: self.main(step, language)}

    def main(self, step: Step, language: str) -> str:
        """An example as a reader of one language would write it: `tr("…", "…")` is that text."""
        body = re.sub(r"(import .*), tr$", r"\1", self.read(step.main), flags=re.MULTILINE)
        return TR.sub(lambda call: call[language], body)

    def read(self, path: str) -> str:
        """The text of a file of the repository; BookError when it cannot be had."""
        return read_text(self.root, path)
