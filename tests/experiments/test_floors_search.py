"""Searches of the floored microscopes: the pool of starts, one search, and its page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.floors_search import page as pages
from experiments.floors_search import search as searching
from experiments.floors_search.pool import KINDS, draw_start
from experiments.folders import FIGURES
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import load_spec

LINE = {"beta0": [0.0], "beta1": [0.0], "a": [1.0], "b": [0.5], "nu": [0.25]}
TRUTH = {name: np.array(value) for name, value in LINE.items()}


def moments(start, most):
    """Moments of the responses at x = 0, less those of the true line."""
    weights = np.exp(start["beta0"]) / np.exp(start["beta0"]).sum()
    z, w = np.polynomial.hermite_e.hermegauss(12)
    powers = np.arange(1, most + 1)[:, None, None]

    def of(b, nu):
        return (b[:, None] - 0.5 + np.sqrt(nu)[:, None] * z) ** powers @ (w / w.sum())

    return of(start["b"], start["nu"]) @ weights - of(TRUTH["b"], TRUTH["nu"])[:, 0]


@pytest.mark.parametrize(("kind", "kept"), [("split", 2), ("gauss-hermite", 5)])
def test_split_atoms_keep_moments_up_to_the_noise_that_breaks_symmetry(kind, kept, monkeypatch):
    monkeypatch.setattr("experiments.floors_search.pool._SHAKEN", 0.0)
    rng = np.random.default_rng(3)
    for _ in range(5):
        start = draw_start(TRUTH, 3, 1e8, kind, rng)
        assert np.abs(moments(start, kept)).max() < 1e-12
        assert np.ptp(start["b"]) > 1e-3
        assert start["beta0"][-1] == start["beta1"][-1] == 0.0


def test_no_cell_of_a_start_is_empty_and_no_input_is_written_to():
    truth = {name: np.repeat(value, 2) for name, value in TRUTH.items()}
    truth["b"] = np.array([-20.0, 20.0])
    before = {name: value.copy() for name, value in truth.items()}
    rng = np.random.default_rng(0)
    for kind in KINDS:
        start = draw_start(truth, 4, 1e6, kind, rng)
        assert set(np.sign(start["b"])) == {-1.0, 1.0}
    assert all((truth[name] == before[name]).all() for name in truth)


def _again(found, n, replicate):
    """The same search at another size, with errors a little larger from data set to data set."""
    cells = [
        {name: each if name == "size" else each * (1.0 + replicate) for name, each in cell.items()}
        for cell in found["found"]
    ]
    return {**found, "n": n, "replicate": replicate, "shipped": cells, "found": cells}


def test_a_search_is_not_lower_than_the_shipped_fit_and_its_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(searching, "FIRST", 4)
    monkeypatch.setattr(searching, "MOST", 8)
    spec = as_fits(load_spec(find_spec("microscope_floors_gaussian")))
    (cell,) = [
        cell
        for cell in plan_cells(spec)
        if (cell.curve, cell.n, cell.replicate) == ("single, k = 2", 1e10, 0)
    ]
    found = searching.search(spec, cell)
    assert found["gain"] >= 0.0
    assert 0.0 <= found["agree"] <= 1.0
    assert [each["size"] for each in found["found"]] == [2]
    many = [_again(found, n, replicate) for n in (1e10, 1e12, 1e14) for replicate in range(5)]
    pages.write(pages.result(many, [spec]), tmp_path)
    page = (tmp_path / "microscope_floors_search.md").read_text(encoding="utf-8")
    assert "cells of two" in page
    assert page.count("| single, k = 2 |") == 3 + 4


def test_the_shipped_page_is_that_of_its_result():
    held = json.loads((FIGURES / pages.RESULT).read_text(encoding="utf-8"))
    page = (FIGURES / "microscope_floors_search.md").read_text(encoding="utf-8")
    assert pages.markdown(held) == page
