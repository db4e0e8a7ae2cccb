"""The explorer's picture: it is drawn from the results kept beside its page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.explorer.cases import CASES
from experiments.explorer.figure import RESULT, draw, page, result
from experiments.folders import FIGURES
from moestat.theory.explorer import Exploration


def test_every_case_is_kept_with_its_exponent():
    found = json.loads((FIGURES / RESULT).read_text())
    assert list(found) == list(CASES)
    four = found["softmax-4-order"]
    assert four["exponent"] == pytest.approx(7.93, abs=0.01)
    slope = np.polyfit(np.log(four["loss"]), np.log(four["distance"]), 1)[0]
    assert slope == pytest.approx(four["exponent"], abs=0.01)
    assert found["softmax-22"]["vanishes"]
    left, right = draw(found).axes
    drawn = 1 + sum(case.deviations for case in CASES.values())  # and the theory's lines
    assert len(right.get_legend().get_texts()) == drawn
    grey = [line.get_ydata()[0] for line in right.lines if line.get_color() == "0.6"]
    assert grey == [2, 4, 6, 8]
    shown = " ".join(text.get_text() for text in left.get_legend().get_texts())
    assert "softmax-22" not in shown
    assert "Theorem 1 (mlmoe-1)" in shown
    assert page(found) == (FIGURES / "theory_explorer.md").read_text(encoding="utf-8")


def test_a_case_is_kept_as_it_was_found():
    from experiments.explorer import run_case

    found = run_case("compete-J1-unit")
    assert isinstance(found, Exploration)
    kept = result(CASES["compete-J1-unit"], found)
    assert (kept["vanishes"], kept["exponent"]) == (True, None)
    assert (kept["loss"][0], kept["distance"][0]) == (2.0, 0.0)
