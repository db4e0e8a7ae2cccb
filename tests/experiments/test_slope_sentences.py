"""The page of sentences on slopes: laws, shares and what is marked as false."""

import numpy as np
import pytest

from experiments.pages.slope_sentences import DESIGNS, LAWS, page, shares

SIZES = np.geomspace(1e4, 1e6, 6)


def test_twenty_laws_have_each_word():
    assert len(LAWS) == 20
    assert {law.truth for law in LAWS} == {"slower", "this exponent", "faster"}


@pytest.mark.parametrize(
    ("place", "said", "not_said"),
    [(0, "this exponent", "faster"), (12, "", "not slower"), (17, "faster", "this exponent")],
)
def test_clear_laws_are_told_apart(place, said, not_said):
    found = shares(LAWS[place], SIZES, 20, runs=40)
    assert found[not_said] < 0.1
    assert not said or found[said] > 0.8
    assert found["covers"] > 0.8


def test_the_page_marks_sentences_that_are_false():
    said = {"not slower": 1.0, "this exponent": 1.0, "faster": 0.0, "changing": 0.0, "covers": 0.9}
    text = page([dict.fromkeys(DESIGNS, said) for _ in LAWS])
    assert "| n^(-1/4) | -1/2 | slower | **100** | **100** | 0 | 0 | 90 |" in text
    assert "| n^(-1/2), log-normal | -1/2 | this exponent | 100 | 100 | 0 | 0 | 90 |" in text
