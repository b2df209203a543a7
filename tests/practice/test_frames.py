"""The wire: plain values pass unchanged, everything else is refused, hostile bytes too."""

import base64
import contextlib
import json
import math
import random
import socket
import struct
import time
from typing import Any

import pytest
import torch

from practice.judgelib import frames
from practice.judgelib.frames import ANSWER, INPUT, FrameError
from practice.judgelib.tensorbytes import ITEM_BYTES

PLAIN = [
    None,
    True,
    0,
    -(2**63) + 1,
    1.5,
    -0.0,
    1e300,
    math.inf,
    -math.inf,
    "中文 \N{SNOWMAN} \x00 \x1b[31m",
    b"\x00\xff",
    [],
    (),
    {},
    [1, [2, (3, [4.0, None])]],
    (1, "a", (True,)),
    {"a": {1: [2]}, 2: (3,), None: 0, False: 1, 1.5: 2},
]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


def through(value: Any) -> Any:
    """What arrives at the other end of a socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames.send(ours, value)
        return frames.recv(theirs, deadline=time.monotonic() + 5)


def read_bytes(data: bytes, limits: frames.FrameLimits = ANSWER) -> Any:
    """The value of the frame in `data`, with EOFError past its end."""
    left = memoryview(data)

    def fill(buffer: memoryview) -> None:
        nonlocal left
        if len(left) < len(buffer):
            raise EOFError
        buffer[:] = left[: len(buffer)]
        left = left[len(buffer) :]

    return frames.read(fill, limits)


def raw(header: Any, tail: bytes = b"") -> bytes:
    """The bytes of a frame with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">I", len(text)) + text + tail


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and repr(left) == repr(right)


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_pass_unchanged(value: Any) -> None:
    assert same(through(value), value)


def test_nan_passes() -> None:
    assert math.isnan(through([math.nan])[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_pass_unchanged(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    arrived = through({"x": tensor, "row": tensor[1], "scalar": tensor[0, 1]})
    assert type(arrived["x"]) is torch.Tensor
    assert arrived["x"].dtype == dtype
    assert torch.equal(arrived["x"], tensor)
    assert torch.equal(arrived["row"], tensor[1])
    assert arrived["scalar"].shape == ()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6).view(2, 3).T,
        torch.ones(1).expand(3),
        torch.arange(6)[::2],
        torch.empty(0, 5),
        torch.tensor([1 + 2j]).conj(),
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True) * 2,
    ],
    ids=["transposed", "expanded", "strided", "empty", "conjugated", "leaf", "graph"],
)
def test_any_plain_view_passes(tensor: torch.Tensor) -> None:
    arrived = through(tensor)
    assert torch.equal(arrived, tensor.detach()) and arrived.shape == tensor.shape
    assert not arrived.requires_grad


class AlwaysEqual:
    """Says yes to every comparison."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class SlyInt(int):
    """An int that equals everything."""

    __eq__ = AlwaysEqual.__eq__
    __hash__ = int.__hash__


class SlyTensor(torch.Tensor):
    """A tensor of the submission's own kind."""


def cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def deep() -> list[Any]:
    nest: list[Any] = []
    for _ in range(10_000):
        nest = [nest]
    return nest


