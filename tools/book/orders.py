"""What the blocks of a finished page ask their reader to do, by their titles alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# What the titles of the two languages ask for. `what` and `other` name code.
ORDERS = {
    "file": (r"整个文件", r"the whole file"),
    "start": (r"新文件，先写 ?(?P<what>.+)", r"a new file, beginning with (?P<what>.+)"),
    "replace": (r"替换 ?(?P<what>.+)", r"replaces (?P<what>.+)"),
    "after": (
        r"新增 (?P<what>.+)，放在 (?P<other>.+) 之后",
        r"new: (?P<what>.+), after (?P<other>.+)",
    ),
    "before": (
        r"新增 (?P<what>.+)，放在 (?P<other>.+) 之前",
        r"new: (?P<what>.+), before (?P<other>.+)",
    ),
    "below": (
        r"新增 (?P<what>.+)，写在 (?P<other>.+) 的下一行",
        r"new: (?P<what>.+), on the line below (?P<other>.+)",
    ),
    "above": (
        r"新增 (?P<what>.+)，写在 (?P<other>.+) 的上一行",
        r"new: (?P<what>.+), on the line above (?P<other>.+)",
    ),
    "delete": (r"删除(?:整个文件| (?P<what>.+))", r"delete (?:the file|(?P<what>.+))"),
    "nothing": (r".+，(?:没有改动|如上)|.+ · ch\d\d|ch\d\d", r".+, (?:unchanged|as above)|ch\d\d"),
}
FENCE = re.compile(
    r'^(?P<marks>`{3,})\w+ title="(?P<title>[^"]+)"[^\n]*\n(?P<body>.*?)\n(?P=marks)$', re.M | re.S
)
DELETE = re.compile(r'^!!! delete "(?P<title>[^"]+)"$', re.M)
HEAD = "@head"


class ReplayError(Exception):
    """A block that leaves its reader without knowing what to do."""


class Order(NamedTuple):
    """A block of the page: what to do, in which file, with which code."""

    act: str
    path: str
    what: str
    other: str
    body: list[str]


def orders(markdown: str, roots: tuple[str, ...]) -> Iterator[Order]:
    """Yield the blocks of a page that concern files under `roots`, in order."""
    found = [*FENCE.finditer(markdown), *DELETE.finditer(markdown)]
    for block in sorted(found, key=re.Match.start):
        path, sign, text = block["title"].partition(" · ")
        if not path.startswith(roots) or not sign:
            continue
        body = block["body"].split("\n") if block.re is FENCE else []
        order = _order(path, text, body)
        if order.act != "nothing":
            yield order


def _order(path: str, text: str, body: list[str]) -> Order:
    for act in ("nothing", *ORDERS):
        for pattern in ORDERS[act]:
            match = re.fullmatch(pattern, text)
            if match:
                said = match.groupdict()
                what, other = (_name(said.get(key) or "") for key in ("what", "other"))
                return Order(act, path, what, other, body)
    raise ReplayError(f"{path}: a reader cannot tell what to do with a block titled {text!r}")


def _name(words: str) -> str:
    """The name of code in the words of a title."""
    if words in ("文件开头", "the top of the file"):
        return HEAD
    top = re.fullmatch(r"(\S+) 的开头|the top of (\S+)", words)
    return f"{top[1] or top[2]}.{HEAD}" if top else words
