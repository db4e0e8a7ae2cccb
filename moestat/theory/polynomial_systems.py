"""The polynomial systems behind the rates of Gaussian experts under a softmax gate.

When m fitted atoms share one true atom, the density is Taylor-expanded in the changes of their
gate slope p1, expert slope p2, intercept p3 and half variance p4, with masses p5 > 0.  Because
``exp(p1' x) f(y | p2' x + p3, 2 p4)`` has derivatives that coincide, the terms add up to one sum
for each power l1 of x and each order l2 of the derivative in the mean::

    sum_j sum_a p5_j p1_j^a1 p2_j^a2 p3_j^a3 p4_j^a4 / (a1! a2! a3! a4!),
    a1 + a2 = l1,  |a2| + a3 + 2 a4 = l2

(multi-indices a1, a2, l1 in d inputs).  The system of order r asks that these vanish for all
1 <= |l1| + l2 <= r.  A solution is trivial when every p3_j is 0, and rbar(m) is the smallest order
with trivial solutions only: in a cell of m atoms the intercept is estimated at n^(-1/(2 rbar(m))).

Only the equations with l1 = 0 matter.  They hold p3, p4 and p5 alone, and p1 = p2 = 0 solves all
others.  With H_l(a, b) the coefficient of t^l in ``exp(a t + b t^2)`` they read
``sum_j p5_j H_l(p3_j, p4_j) = 0`` for l = 1..r: a mixture of m normal laws has the first r moments
of one normal law.

**Order 2m - 1 has a solution, for every m.**  Gauss-Hermite quadrature: m nodes with positive
weights have the moments of N(0, 1) up to order 2m - 1, so nodes, weights and p4 = -1/2 solve it.

**Order 2m has none, for every m.**  Such a mixture less its normal law would be a combination of at
most m + 1 distinct normal densities with 2m + 1 vanishing moments, hence with at least 2m + 1
changes of sign; but it has at most 2m (Kalai, Moitra and Valiant, STOC 2010, Prop. 7).  So
rbar(m) = 2m.  For m = 2 and 3 `moestat.theory.trivial_solutions` shows it by algebra as well,
without that result.

Source: Nguyen et al. (2023), whose text was not at hand: the system is rebuilt from the densities,
and what was published, rbar(2) = 4, rbar(3) = 6 and rbar(m) >= 7 for m >= 4, is quoted second-hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import factorial, prod
from typing import Any

from moestat.base.validate import positive_int

_BLOCKS = ("gate", "slope", "intercept", "variance", "mass")
_PUBLISHED = {2: "rbar(2) = 4", 3: "rbar(3) = 6"}
_PUBLISHED_BEYOND = "rbar(m) >= 7 for m >= 4"


@dataclass(frozen=True)
class PolynomialSystem:
    """The system of order r for m atoms.  Build one with `polynomial_system`."""

    m: int
    r: int
    d: int
    """Atoms in the cell, order, inputs."""
    unknowns: dict[str, tuple[Any, ...]]
    """Block -> its symbols: ``gate`` and ``slope`` (m tuples of d), ``intercept``, ``variance``
    (half the change of the variance) and ``mass`` (m each)."""
    equations: dict[tuple[tuple[int, ...], int], Any]
    """(l1, l2) -> the polynomial that must vanish; l1 is a tuple of d powers of x."""

    def intercept_equations(self) -> list[Any]:
        """The equations of the power 0 of x, by order; a solution has to solve only these.

        Examples
        --------
        >>> for equation in polynomial_system(m=1, r=2).intercept_equations():
        ...     print(equation)
        intercept1*mass1
        intercept1**2*mass1/2 + mass1*variance1
        """
        zero = (0,) * self.d
        return [self.equations[zero, l2] for l2 in range(1, self.r + 1)]


def polynomial_system(m: int, r: int, d: int = 1) -> PolynomialSystem:
    """The polynomial system of order r for a cell of m atoms with d inputs.

    Parameters
    ----------
    m : int
        Fitted atoms in the Voronoi cell.
    r : int
        Order.
    d : int
        Inputs.

    Returns
    -------
    PolynomialSystem
        Unknowns and equations, exact.

    Raises
    ------
    ValueError
        If a number is not a positive integer.
    ImportError
        Without sympy, extra ``theory``.

    Examples
    --------
    >>> system = polynomial_system(m=2, r=2)
    >>> len(system.equations)
    5
    >>> print(system.equations[(1,), 1])
    gate1*intercept1*mass1 + gate2*intercept2*mass2 + mass1*slope1 + mass2*slope2
    """
    sympy = _sympy_or_why_not()
    m = positive_int("m", m)
    r = positive_int("r", r)
    d = positive_int("d", d)

    def vectors(name: str) -> tuple[Any, ...]:
        at = [f"_{u}" for u in range(1, d + 1)] if d > 1 else [""]
        return tuple(
            tuple(sympy.Symbol(f"{name}{j}{u}", real=True) for u in at) for j in range(1, m + 1)
        )

    unknowns = {
        "gate": vectors("gate"),
        "slope": vectors("slope"),
        "intercept": tuple(sympy.Symbol(f"intercept{j}", real=True) for j in range(1, m + 1)),
        "variance": tuple(sympy.Symbol(f"variance{j}", real=True) for j in range(1, m + 1)),
        "mass": tuple(sympy.Symbol(f"mass{j}", positive=True) for j in range(1, m + 1)),
    }
    atoms = list(zip(*(unknowns[name] for name in _BLOCKS), strict=True))
    equations = {}
    for total in range(1, r + 1):
        for l1 in _multi_indices(d, total):
            l2 = total - sum(l1)
            equations[l1, l2] = sympy.Add(
                *(atom[4] * term for atom in atoms for term in _terms(sympy, l1, l2, atom))
            )
    return PolynomialSystem(m, r, d, unknowns, equations)


def _sympy_or_why_not() -> Any:
    """The module sympy, or an ImportError with the extra that brings it."""
    try:
        import sympy
    except ImportError:
        raise ImportError(
            "polynomial systems need sympy: install moestat with the extra 'theory'"
        ) from None
    return sympy


def _multi_indices(d: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Multi-indices of d entries with a sum of at most `largest`."""
    return (index for index in product(range(largest + 1), repeat=d) if sum(index) <= largest)