@pytest.mark.parametrize(
    "value",
    [
        AlwaysEqual(),
        SlyInt(3),
        type("SlyStr", (str,), {})("a"),
        type("SlyList", (list,), {})([1]),
        type("SlyDict", (dict,), {})({1: 2}),
        type("SlyFloat", (float,), {})(1.0),
        {AlwaysEqual(): 1},
        {(1, 2): 1},
        {1, 2},
        object,
        lambda: 1,
        2**63,
        -(2**63),
        1j,
        "\ud800",
        bytearray(b"x"),
        range(3),
        cycle(),
        deep(),
        torch.ones(2).as_subclass(SlyTensor),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, 2).to_sparse(),
        torch.empty(2, device="meta"),
        torch.float32,
        torch.Size([1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(FrameError):
        frames.encode([value], ANSWER)


def test_a_refusal_says_where() -> None:
    with pytest.raises(FrameError, match=r"^\[1\]\['k'\]\[0\]: a SlyInt"):
        frames.encode([0, {"k": (SlyInt(1),)}], ANSWER)


def test_too_large_is_refused_before_it_is_copied() -> None:
    huge = torch.zeros(1).expand(2**30)
    for value in ([0] * 100_001, "x" * (3 << 20), huge, [torch.zeros(1)] * 5000):
        with pytest.raises(FrameError):
            frames.encode(value, ANSWER)
    with pytest.raises(FrameError):
        frames.encode(torch.zeros(1), frames.answer_limits(torch=False))


HOSTILE = {
    "no JSON": raw(b"{"),
    "no UTF-8": raw(b'{"v": "\xff", "t": []}'),
    "not a dict": raw([1]),
    "no t": raw({"v": 1}),
    "more than v and t": raw({"v": 1, "t": [], "x": 1}),
    "t no list": raw({"v": 1, "t": {}}),
    "NaN": raw(b'{"v": NaN, "t": []}'),
    "huge float": raw(b'{"v": 1e999, "t": []}'),
    "huge int": raw(b'{"v": ' + b"9" * 100_000 + b', "t": []}'),
    "64 bits": raw({"v": 2**63, "t": []}),
    "deep": raw(b'{"v": ' + b"[" * 100_000 + b"]" * 100_000 + b', "t": []}'),
    "deep tuples": raw(b'{"v": ' + b'{"u": [' * 100 + b"]}" * 100 + b', "t": []}'),
    "many": raw({"v": [0] * 100_001, "t": []}),
    "surrogate": raw(b'{"v": "\\ud800", "t": []}'),
    "two tags": raw({"v": {"u": [], "d": []}, "t": []}),
    "no tag": raw({"v": {}, "t": []}),
    "unknown tag": raw({"v": {"pickle": "gASVAA=="}, "t": []}),
    "tuple of a str": raw({"v": {"u": "abc"}, "t": []}),
    "float of a list": raw({"v": {"f": []}, "t": []}),
    "float of digits": raw({"v": {"f": "1.0"}, "t": []}),
    "bytes not base64": raw({"v": {"b": "***"}, "t": []}),
    "pair of three": raw({"v": {"d": [[1, 2, 3]]}, "t": []}),
    "list as key": raw({"v": {"d": [[[1], 2]]}, "t": []}),
    "tuple as key": raw({"v": {"d": [[{"u": [1]}, 2]]}, "t": []}),
    "key twice": raw({"v": {"d": [[1, 2], [True, 3]]}, "t": []}),
    "no such tensor": raw({"v": {"x": 0}, "t": []}),
    "negative tensor": raw({"v": {"x": -1}, "t": [["int8", [1], 1]]}, b"x"),
    "tensor by bool": raw({"v": {"x": False}, "t": [["int8", [1], 1]]}, b"x"),
    "unknown dtype": raw({"v": {"x": 0}, "t": [["qint8", [1], 1]]}, b"x"),
    "dtype a list": raw({"v": {"x": 0}, "t": [[["int8"], [1], 1]]}, b"x"),
    "attribute as dtype": raw({"v": {"x": 0}, "t": [["load", [1], 1]]}, b"x"),
    "negative size": raw({"v": {"x": 0}, "t": [["int8", [-1, -1], 1]]}, b"x"),
    "size a bool": raw({"v": {"x": 0}, "t": [["int8", [True], 1]]}, b"x"),
    "size a float": raw({"v": {"x": 0}, "t": [["int8", [1.0], 1]]}, b"x"),
    "more bytes than elements": raw({"v": {"x": 0}, "t": [["int8", [1], 9]]}, b"x" * 9),
    "fewer bytes than elements": raw({"v": {"x": 0}, "t": [["int64", [4], 4]]}, b"xxxx"),
    "huge tensor": raw({"v": {"x": 0}, "t": [["int8", [2**30], 2**30]]}),
    "overflowing shape": raw({"v": {"x": 0}, "t": [["int8", [2**30] * 4, 0]]}),
    "overflowing shape of nothing": raw({"v": {"x": 0}, "t": [["int8", [0, *[2**31 - 1] * 3], 0]]}),
    "overflow at the last size": raw({"v": {"x": 0}, "t": [["int64", [2**30, 2**30, 0], 0]]}),
    "many dims": raw({"v": {"x": 0}, "t": [["int8", [1] * 100, 1]]}, b"x"),
    "many tensors": raw({"v": 1, "t": [["int8", [0], 0]] * 5000}),
    "true of 2": raw({"v": {"x": 0}, "t": [["bool", [1], 1]]}, b"\x02"),
    "entry no list": raw({"v": {"x": 0}, "t": ["int8"]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frames_are_refused(name: str) -> None:
    with pytest.raises(FrameError):
        read_bytes(HOSTILE[name])


def test_a_huge_length_takes_no_memory() -> None:
    with pytest.raises(FrameError):
        read_bytes(struct.pack(">I", 2**32 - 1))


def test_a_cut_frame_ends_in_eof_or_a_refusal() -> None:
    whole = frames.encode({"a": [1, b"xy", torch.arange(3)]}, ANSWER)
    for end in range(len(whole)):
        with pytest.raises((EOFError, FrameError)):
            read_bytes(whole[:end])


def test_any_changed_byte_gives_a_plain_value_or_a_refusal() -> None:
    whole = frames.encode({"a": [1, 2.5, (None, "x")], "b": b"xy", "t": torch.arange(2)}, ANSWER)
    kinds = {type(None), bool, int, float, str, bytes, list, tuple, dict, torch.Tensor}
    for place in range(len(whole)):
        for value in (0x00, 0x22, 0x5B, 0x7B, 0x39, 0xFF):
            changed = bytearray(whole)
            changed[place] = value
            with contextlib.suppress(FrameError, EOFError):
                assert type(read_bytes(bytes(changed))) in kinds


# What a header may be made of: right parts in wrong places, and values at the edges.
EDGES: list[Any] = [None, True, -1, 0, 1, 2, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, 0.5, -0.0]
EDGES += ["", "x", "int8", "bool", "float16", "nan", "-inf", "eHk=", "\u2028", [], {}, [[]]]
TAGS = ["x", "u", "d", "b", "f", "v", "t"]


def any_tree(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.choice(["edge", "list", "tag", "pairs"] if depth < 4 else ["edge"])
    if kind == "edge":
        return rng.choice(EDGES)
    some = [any_tree(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 3]))]
    if kind == "tag":
        return {rng.choice(TAGS): rng.choice([some, rng.choice(EDGES), rng.randrange(-1, 3)])}
    pairs = [[rng.choice(EDGES), one] for one in some]
    return {"d": pairs} if kind == "pairs" else some


def any_entry(rng: random.Random) -> Any:
    shape = [rng.choice([0, 1, 2, 3, 2**15, 2**30, 2**31 - 1]) for _ in range(rng.randrange(18))]
    dtype = rng.choice(list(ITEM_BYTES))
    right = math.prod(shape) * ITEM_BYTES[dtype]
    entry = [dtype, shape, rng.choice([right, right, right, 0, 1, right + 1])]
    if rng.random() < 0.2:
        entry[rng.randrange(3)] = rng.choice(EDGES)
    return entry


@pytest.mark.parametrize("seed", range(4))
def test_any_header_gives_a_plain_value_or_a_refusal(seed: int) -> None:
    rng = random.Random(seed)
    read = 0
    for _ in range(1500):
        entries = [any_entry(rng) for _ in range(rng.choice([0, 1, 1, 2]))]
        body = bytes(rng.choice([0, 1, 0x7F, 0xFF]) for _ in range(rng.choice([0, 1, 64])))
        with contextlib.suppress(FrameError, EOFError):
            frames.encode(read_bytes(raw({"v": any_tree(rng), "t": entries}, body)), INPUT)
            read += 1
    assert read > 100  # what is plain has a frame of its own


def test_bytes_are_the_same_in_base64() -> None:
    tree = json.loads(frames.encode(b"abc", INPUT)[4:])
    assert tree == {"v": {"b": base64.b64encode(b"abc").decode()}, "t": []}


def test_a_late_frame_times_out() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"\x00\x00")
        with pytest.raises(TimeoutError):
            frames.recv(theirs, deadline=time.monotonic() + 0.05)


def test_a_closed_connection_is_eof() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs, pytest.raises(EOFError):
        frames.recv(theirs)
