"""Exact algebra: the polynomial systems of order 2m have trivial solutions only, m = 2 and 3.

On the m atoms, with masses that add up to 1, let a = p3 and k = p4 + p3^2 / 2.  The equations
1..2m of `moestat.theory.polynomial_systems` are E H_l = 0, the first two E a = E k = 0.  Take the
orthonormal functions 1, a / rho, u on the atoms, rho^2 = E a^2, and u with c >= 0: multiplication
by a is the matrix J with diagonal 0, s, t and off-diagonal rho, c.  Equation 3 is
E a k = E a^3 / 3, so ``k = (s / 3) a + rho mu u``.  What is left are polynomials in rho, s, c, t
and mu, and the claim is that they have no real zero with rho > 0; signs are decided by Sturm's
theorem.

For c > 0, u is a polynomial in a, and so is k.  For c = 0, a takes two values only and t is the
one where u is not 0; then equation 5, which needs k no further than E a k^2, decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import factorial
from typing import TYPE_CHECKING, Any

from moestat.base.validate import short

if TYPE_CHECKING:
    from sympy import Expr, Poly, Symbol

sympy: Any = import_module("sympy")  # annotations of which do not know its own arithmetic


def no_solution(m: int) -> list[str]:
    """Show by exact algebra that the system of order 2m has trivial solutions only, m = 2 or 3.

    The steps are returned; an ArithmeticError says which one fails, so that nothing is shown.

    Examples
    --------
    >>> no_solution(2)
    ['equation 4 is -rho**2*(3*rho**2 + s**2)/36, below 0 unless rho = 0']
    """
    if m not in (2, 3):
        raise ValueError(f"m must be 2 or 3, got {short(m)}")
    return _no_solution_two() if m == 2 else _no_solution_three()


def _show(holds: bool, what: str) -> str:
    """A step of an argument, if it is true."""
    if not holds:
        raise ArithmeticError(f"not shown: {what}")
    return what


def _normal_forms(m: int, orders: Sequence[int]) -> tuple[dict[str, Symbol], dict[int, Expr]]:
    """Symbols, and the equations of the given orders for m = 2 or 3 atoms in the normal form."""
    names = ("rho", "s", "c", "t", "mu")
    at: dict[str, Symbol] = dict(zip(names, sympy.symbols(names, real=True), strict=True))
    rho, s, c, t, mu = at.values()
    J = sympy.Matrix([[0, rho, 0], [rho, s, c], [0, c, t]])
    K = s / 3 * J
    if m == 2:
        J, K = J[:2, :2], K[:2, :2]
    else:  # u = (a^2 - s a - rho^2) / (rho c)
        K += mu / c * (J**2 - s * J - rho**2 * sympy.eye(3))
    a, k = sympy.symbols("a k")
    equations = {}
    for order_ in orders:
        variance = k - a**2 / 2
        coefficient = sum(
            a ** (order_ - 2 * q) * variance**q / (factorial(order_ - 2 * q) * factorial(q))
            for q in range(order_ // 2 + 1)
        )
        terms = sympy.Poly(sympy.expand(coefficient), a, k).terms()
        equations[order_] = sympy.factor(sum(x * (J**i * K**j)[0, 0] for (i, j), x in terms))
    return at, equations


def _no_solution_two() -> list[str]:
    at, equations = _normal_forms(2, (1, 2, 3, 4))
    form = sympy.Poly(equations[4] / at["rho"] ** 2, at["rho"], at["s"])
    holds = all(equations[order_] == 0 for order_ in (1, 2, 3)) and _definite(form, at["rho"])
    return [_show(holds, f"equation 4 is {equations[4]}, below 0 unless rho = 0")]


def _no_solution_three() -> list[str]:
    at, equations = _normal_forms(3, (4, 5, 6))
    rho, s, c, t, mu = at.values()
    square = 6 * mu**2 - s**2 / 3 - c**2
    first = _show(
        sympy.expand(12 * equations[4] - rho**2 * (square - rho**2)) == 0,
        f"equation 4 asks for rho^2 = {square} unless rho = 0",
    )
    fifth = sympy.Poly(sympy.numer(sympy.together(equations[5] / rho**2)), t)
    slope, constant = fifth.nth(1), fifth.nth(0)
    second = _show(
        fifth.degree() == 1 and _definite(sympy.Poly(sympy.cancel(constant / s), rho, s, c), rho),
        f"equation 5 gives t, but where {sympy.factor(slope)} = 0 it asks for s = 0",
    )
    sixth = sympy.numer(sympy.together(equations[6] / rho**2))

    def at_scale(expression: Expr) -> Expr:
        """With c = 1, and rho^2 as equation 4 has it."""
        terms = sympy.Poly(sympy.expand(expression), rho).terms()
        return sympy.expand(sympy.Add(*(x * square ** (i // 2) for (i,), x in terms)).subs(c, 1))

    level = at_scale(sympy.numer(sympy.together(sixth.subs(t, -constant / slope))))
    return [
        first,
        second,
        *_where_t_is_given(level, slope.subs(c, 1), square.subs(c, 1), mu, s),
        *_where_t_is_free(at_scale(sixth), slope.subs(c, 1), square.subs(c, 1), mu, s, t),
        _where_a_takes_two_values(fifth, at),
    ]


def _where_t_is_given(level: Expr, slope: Expr, square: Expr, mu: Symbol, s: Symbol) -> list[str]:
    """Equation 6 with the t of equation 5, c = 1, has one sign wherever rho^2 = `square` > 0."""
    # s^2 runs from 0 to where rho = 0: it is a share of that, share / (1 + share).
    share = sympy.Symbol("share")
    top = sympy.solve(square, s**2)[0]
    inside = sum(
        x * (top * share / (1 + share)) ** (i // 2) for (i,), x in sympy.Poly(level, s).terms()
    )
    coefficients = sympy.Poly(sympy.expand(sympy.numer(sympy.together(inside))), share).all_coeffs()
    coefficients[-1] = sympy.cancel(
        coefficients[-1] / slope**2
    )  # there, where s = 0, t is not given
    edge = sympy.Rational(2, 5)  # rho^2 > 0 takes mu^2 > 1 / 6
    _show(bool(square.subs({s: 0, mu: edge}) < 0), "the edge lies where rho^2 < 0")
    steps = []
    for half, line in (("mu > 0", mu), ("mu < 0", -mu)):
        signs = [_sign_beyond(sympy.Poly(x.subs(mu, line), mu), edge) for x in coefficients]
        steps.append(_show(_one_sign(signs), f"equation 6 has one sign for all t given, {half}"))
    return steps


def _where_t_is_free(
    level: Expr, slope: Expr, square: Expr, mu: Symbol, s: Symbol, t: Symbol
) -> list[str]:
    """Equation 6 with s = 0, c = 1 has no zero in t where equation 5 does not give t."""
    steps = []
    for root in sympy.solve(slope, mu):
        form = sympy.Poly(level.subs({s: 0, mu: root}), t)
        outside = bool(square.subs({s: 0, mu: root}) <= 0)
        definite = form.degree() == 2 and form.nth(1) == 0 and _one_sign([form.nth(2), form.nth(0)])
        why = "rho^2 <= 0" if outside else "equation 6 has one sign for all t"
        steps.append(_show(outside or definite, f"at mu = {root}, s = 0: {why}"))
    return steps


def _where_a_takes_two_values(fifth: Poly, at: Mapping[str, Symbol]) -> str:
    """With c = 0, where a takes two values and t is one of them, equation 5 has no solution."""
    rho, s, c, t, mu = at.values()
    line = sympy.Poly(sympy.expand(fifth.as_expr().subs(c, 0)), t)
    line = sympy.Poly(line.as_expr().subs(mu**2, (rho**2 + s**2 / 3) / 6), t)
    given = -line.nth(0) / line.nth(1)
    gap = sympy.numer(sympy.together(rho**2 + s * given - given**2))  # 0 for a value of a
    return _show(
        _definite(sympy.Poly(sympy.expand(gap), rho, s), rho),
        "where a takes two values (c = 0), equation 5 gives a t that is neither",
    )


def _definite(form: Poly, leading: Symbol) -> bool:
    """Whether a polynomial has even powers and one sign, and `leading` alone keeps it from 0."""
    even = all(power % 2 == 0 for powers, _ in form.terms() for power in powers)
    place = form.gens.index(leading)
    alone = any(sum(powers) == powers[place] for powers, _ in form.terms())
    return even and alone and _one_sign(form.coeffs())


def _one_sign(values: Sequence[Expr | int]) -> bool:
    """Whether all numbers are above 0, or all below."""
    return all(bool(x > 0) for x in values) or all(bool(x < 0) for x in values)


def _sign_beyond(polynomial: Poly, edge: Expr) -> int:
    """The sign of a polynomial in one unknown on [edge, oo); 0 if it has a zero there."""
    if polynomial.is_zero or polynomial.count_roots(edge, None):
        return 0
    return 1 if polynomial.LC() > 0 else -1