def _terms(sympy: Any, l1: tuple[int, ...], l2: int, atom: Sequence[Any]) -> Iterator[Any]:
    """The terms of one atom in the equation (l1, l2), without its mass."""
    gate, slope, intercept, variance, _ = atom
    for a2 in product(*(range(top + 1) for top in l1)):
        order = l2 - sum(a2)
        a1 = [top - low for top, low in zip(l1, a2, strict=True)]
        for a4 in range(order // 2 + 1):
            a3 = order - 2 * a4
            scale = prod(map(factorial, (*a1, *a2, a3, a4)))
            powers = [base**power for base, power in zip(gate, a1, strict=True)]
            powers += [base**power for base, power in zip(slope, a2, strict=True)]
            yield sympy.Mul(sympy.Rational(1, scale), *powers, intercept**a3, variance**a4)


def quadrature_residuals(m: int, r: int) -> list[Fraction]:
    """Left-hand sides of the equations 1..r at the Gauss-Hermite solution, zeros up to 2m - 1.

    The solution has m >= 2 nodes as intercepts, the weights as masses and p4 = -1/2; the only node
    of one atom is 0, a trivial solution.

    Examples
    --------
    >>> [str(value) for value in quadrature_residuals(2, 5)]
    ['0', '0', '0', '-1/12', '0']
    """
    m, r = positive_int("m", m, 2), positive_int("r", r)
    moments = _quadrature_moments(m, r)
    return [
        sum(
            (
                Fraction((-1) ** q * moments[order - 2 * q])
                / (2**q * factorial(order - 2 * q) * factorial(q))
                for q in range(order // 2 + 1)
            ),
            Fraction(0),
        )
        for order in range(1, r + 1)
    ]


def _quadrature_moments(m: int, largest: int) -> list[int]:
    """Moments 0..largest of the m-node Gauss-Hermite rule of N(0, 1).

    They count walks that start and end at height 0 and stay below m, a step down from h weighing
    h: the corner of a power of the Jacobi matrix, in integers.
    """
    walks, moments = [1] + [0] * (m - 1), [1]
    for _ in range(largest):
        up = [0, *walks[:-1]]
        down = [(h + 1) * walks[h + 1] if h + 1 < m else 0 for h in range(m)]
        walks = [a + b for a, b in zip(up, down, strict=True)]
        moments.append(walks[0])
    return moments


def rbar(m: int) -> int:
    """The smallest order with trivial solutions only, 2m for m >= 2 atoms; `order` says why.

    Examples
    --------
    >>> rbar(2), rbar(3)
    (4, 6)
    """
    return 2 * positive_int("m", m, 2)


@dataclass(frozen=True)
class Order:
    """Bounds of rbar(m) with their reasons.  Build one with `order`."""

    m: int
    """Atoms in the cell."""
    at_least: int
    """One more than an order with a solution, which was computed."""
    at_most: int
    """An order without a solution."""
    steps: tuple[str, ...]
    """Reason why this order has no solution: the steps of the algebra, or a theorem."""
    published: str
    """The statement in the literature."""

    @property
    def value(self) -> int | None:
        """rbar(m), if the bounds meet."""
        return self.at_least if self.at_least == self.at_most else None


def order(m: int) -> Order:
    """What is known of rbar(m): computed for m = 2 and 3, a theorem's for more atoms.

    Parameters
    ----------
    m : int
        Atoms in the cell, at least 2.

    Returns
    -------
    Order
        Bounds, and where they come from.

    Raises
    ------
    ValueError
        If m is not an integer of at least 2.
    ImportError
        Without sympy, extra ``theory``, for m = 2 and 3.

    Examples
    --------
    >>> [order(m).value for m in (2, 3, 4)]
    [4, 6, 8]
    """
    m = positive_int("m", m, 2)
    solved = 0
    while quadrature_residuals(m, solved + 1)[-1] == 0:
        solved += 1
    steps = [f"{m + 1} normal densities combine to at most {2 * m} changes of sign"]
    if m in _PUBLISHED:
        _sympy_or_why_not()
        from moestat.theory.trivial_solutions import no_solution

        steps = no_solution(m)
    return Order(m, solved + 1, rbar(m), tuple(steps), _PUBLISHED.get(m, _PUBLISHED_BEYOND))
