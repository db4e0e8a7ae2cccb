"""Least-favourable pairs: Le Cam's bound, the distance of blocks, and the page of kept pairs."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from experiments.explorer import CASES
from experiments.folders import FIGURES
from experiments.least_favourable import pairs
from experiments.least_favourable.measured import measured
from experiments.least_favourable.page import own_size, write
from experiments.least_favourable.pairs import bound_at, cases, hausdorff, two_point


@pytest.mark.parametrize("n", [1, 10, 100])
def test_the_bound_is_below_the_two_point_risk_of_normal_means(n):
    # Total variation and Hellinger distance of N(0, 1 / n) and N(mu, 1 / n) are known.
    mu = 0.2
    squared = 1.0 - math.exp(-(mu**2) / 8.0)
    exact = mu * (1.0 - (2.0 * norm.cdf(0.5 * mu * math.sqrt(n)) - 1.0)) / 4.0
    found = two_point(mu, squared, n)
    assert 0.0 < found <= exact
    # The mean of n observations has the risk (2 / (pi n))^(1/2) at both: no bound is above it.
    assert found <= math.sqrt(2.0 / (math.pi * n))


def test_a_pair_that_is_told_apart_bounds_nothing():
    assert two_point(1.0, 0.5, 1e4) < 1e-12
    assert two_point(1.0, 0.0, 1e14) == 0.25


def test_the_best_pair_counts_at_each_size():
    wide = {"errors": {"b": 0.1}, "squared": 1e-4}
    narrow = {"errors": {"b": 0.01}, "squared": 1e-8}
    assert bound_at([wide, narrow], "b", 10.0) > 0.02
    assert bound_at([wide, narrow], "b", 1e7) == two_point(0.01, 1e-8, 1e7)
    assert own_size(narrow) == pytest.approx(5e7)


def test_the_distance_of_blocks_is_a_metric():
    rng = np.random.default_rng(0)
    one, two, three = (rng.normal(size=(k, 2)) for k in (2, 3, 4))
    assert hausdorff(one, two) == hausdorff(two, one) > 0.0
    assert hausdorff(one, three) <= hausdorff(one, two) + hausdorff(two, three)
    assert hausdorff(one, one[[1, 0, 1]]) == 0.0


def test_every_truth_stands_once():
    names = [case.name for case in cases()]
    assert "softmax-2" in names
    assert "softmax-2-order" not in names
    assert "attention-3" not in names  # its loss is to a set


def test_what_was_measured_is_of_the_same_truth_and_cells():
    found = measured(CASES["mlmoe-1"], "b", FIGURES)
    assert (found.sweep, found.curve, found.cell) == ("microscope_mlmoe", "sigmoid, k = 3", "two")
    assert measured(CASES["mlmoe-1"], "no such block", FIGURES) is None


@pytest.mark.slow
def test_the_shipped_page_comes_from_its_pairs(tmp_path):
    for page in FIGURES.glob("microscope_*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    kept = json.loads((FIGURES / "least_favourable.json").read_text())
    write(kept, tmp_path)
    shipped = (FIGURES / "least_favourable.md").read_text()
    assert (tmp_path / "least_favourable.md").read_text() == shipped


def test_kept_pairs_are_continued_from_one_another():
    """The squared distance falls along the pairs of each case: none has lost its branch."""
    kept = json.loads((FIGURES / "least_favourable.json").read_text(encoding="utf-8"))
    for name, found in kept.items():
        squared = [pair["squared"] for pair in found["pairs"]]
        falls = all(later < earlier for earlier, later in itertools.pairwise(squared))
        assert falls or found["verdict"] == "zero", name
        if found["verdict"] == "falls":
            assert len(squared) >= 7
    assert kept["attention-1"]["order"] == pytest.approx(5.0, abs=0.25)


def test_a_search_that_loses_its_branch_is_told():
    def rung(root):
        return SimpleNamespace(root=root)

    assert pairs._falls([rung(1e-2), rung(1e-4)])
    assert not pairs._falls([rung(1e-2), rung(1e-6), rung(1e-5)])
