"""The limit law of several atoms: its algebra, its program, and the page of its results."""

from __future__ import annotations

import json
from fractions import Fraction
from math import factorial

import numpy as np
import pytest

from experiments.folders import FIGURES
from experiments.limit_law import constants
from experiments.limit_law.fits import _Problem, draw_counts, fit
from experiments.limit_law.law import coefficients, errors_in_the_limit, limit_shape, scales
from experiments.limit_law.page import markdown, panels, result
from experiments.limit_law.points import narrow_point, wide_point

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
        moving = sympy.symbols("w:3 x:3 y:3")
        moved = [tuple(moving[j::3]) for j in range(3)]
        equations = [coefficient(order, moved) for order in range(7)]  # order 0: the masses' sum
        point = dict(
            zip(moving, [part for each in zip(*atoms, strict=True) for part in each], strict=True)
        )
        slopes = sympy.Matrix(equations).jacobian(moving).subs(point)
        assert slopes.rank() == 7  # regular: six coefficients with the masses' sum kept


@pytest.mark.parametrize("m", [2, 3])
def test_slopes_are_those_of_finite_differences(m):
    rng = np.random.default_rng(0)
    problem = _Problem(1e6, draw_counts(1e6, rng), m)
    v = np.concatenate([np.full(m, 1 / m), *(0.5 * rng.standard_normal((2, m))), np.zeros(2 * m)])
    step = 1e-6
    moves = step * np.eye(v.size)
    apart = [problem.loss(v + move)[0] - problem.loss(v - move)[0] for move in moves]
    slopes = problem.loss(v)[1]
    assert np.array(apart) / (2 * step) == pytest.approx(slopes, abs=1e-4 * np.abs(slopes).max())
    ties = [(problem.tied(v + move) - problem.tied(v - move)) / (2 * step) for move in moves]
    assert np.stack(ties, axis=1) == pytest.approx(problem.ties(v), abs=1e-8)


@pytest.mark.parametrize(("m", "seed"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 2)])
def test_fits_are_where_the_limit_law_says_at_large_n(m, seed):
    rng = np.random.default_rng([20, seed])
    n = 1e20
    deviations = draw_counts(n, rng)
    found = fit(n, deviations, m, rng)
    scores = _Problem(n, deviations, m).scores
    last = scores[None, [2 * m - 1, 2 * m]]
    assert found.score == scores[2 * m]
    kept = json.loads((FIGURES / "limit_law.json").read_text())["atoms"][str(m)]["constants"]
    constants = {int(sign): value for sign, value in kept.items()}
    assert found.error == pytest.approx(errors_in_the_limit(n, last, m, constants)[0], rel=0.1)
    assert found.mass == pytest.approx(0.1, abs=1e-3)
    assert found.agree > 0.8


def test_a_limit_shape_meets_its_equations_and_has_the_error_of_two_atoms():
    shape = limit_shape(3, 1)
    assert shape is not None
    masses, means, _ = np.split(shape, 3)
    c, slopes = coefficients(shape, 7)
    assert c[:7] == pytest.approx([1, 0, 0, 0, 0, 0, 1], abs=1e-9)
    assert masses.min() >= 0.1 - 1e-12
    assert masses.max() == pytest.approx(0.8)  # the others are at their floor and held
    assert np.linalg.svd(slopes[1:7, 3:], compute_uv=False).min() > 1e-3  # regular
    kept = json.loads((FIGURES / "limit_law.json").read_text())["atoms"]["3"]["constants"]
    assert np.abs(means).max() == pytest.approx(kept["1"], abs=1e-4)
    q = 0.09
    two = limit_shape(2, -1)
    assert two is not None
    assert abs(two[2] - two[3]) == pytest.approx((36.0 / (q * (1.0 - q))) ** 0.25, rel=1e-4)


