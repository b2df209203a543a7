"""What pages are generated from: steps, settings, records, problems; each is read once."""

from __future__ import annotations

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
        """Path -> text of what a chapter's reader has typed: the package; its main in ch00.

        A chapter that writes nothing into the package has its main as what the reader writes.
        """
        if number not in self._packages:
            files = package_files(self.book, number)
            texts = {path: decode(content, path) for path, content in files.items()}
            step = self.book[number]
            if not step.writes and not step.removes:
                texts[step.main] = self.read(step.main)
            self._packages[number] = texts
        return self._packages[number]

    def before(self, step: Step) -> dict[str, str]:
        """What the reader has before a chapter; mains are not part of it."""
        earlier = self.book.before(step)
        files = self.package(earlier.number) if earlier else {}
        return {path: text for path, text in files.items() if not path.startswith("examples/")}

    def read(self, path: str) -> str:
        """The text of a file of the repository; BookError when it cannot be had."""
        return read_text(self.root, path)
