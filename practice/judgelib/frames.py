"""The wire between judge and box: one frame is one value, and no byte of it can run code.

    frame  = 4 bytes, length of the header, big-endian · header · bytes of the tensors, in order
    header = JSON, UTF-8: {"v": VALUE, "t": [[dtype, shape, nbytes], ...]}
    VALUE  = null | bool | int, |x| < 2**63 | finite float | str | [VALUE, ...]
           | {"u": [VALUE, ...]}           tuple
           | {"d": [[KEY, VALUE], ...]}    dict, its keys null, bool, int, float or str
           | {"b": base64}                 bytes
           | {"f": "nan" | "inf" | "-inf"} float
           | {"x": i}                      tensor i of "t"

Used on both sides. The reader of a frame trusts nothing: every length is checked against a limit
before memory is taken for it.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from practice.judgelib import tensorbytes
from practice.judgelib.values import FrameError, Packer, Unpacker

__all__ = ["INPUT", "FrameError", "FrameLimits", "answer_limits", "encode", "read", "recv", "send"]

MAX_DIGITS = 20


@dataclass(frozen=True)
class FrameLimits:
    """What one frame may hold: bytes of its header, bytes of all its tensors, and how many."""

    header_bytes: int
    tensor_bytes: int
    items: int
    tensors: int


# What a submission may answer to one case: the judge's memory stays bounded.
ANSWER = FrameLimits(header_bytes=2 << 20, tensor_bytes=16 << 20, items=100_000, tensors=4096)
# What the judge itself sends: sources of a whole tree, inputs of large cases.
INPUT = FrameLimits(header_bytes=32 << 20, tensor_bytes=256 << 20, items=2_000_000, tensors=65_536)


def answer_limits(torch: bool) -> FrameLimits:
    """Return the limits of an answer; without torch the judge never loads it to read a tensor."""
    return ANSWER if torch else replace(ANSWER, tensors=0)


def encode(value: Any, limits: FrameLimits) -> bytes:
    """Return the frame of `value`; raises FrameError where it is not plain or too large."""
    packer = Packer(limits.items)
    tree = packer.pack(value)
    if len(packer.tensors) > limits.tensors:
        raise FrameError(f"{len(packer.tensors)} tensors, where at most {limits.tensors} may be")
    entries = [tensorbytes.describe(tensor) for tensor in packer.tensors]
    if sum(entry[2] for entry in entries) > limits.tensor_bytes:
        raise FrameError(f"tensors of more than {limits.tensor_bytes >> 20} MiB in all")
    header = json.dumps({"v": tree, "t": entries}, separators=(",", ":")).encode("ascii")
    if len(header) > limits.header_bytes:
        raise FrameError(f"values of more than {limits.header_bytes >> 20} MiB in all")
    _count(header, limits)
    bodies = [
        tensorbytes.to_bytes(tensor, entry[2])
        for tensor, entry in zip(packer.tensors, entries, strict=True)
    ]
    return b"".join([struct.pack(">I", len(header)), header, *bodies])


def read(fill: Callable[[memoryview], None], limits: FrameLimits) -> Any:
    """Return the value of the next frame, whose bytes `fill` writes into the buffers it is given.

    Raises FrameError for a malformed frame, and whatever `fill` raises.
    """
    (length,) = struct.unpack(">I", _take(fill, 4))
    if length > limits.header_bytes:
        raise FrameError(f"a header of {length} bytes")
    header = _take(fill, length)
    _count(header, limits)
    tree, entries = _parse(header)
    if len(entries) > limits.tensors:
        raise FrameError("too many tensors")
    if sum(tensorbytes.check_description(entry) for entry in entries) > limits.tensor_bytes:
        raise FrameError("too many bytes of tensors")
    tensors = [tensorbytes.from_bytes(entry, _take(fill, entry[2])) for entry in entries]
    return Unpacker(tensors, limits.items).unpack(tree)


def send(sock: socket.socket, value: Any, limits: FrameLimits = INPUT) -> None:
    """Write one frame to a blocking socket."""
    sock.sendall(encode(value, limits))


def recv(sock: socket.socket, limits: FrameLimits = INPUT, deadline: float | None = None) -> Any:
    """Read one frame from a socket, until `deadline` (of `time.monotonic`).

    Raises EOFError where the other side is gone, TimeoutError, FrameError.
    """

    def fill(buffer: memoryview) -> None:
        while len(buffer):
            if deadline is not None:
                sock.settimeout(max(deadline - time.monotonic(), 1e-3))
            count = sock.recv_into(buffer)
            if count == 0:
                raise EOFError("the other side closed the connection")
            buffer = buffer[count:]

    return read(fill, limits)


def _take(fill: Callable[[memoryview], None], count: int) -> bytearray:
    data = bytearray(count)
    fill(memoryview(data))
    return data


def _count(header: bytes | bytearray, limits: FrameLimits) -> None:
    """Refuse what is far too many items before a parser makes an object of each."""
    if header.count(b",") > 4 * limits.items:
        raise FrameError("too many items")


def _parse(header: bytearray) -> tuple[Any, list[Any]]:
    try:
        document = json.loads(
            header.decode("utf-8"),
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_parse_constant,
        )
    except (ValueError, RecursionError):
        raise FrameError("a header that is not JSON") from None
    if type(document) is not dict or document.keys() != {"v", "t"}:
        raise FrameError("a header without v and t")
    if type(document["t"]) is not list:
        raise FrameError("a header whose t is not a list")
    return document["v"], document["t"]


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise FrameError("an int of 64 bits or more")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise FrameError("a float out of range")
    return value


def _parse_constant(name: str) -> float:
    raise FrameError(f"{name} in the header")
