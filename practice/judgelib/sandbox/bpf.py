"""A very small assembler for the classic BPF programs that seccomp runs.

A program sees one system call: its number, the machine, and six arguments of 64 bits, which it
reads in halves of 32. Every path ends in a verdict.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

ALLOW = 0x7FFF_0000
KILL = 0x8000_0000


def refuse(code: int) -> int:
    """Return the verdict "the call fails with this errno"."""
    return 0x0005_0000 | code


# struct seccomp_data of <linux/seccomp.h>: offsets; both machines are little-endian.
NUMBER, ARCH = 0, 4
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def low(argument: int) -> int:
    """Return the offset of the lower half of an argument, all that an `int` parameter reads."""
    return 16 + 8 * argument


def high(argument: int) -> int:
    """Return the offset of the upper half of an argument."""
    return low(argument) + 4


@dataclass(frozen=True)
class Instruction:
    """One instruction: the code, the jumps if true and if false, and its constant."""

    code: int
    constant: int
    if_true: int = 0
    if_false: int = 0


def load(offset: int) -> Instruction:
    """Read 32 bits of the call's description."""
    return Instruction(_LOAD, offset)


def give(verdict: int) -> Instruction:
    """End with a verdict."""
    return Instruction(_RETURN, verdict)


def unless_equal(constant: int, skip: int) -> Instruction:
    """Go on where the value read is `constant`, else jump over `skip` instructions."""
    return Instruction(_EQUAL, constant, 0, skip)


def if_equal(constant: int, skip: int) -> Instruction:
    """Jump over `skip` instructions where the value read is `constant`."""
    return Instruction(_EQUAL, constant, skip, 0)


def unless_at_least(constant: int, skip: int) -> Instruction:
    """Go on where the value read is `constant` or more, else jump over `skip` instructions."""
    return Instruction(_AT_LEAST, constant, 0, skip)


def if_any_bit(mask: int, skip: int) -> Instruction:
    """Jump over `skip` instructions where the value read has a bit of `mask`."""
    return Instruction(_ANY_BIT, mask, skip, 0)


def assemble(program: Iterable[Instruction]) -> bytes:
    """Return the bytes of a `struct sock_filter` array; raises struct.error for a jump too far."""
    return b"".join(
        struct.pack("<HBBI", item.code, item.if_true, item.if_false, item.constant)
        for item in program
    )
