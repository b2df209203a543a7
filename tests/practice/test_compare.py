"""Comparison: exact types, exact values or a tolerance, and the first wrong index."""

import math
from typing import Any

import pytest
import torch

from practice.judgelib.compare import compare


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2.5, math.nan, math.inf, "x", b"x", [1, [2]], (1,), {"a": [1], 2: None}, []],
)
def test_a_value_equals_itself(value: Any) -> None:
    assert compare(value, value).equal


@pytest.mark.parametrize(
    ("expected", "got", "where", "reason"),
    [
        (1, True, "", "the type must be int, got bool"),
        (1, 1.0, "", "the type must be int, got float"),
        ([1], (1,), "", "the type must be list, got tuple"),
        ([1, 2, 3], [1, 9, 9], "[1]", "the values differ"),
        ([1, 2], [1, 2, 3], "[2]", "the length must be 2, got 3"),
        ([1, 2], [9], "[0]", "the values differ"),
        ({"a": 1}, {}, "", "key 'a' is missing"),
        ({"a": 1}, {"a": 1, "b": 2}, "", "there is a key 'b'"),
        ({1: 1}, {True: 1}, "", "key 1 is missing"),
        ([{"a": [0, 1]}], [{"a": [0, 2]}], "[0]['a'][1]", "the values differ"),
        (math.inf, -math.inf, "", "error inf, allowed 0"),
        (math.nan, 0.0, "", "error inf, allowed 0"),
        (0.0, math.nan, "", "error inf, allowed 0"),
        (None, 0, "", "the type must be NoneType, got int"),
    ],
)
def test_the_first_difference_is_named(expected: Any, got: Any, where: str, reason: str) -> None:
    found = compare(expected, got).difference
    assert found is not None
    assert (found.where, found.reason.en) == (where, reason)


def test_tolerance_is_absolute_and_for_floats_only() -> None:
    assert compare(1.0, 1.05, 0.1).equal
    assert not compare(1.0, 1.2, 0.1).equal
    assert not compare(1, 2, 5.0).equal
    assert not compare(0.0, math.nan, 1.0).equal
    assert compare([1.0, 5.0], [1.01, 5.03], 0.1).error == pytest.approx(0.03)


def test_tensors_compare_dtype_shape_and_values() -> None:
    one = torch.arange(6.0).reshape(2, 3)
    other = one.clone()
    assert compare(one, other).equal
    other[1, 2] += 0.5
    found = compare([one], [other], 0.1).difference
    assert found is not None and found.where == "[0][1, 2]"
    assert (found.expected, found.got) == (5.0, 5.5)
    assert compare(one, other, 0.6).equal and compare(one, other, 0.6).error == 0.5
    for wrong, words in (
        (one.double(), "the dtype must be torch.float32, got torch.float64"),
        (one.flatten(), "the shape must be [2, 3], got [6]"),
        (one.tolist(), "the type must be Tensor, got list"),
    ):
        difference = compare(one, wrong, 9.0).difference
        assert difference is not None and difference.reason.en == words


def test_nan_in_a_tensor_equals_only_nan() -> None:
    nan = torch.tensor([1.0, math.nan, math.inf])
    assert compare(nan, nan.clone(), 1e-3).equal
    assert not compare(nan, torch.tensor([1.0, 0.0, math.inf]), 1e9).equal
    assert not compare(torch.zeros(3), nan, 1e9).equal
    assert not compare(nan, torch.tensor([1.0, math.nan, -math.inf]), 1e9).equal


def test_whole_numbers_and_bools_in_tensors_are_exact() -> None:
    found = compare(torch.tensor([1, 2]), torch.tensor([1, 3]), 5.0).difference
    assert found is not None and found.where == "[1]"
    assert not compare(torch.tensor(True), torch.tensor(False), 1.0).equal
    assert compare(torch.zeros(0, 3), torch.zeros(0, 3), 1e-3).equal


def test_a_subclass_that_is_equal_to_everything_is_not() -> None:
    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    assert not compare(5, Same(5)).equal
