"""The explorer's picture: it is drawn from what its page shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.explorer.cases import CASES
from experiments.explorer.figure import draw, ladders
from experiments.folders import FIGURES


def test_every_case_of_the_page_is_read_with_its_exponent():
    found = {each.name: each for each in ladders((FIGURES / "theory_explorer.md").read_text())}
    assert list(found) == list(CASES)
    four = found["softmax-4-order"]
    assert four.exponent == pytest.approx(7.93, abs=0.01)
    slope = np.polyfit(np.log(four.loss), np.log(four.distance), 1)[0]
    assert slope == pytest.approx(four.exponent, abs=0.01)
    assert math.isinf(found["softmax-22"].exponent)
    left, right = draw(list(found.values())).axes
    assert len(right.get_legend().get_texts()) == sum(case.deviations for case in CASES.values())
    assert "softmax-22" not in {text.get_text() for text in left.get_legend().get_texts()}
