"""`result.explain()`: every warning of a fit with what it means and what to do."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import moestat
from moestat.base import warnings as kinds
from moestat.estimation.fit.explanation import ADVICE

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "warnings.md"


def fitted(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return moestat.fit("gaussian", x, y, rng=0, **options)


def test_a_separated_gate_is_explained_with_remedies():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    result = fitted(x, np.where(x > 0, 3 + x, -x) + 0.1 * rng.normal(size=60), n_experts=2)
    assert "SeparationWarning" in result.kinds
    assert len(result.kinds) == len(result.notes)
    text = str(result.explain())
    assert text.index("Seen:") < text.index("Means:") < text.index("Do:")
    assert 'prior="weak"' in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_fit_without_warnings_says_so_and_what_its_certificate_does_not_prove():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 300)
    result = fitted(x, x + 0.3 * rng.normal(size=300), n_experts=1)
    text = str(result.explain())
    assert "raised no warning" in text
    assert "Seen" not in text
    assert result.certificate.n_starts < 2 or "not a proof" in text


def test_notes_of_older_files_are_shown_without_advice():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    result = fitted(x, np.where(x > 0, 3 + x, -x) + 0.1 * rng.normal(size=60), n_experts=2)
    old = replace(result, kinds=())
    assert "1. Note\n" in str(old.explain())


def test_an_uncertified_fit_is_not_to_be_reported():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 200)
    y = np.where(rng.random(200) < 0.5, x, 1 - x) + 0.2 * rng.normal(size=200)
    result = fitted(x, y, n_experts=2)
    solution = result.solution
    doubtful = replace(solution.certificate, certified=False)
    result = replace(result, solution=replace(solution, certificate=doubtful))
    assert "not certified" in str(result.explain())


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_every_kind_is_a_warning_and_has_a_section_of_the_guide(name):
    assert issubclass(getattr(kinds, name), kinds.MoEWarning)
    assert re.search(rf"^## {name}$", GUIDE.read_text(), flags=re.MULTILINE)
    assert ADVICE[name].steps
