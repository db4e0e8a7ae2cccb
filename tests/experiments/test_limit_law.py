"""The limit law of two atoms: its algebra, its program, and the page of its results."""

from __future__ import annotations

import json
from fractions import Fraction
from math import factorial

import numpy as np
import pytest

from experiments.folders import FIGURES
from experiments.limit_law.fits import _Problem, draw_counts, fit
from experiments.limit_law.law import errors_in_the_limit
from experiments.limit_law.page import write

sympy = pytest.importorskip("sympy")


def coefficient(order, atoms):
    """Of t^order in the sum of mass exp(mean t + half t^2)."""
    return sum(
        w * sum(
            a ** (order - 2 * k) * b**k * Fraction(1, factorial(order - 2 * k) * factorial(k))
            for k in range(order // 2 + 1)
        )
        for w, a, b in atoms
    )  # fmt: skip


def test_the_coefficients_of_two_atoms():
    w, d, split = sympy.symbols("w d split")
    q, turn = w * (1 - w), 1 - 2 * w
    beta, level = split - turn * d**2 / 6, -q * d**2 / 2
    atoms = [(w, (1 - w) * d, level + (1 - w) * beta), (1 - w, -w * d, level - w * beta)]
    third = q * d * split
    fourth = -q * (1 - q) * d**4 / 36 + q * turn * d**2 * split / 3 + q * split**2 / 2
    claimed = {1: 0, 2: 0, 3: third, 4: fourth}
    for order, value in claimed.items():
        found = coefficient(order, atoms)
        assert sympy.expand(sympy.nsimplify(found) - value) == 0
    alone = [tuple(part.subs(split, 0) for part in atom) for atom in atoms]
    fifth = sympy.nsimplify(coefficient(5, alone))
    assert sympy.expand(fifth + q * turn * (1 - 2 * q) * d**5 / 180) == 0
    moment = sympy.nsimplify(24 * coefficient(4, alone))
    assert sympy.expand(moment + sympy.Rational(2, 3) * q * (1 - q) * d**4) == 0


def test_three_atoms_reach_both_signs_of_the_sixth_coefficient():
    sixth, third = Fraction(1, 6), Fraction(2, 3)
    for outer, inner, last in (
        (-sixth, -sixth, Fraction(-1, 3240)),
        (-5 * sixth, sixth, Fraction(49, 3240)),
    ):
        atoms = [(sixth, Fraction(-1), outer), (third, Fraction(0), inner)]
        atoms.append((sixth, Fraction(1), outer))
        assert [coefficient(order, atoms) for order in range(1, 7)] == [0, 0, 0, 0, 0, last]


def test_the_jacobian_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    problem = _Problem(1e6, draw_counts(1e6, rng), (0.125, 0.375))
    theta, step = np.array([0.3, -0.4, 1.1, 0.7, 0.3]), 1e-6
    moved = [step * row for row in np.eye(5)]
    differences = [problem.residuals(theta + s) - problem.residuals(theta - s) for s in moved]
    expected = np.stack(differences, axis=1) / (2 * step)
    assert problem.jacobian(theta) == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(4))
def test_fits_are_where_the_limit_law_says_at_large_n(seed):
    rng = np.random.default_rng([20, seed])
    n = 1e20
    deviations = draw_counts(n, rng)
    found = fit(n, deviations, rng)
    third = np.polynomial.hermite_e.HermiteE([0, 0, 0, 1])
    nodes = np.linspace(-9.0, 9.0, deviations.size)
    scores = np.array([[third(nodes) @ deviations / np.sqrt(6 * n), found.fourth]])
    assert found.error == pytest.approx(errors_in_the_limit(n, scores)[0], rel=0.1)
    assert found.mass == pytest.approx(0.1, abs=1e-3)


def test_the_page_comes_from_the_kept_results(tmp_path):
    write(json.loads((FIGURES / "limit_law.json").read_text()), tmp_path)
    page = (tmp_path / "limit_law.md").read_text()
    assert page == (FIGURES / "limit_law.md").read_text()