def test_rounding_is_far_below_a_scores_noise_at_the_largest_n():
    rng = np.random.default_rng(3)
    n, m = 1e20, 3
    shape = np.array([1 / 6, 2 / 3, 1 / 6, -3.0, 0.0, 3.0, -1.5, -1.5, -1.5])
    units = np.repeat(n ** np.array([0.0, -1 / (4 * m), -1 / (2 * m)]), m)
    atoms = shape * units * (1.0 + 1e-3 * rng.standard_normal(3 * m))
    rounded = coefficients(atoms, 2 * m)[0]
    exact = [tuple(Fraction(float(part)) for part in atoms[j::m]) for j in range(m)]
    missed = [float(coefficient(k, exact) - Fraction(rounded[k])) for k in range(1, 2 * m + 1)]
    assert np.max(np.abs(missed) * np.sqrt(n) * scales(2 * m)[1:]) < 1e-6


def test_the_page_comes_from_the_kept_results():
    held = json.loads((FIGURES / "limit_law.json").read_text())
    parts = panels(held, FIGURES)
    assert markdown(parts, held["floor"]) == (FIGURES / "limit_law.md").read_text()
    left, _, right = parts[0].draw().axes
    labels = left.get_legend_handles_labels()[1]
    assert labels[-2:] == ["theorem: -0.125", "search: -0.125"]
    assert len(right.get_lines()) == 4 + 2  # quantiles, theorem and search: no law with inputs


def test_a_result_has_as_many_data_sets_as_every_size_has():
    line = {"m": 2, "error": 0.1, "score": 1.0, "variance_error": 0.2, "mass": 0.1, "agree": 1.0}
    found = [
        {**line, "n": n, "replicate": replicate, "doubling": float(n == 1e6)}
        for n, count in ((1e6, 3), (1e8, 2))
        for replicate in range(count)
    ]
    held = result(found)["atoms"]["2"]["sizes"]
    assert [len(each["error"]) for each in held.values()] == [2, 2]
    assert [each["doubling"] for each in held.values()] == [1.0, 0.0]


@pytest.mark.parametrize("m", range(3, 7))
def test_every_number_of_atoms_has_regular_points_of_both_signs(m):
    """The theorem of docs/theory/limit_law.md, at one point of each side."""
    for point, sign in ((narrow_point(m), -1), (wide_point(m, 0.2), 1)):
        found = [float(c) for c in point.coefficients()]
        assert max(map(abs, found[1 : 2 * m])) < 1e-30
        assert found[2 * m] * sign > 0
        assert float(min(point.masses)) > 0
        assert sum(map(float, point.masses)) == pytest.approx(1)
        assert point.least_singular_value() > 1e-6
    assert found[2 * m] > 0.1
    narrow = narrow_point(m).coefficients()[2 * m]
    assert float(narrow) == pytest.approx(-factorial(m) / factorial(2 * m))


def test_constants_do_not_depend_on_where_a_search_begins():
    kept = json.loads((FIGURES / "limit_law_constants.json").read_text())
    two, three = ({(e["floor"], e["sign"]): e["kappa"] for e in kept[m]} for m in ("2", "3"))
    for floor in constants.FLOORS:
        q = floor * (1.0 - floor)
        spread = (36.0 / (q * (1.0 - q))) ** 0.25  # by the algebra of two atoms
        assert two[floor, -1] == pytest.approx((1.0 - floor) * spread, rel=1e-3)
        assert (floor, 1) not in two
    assert three[0.1, -1] == pytest.approx(np.abs(limit_shape(3, -1)[3:6]).max(), rel=1e-3)


def test_a_lower_floor_leaves_more_shapes():
    kept = json.loads((FIGURES / "limit_law_constants.json").read_text())
    for found in kept.values():
        for sign in (-1, 1):
            falling = [each["next"] for each in found if each["sign"] == sign]
            assert falling == sorted(falling)
        assert all(each["off"] < 1e-8 for each in found)


def test_the_page_of_constants_comes_from_the_kept_result():
    kept = json.loads((FIGURES / "limit_law_constants.json").read_text())
    assert constants.markdown(kept) == (FIGURES / "limit_law_constants.md").read_text()
