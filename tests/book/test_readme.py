"""Figures in the READMEs are those of the records."""

import shutil
from pathlib import Path

import pytest

from tools.book.readme import NAMES, SOURCE, readme_faults
from tools.book.sources import Sources

ROOT = Path(__file__).resolve().parents[2]


def faults(root: Path, name: str, old: str, new: str) -> list[str]:
    """What the check says of a README in which `old` is `new`."""
    shutil.copytree(ROOT / "bench", root / "bench")
    text = (ROOT / name).read_text("utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new, 1), "utf-8")
    return [str(one) for one in readme_faults(Sources(root))]


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_says_what_the_records_say(name: str, tmp_path: Path) -> None:
    assert len(SOURCE.findall((ROOT / name).read_text("utf-8"))) > 10
    assert faults(tmp_path, name, "", "") == []


@pytest.mark.parametrize("name", NAMES)
def test_another_digit_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    lines = (ROOT / name).read_text("utf-8").split("\n")
    number = next(at for at, line in enumerate(lines, 1) if " ×<!--" in line)
    [fault] = faults(tmp_path, name, " ×<!--", "1 ×<!--")
    assert fault.startswith(f"{name}:{number}: ")


@pytest.mark.parametrize("old", ["ch05_kv_cache[", "length=1024", ".ratio"])
def test_a_record_that_is_not_there(old: str, tmp_path: Path) -> None:
    assert faults(tmp_path, "README.md", old, "_" + old)
