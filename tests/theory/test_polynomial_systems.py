"""The polynomial systems of Gaussian experts under a softmax gate, and their orders."""

from __future__ import annotations

from importlib import import_module

import mpmath
import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import factorial, roots_hermitenorm

from moestat.theory.polynomial_systems import order, polynomial_system, quadrature_residuals

sympy = pytest.importorskip("sympy")
trivial_solutions = import_module("moestat.theory.trivial_solutions")  # needs sympy


GRADES = {"gate": 1, "slope": 1, "intercept": 1, "variance": 2, "mass": 0}


def symbols_of(system):
    """Symbol -> its power of epsilon: a variance is as large as a squared intercept."""
    out = {}
    for name, block in system.unknowns.items():
        for row in block:
            out |= dict.fromkeys(row if name in ("gate", "slope") else (row,), GRADES[name])
    return out


def test_the_system_is_what_the_expansion_of_the_density_asks_for():
    """Taylor coefficients in epsilon of two atoms epsilon from an atom at 0, at a point (x, y)."""
    m, r, x, y, v = 2, 3, mpmath.mpf("0.7"), mpmath.mpf("-1.3"), mpmath.mpf("1.6")
    # An equation (l1, l2) may enter as late as epsilon^(l1 + l2) with slopes in both.
    system = polynomial_system(m, 2 * r)
    grades = symbols_of(system)
    at = {s: sympy.Rational(i + 2, 7 - i % 3) for i, s in enumerate(grades)}

    def density(mean, variance):
        return mpmath.exp(-((y - mean) ** 2) / (2 * variance)) / mpmath.sqrt(variance)

    def mixture(eps):
        value = {s: mpmath.mpf(at[s].p) / at[s].q * eps**grade for s, grade in grades.items()}
        total = mpmath.mpf(0)
        for j in range(m):
            (gate,), (slope,) = system.unknowns["gate"][j], system.unknowns["slope"][j]
            rest = (system.unknowns[name][j] for name in ("intercept", "variance", "mass"))
            intercept, variance, mass = (value[s] for s in rest)
            mean = value[slope] * x + intercept
            total += mass * mpmath.exp(value[gate] * x) * density(mean, v + 2 * variance)
        return total

    eps = sympy.Symbol("epsilon")
    scaled = {s: at[s] * eps**grade for s, grade in grades.items()}
    derivative = [
        mpmath.diff(lambda mean: density(mean, v), 0, order) for order in range(2 * r + 1)
    ]
    rebuilt = [mpmath.mpf(0)] * (r + 1)
    for (l1, l2), equation in system.equations.items():
        for (power,), value in sympy.Poly(equation.subs(scaled), eps).terms():
            if power <= r:
                rebuilt[power] += mpmath.mpf(value.p) / value.q * x ** l1[0] * derivative[l2]
    with mpmath.workdps(40):
        given = mpmath.taylor(mixture, 0, r)
    for power in range(1, r + 1):
        assert float(given[power]) == pytest.approx(float(rebuilt[power]), rel=1e-8)


def test_what_is_left_without_slopes_are_the_equations_of_the_intercept():
    system = polynomial_system(m=2, r=4, d=2)
    slopes = [s for name in ("gate", "slope") for row in system.unknowns[name] for s in row]
    left = {equation.subs(dict.fromkeys(slopes, 0)) for equation in system.equations.values()}
    assert left - {0} == set(system.intercept_equations())
    assert len(system.equations) > len(system.intercept_equations())


@pytest.mark.parametrize("m", [2, 3, 4, 7])
def test_gauss_hermite_nodes_solve_the_system_of_order_2m_less_1_and_no_further(m):
    residuals = quadrature_residuals(m, 2 * m)
    assert all(value == 0 for value in residuals[:-1])
    assert residuals[-1] != 0
    nodes, weights = roots_hermitenorm(m)  # the same by floating-point nodes
    last = sum(
        weights @ nodes ** (2 * m - 2 * q) * (-0.5) ** q / factorial(2 * m - 2 * q) / factorial(q)
        for q in range(m + 1)
    )
    assert float(residuals[-1]) == pytest.approx(last / weights.sum(), rel=1e-6)


