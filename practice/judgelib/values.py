"""Plain values to JSON-ready trees and back; tensors stand outside, by number.

Exact types only. A subclass can answer `True` to every comparison, so nothing that the other side
could have written code for ever gets through: what comes out is made here, of built-in types.
"""

import base64
import binascii
import math
import sys
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 64
INT_BOUND = 2**63
NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# No tuples: their hash has no secret, so a hostile dict could be made of collisions only.
KEY_TYPES = (type(None), bool, int, float, str)


class FrameError(ValueError):
    """A value or a frame that the wire format does not allow; the message says where and why."""

    def at(self, place: str) -> "FrameError":
        """Return the same error, found at `place` of the value that holds it."""
        inner = self.args[0]
        joint = "" if inner.startswith("[") else ": "
        return FrameError(f"{place}{joint}{inner}")


@dataclass
class Packer:
    """Turns one value into a tree of JSON types, and collects its tensors in order."""

    items_left: int

    def __post_init__(self) -> None:
        self.tensors: list[Any] = []

    def pack(self, value: Any, depth: int = 0) -> Any:
        """Return the JSON form of `value`; raises FrameError for all that is not plain."""
        self.items_left -= 1
        if self.items_left < 0:
            raise FrameError("too many items")
        if depth > MAX_DEPTH:
            raise FrameError(f"nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if not -INT_BOUND < value < INT_BOUND:
                raise FrameError("an int of 64 bits or more")
            return value
        if kind is float:
            return value if math.isfinite(value) else {"f": str(value)}
        if kind is str:
            return _clean_text(value)
        if kind is list:
            return self._pack_all(value, depth)
        if kind is tuple:
            return {"u": self._pack_all(value, depth)}
        if kind is dict:
            return {"d": [self._pack_pair(key, item, depth) for key, item in value.items()]}
        if kind is bytes:
            return {"b": base64.b64encode(value).decode("ascii")}
        return self._pack_tensor(value)

    def _pack_all(self, values: Any, depth: int) -> list[Any]:
        packed = []
        for index, item in enumerate(values):
            try:
                packed.append(self.pack(item, depth + 1))
            except FrameError as error:
                raise error.at(f"[{index}]") from None
        return packed

    def _pack_pair(self, key: Any, item: Any, depth: int) -> list[Any]:
        if type(key) not in KEY_TYPES:
            raise FrameError(f"a dict key of type {type(key).__name__}")
        try:
            return [self.pack(key, depth + 1), self.pack(item, depth + 1)]
        except FrameError as error:
            raise error.at(f"[{key!r:.40}]") from None

    def _pack_tensor(self, value: Any) -> dict[str, int]:
        torch = sys.modules.get("torch")
        if torch is None or type(value) is not torch.Tensor:
            raise FrameError(
                f"a {type(value).__name__}: only None, bool, int, float, str, bytes, list, tuple, "
                "dict and plain torch.Tensor can be handed over"
            )
        self.tensors.append(value)
        return {"x": len(self.tensors) - 1}


@dataclass
class Unpacker:
    """Turns a tree of JSON types back into plain values; every wrong shape is a FrameError."""

    tensors: list[Any]
    items_left: int

    def unpack(self, tree: Any, depth: int = 0) -> Any:
        """Return the value that `tree` stands for."""
        self.items_left -= 1
        if self.items_left < 0:
            raise FrameError("too many items")
        if depth > MAX_DEPTH:
            raise FrameError(f"nested more than {MAX_DEPTH} deep")
        kind = type(tree)
        if kind is list:
            return [self.unpack(item, depth + 1) for item in tree]
        if kind is dict:
            return self._unpack_tagged(tree, depth)
        if kind is int and not -INT_BOUND < tree < INT_BOUND:
            raise FrameError("an int of 64 bits or more")
        if kind is str:
            return _clean_text(tree)
        return tree

    def _unpack_tagged(self, tree: dict[str, Any], depth: int) -> Any:
        if len(tree) != 1:
            raise FrameError("an object with other than one tag")
        ((tag, body),) = tree.items()
        kind = type(body)
        if tag == "u" and kind is list:
            return tuple(self.unpack(item, depth + 1) for item in body)
        if tag == "d" and kind is list:
            return self._unpack_dict(body, depth)
        if tag == "f" and kind is str and body in NON_FINITE:
            return NON_FINITE[body]
        if tag == "b" and kind is str:
            try:
                return base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError):
                raise FrameError("bytes that are not base64") from None
        if tag == "x" and kind is int and 0 <= body < len(self.tensors):
            return self.tensors[body]
        raise FrameError(f"an unknown tag {tag!r:.20}")

    def _unpack_dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2:
                raise FrameError("a dict entry that is not a pair")
            key = self.unpack(pair[0], depth + 1)
            if type(key) not in KEY_TYPES:
                raise FrameError(f"a dict key of type {type(key).__name__}")
            if key in result:
                raise FrameError("a dict key given twice")
            result[key] = self.unpack(pair[1], depth + 1)
        return result


def _clean_text(text: str) -> str:
    """Lone surrogates cannot be printed, stored or shown: they stop here."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise FrameError("a str with lone surrogates") from None
    return text
