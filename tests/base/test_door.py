"""Doors of public functions."""

from __future__ import annotations

import numpy as np
import pytest

from moestat.base.door import door


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