def test_the_solution_of_order_5_for_three_atoms_in_the_system_itself():
    system = polynomial_system(m=3, r=6)
    root = sympy.sqrt(3)
    values = dict(zip(system.unknowns["intercept"], (-root, 0, root), strict=True))
    values |= dict.fromkeys(system.unknowns["variance"], sympy.Rational(-1, 2))
    masses = (sympy.Rational(1, 6), sympy.Rational(2, 3), sympy.Rational(1, 6))
    values |= dict(zip(system.unknowns["mass"], masses, strict=True))
    found = [sympy.simplify(e.subs(values)) for e in system.intercept_equations()]
    assert found[:5] == [0] * 5
    assert found[5] != 0


def test_a_groebner_basis_agrees_for_two_atoms():
    """With p3 = p5 = 1 in one atom, the basis holds a polynomial in the other mass alone."""
    system = polynomial_system(m=2, r=4)
    one, two = system.unknowns["intercept"]
    first, mass = system.unknowns["mass"]
    scaled = [e.subs({one: 1, first: 1}) for e in system.intercept_equations()]
    unknowns = (*system.unknowns["variance"], two, mass)
    basis = sympy.groebner(scaled, *unknowns, order="lex")
    alone = [e for e in basis.exprs if e.free_symbols == {mass}]
    assert alone
    assert not any(root > 0 for root in sympy.real_roots(sympy.Poly(alone[-1], mass)))
    short = sympy.groebner(scaled[:3], *unknowns, order="lex")
    assert not [e for e in short.exprs if e.free_symbols <= {mass}]


@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_numerical_search_finds_solutions_of_order_2m_less_1_only(m):
    system = polynomial_system(m, 2 * m)
    unknowns = [s for name in ("intercept", "variance", "mass") for s in system.unknowns[name]]
    call = sympy.lambdify(unknowns, system.intercept_equations(), "numpy")
    rng = np.random.default_rng(5)

    def best(orders: int) -> float:
        def residuals(z):
            a, b, weight = np.split(z, 3)
            weight = np.exp(weight - weight.max())
            values = call(*a, *b, *(weight / weight.sum()))[:orders]
            return np.append(values, (weight / weight.sum()) @ a**2 - 1.0)

        bounds = np.repeat([[-3.0, -3.0, -2.0], [3.0, 3.0, 2.0]], m, axis=1)
        starts = rng.uniform(-1.0, 1.0, (20, 3 * m))
        return min(least_squares(residuals, z, bounds=bounds).cost for z in starts)

    assert best(2 * m - 1) < 1e-12
    assert best(2 * m) > 1e-5


def test_orders():
    two, three, four = order(2), order(3), order(4)
    assert [two.value, three.value] == [4, 6]
    assert len(three.steps) == 7
    assert four.at_least == 8  # above the published bound
    assert four.published == "rbar(m) >= 7 for m >= 4"
    assert any("changes of sign" in step for step in four.steps)


def test_the_argument_for_three_atoms_fails_when_an_equation_is_wrong(monkeypatch):
    """A sign check that could not fail would be none."""
    forms = trivial_solutions._normal_forms

    def bent(m, orders):
        at, equations = forms(m, orders)
        equations[6] = equations[6] + at["rho"] ** 6 / 100
        return at, equations

    monkeypatch.setattr(trivial_solutions, "_normal_forms", bent)
    with pytest.raises(ArithmeticError, match="equation 6"):
        trivial_solutions.no_solution(3)


def test_sign_beyond_an_edge():
    z = sympy.Symbol("z")
    sign = trivial_solutions._sign_beyond
    assert sign(sympy.Poly(z**2 - 1, z), sympy.Rational(3, 2)) == 1
    assert sign(sympy.Poly(1 - z**2, z), sympy.Rational(3, 2)) == -1
    assert sign(sympy.Poly(z**2 - 4, z), sympy.Rational(3, 2)) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: order(1), "m must be an integer >= 2"),
        (lambda: polynomial_system(2, 0), "r must be"),
        (lambda: trivial_solutions.no_solution(4), "m must be 2 or 3, got 4"),
        (lambda: quadrature_residuals(1, 2), "m must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
