"""Doors of public functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import positive_int


@door()
def flagged(n: int, loud: bool = False, deep: bool | None = None) -> int:
    return n + bool(loud) + bool(deep)


def test_a_flag_is_true_or_false_and_nothing_that_stands_for_it():
    assert flagged(1, True) == flagged(1, deep=np.bool_(True)) == 2
    assert flagged(1, deep=None) == 1
    for wrong in ("x", 1, [True]):
        with pytest.raises(ValueError, match="loud must be True or False, got"):
            flagged(1, wrong)
        with pytest.raises(ValueError, match="deep must be True or False or None, got"):
            flagged(1, deep=wrong)


@door(model="Unseen | None")
def applied(model: Any, counts: Sequence[int] | None = None, how: Literal["a", "b"] = "a") -> float:
    return model.level + sum(counts or ()) + {"a": 1, "b": 2}[how]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "model must be an Unseen or None, got 3"),
        ({"model": np.ones(2)}, "model must be an Unseen or None, got"),
        ({"counts": [1, "x"]}, "counts must be a list, each an integer or None, got"),
        ({"counts": "12"}, "counts must be a list or None, got '12'"),
        ({"counts": [True, None]}, "counts must be a list, each an integer or None, got"),
        ({"how": "c"}, "how must be one of 'a', 'b', got 'c'"),
    ],
)
def test_the_argument_that_does_not_fit_its_type_is_named(arguments, message):
    right = {"model": SimpleNamespace(level=1.0)}
    assert applied(**right) == 2.0
    with pytest.raises(ValueError, match=re.escape(message)):
        applied(**(right | arguments))


@door()
def broken(n: int, x: FloatArray | None = None) -> float:
    if x is not None:
        return float(np.zeros(3) @ x)
    nothing: Any = None
    return nothing + n


@door()
def refusing(n: int) -> int:
    return positive_int("count", -1)


def test_an_error_with_right_arguments_stays_what_it_is():
    with pytest.raises(TypeError, match="NoneType"):
        broken(1)
    with pytest.raises(ValueError, match=r"^count must be an integer >= 1, got -1$"):
        refusing("word")
    with pytest.raises(ValueError, match=re.escape("x of shape (2,) and dtype float64: matmul")):
        broken(1, np.ones(2))
