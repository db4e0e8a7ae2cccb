"""Regular points of S_- and S_+ for any number of atoms: the theorem on docs/theory/limit_law.md.

In the units of the page m atoms have masses w, means x and half variances y, and C_l is the
coefficient of t^l in sum w_j exp(x_j t + y_j t^2).  A point has C_1 = .. = C_(2m-1) = 0 and C_2m
not 0, and is regular if the derivatives of (C_1, .., C_2m) have rank 2 m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Point", "narrow_point", "wide_point"]

_DIGITS = 50
_HALVINGS = 160


@dataclass(frozen=True)
class Point:
    """Masses, means and half variances of m atoms, in arithmetic of 50 digits.

    Parameters
    ----------
    masses, means, half_variances : tuple of mpmath.mpf
        One of each per atom.
    """

    masses: tuple[Any, ...]
    means: tuple[Any, ...]
    half_variances: tuple[Any, ...]

    def coefficients(self) -> list[Any]:
        """C_0, .., C_2m."""
        import mpmath as mp

        with mp.workdps(_DIGITS):
            single = map(self._single, self.means, self.half_variances)
            rows = [[w * c for c in own] for w, own in zip(self.masses, single, strict=True)]
            return [mp.fsum(column) for column in zip(*rows, strict=True)]

    def least_singular_value(self) -> float:
        """Of the derivatives of (C_1, .., C_2m), each parameter's scaled to norm 1."""
        import mpmath as mp

        with mp.workdps(_DIGITS):
            own = [self._single(x, y) for x, y in zip(self.means, self.half_variances, strict=True)]
            last, count = own[-1], len(own[0])
            columns = [[a - b for a, b in zip(each, last, strict=True)][1:] for each in own[:-1]]
            columns += [each[:-1] for each in own]  # in a mean: C_l turns into C_(l-1)
            columns += [[mp.mpf(0), *each[: count - 2]] for each in own]  # in a half variance
            scaled = []
            for column in columns:
                size = mp.sqrt(mp.fsum(c * c for c in column))
                scaled.append([c / size for c in column])
            return float(min(mp.svd_r(mp.matrix(scaled), compute_uv=False)))

    def _single(self, x: Any, y: Any) -> list[Any]:
        """Coefficients of exp(x t + y t^2), up to t^(2m)."""
        import mpmath as mp

        count = 2 * len(self.masses) + 1
        found = [mp.mpf(1), mp.mpf(x)]
        for order in range(2, count):  # l c_l = x c_(l-1) + 2 y c_(l-2)
            found.append((x * found[-1] + 2 * y * found[-2]) / order)
        return found[:count]


def narrow_point(m: int) -> Point:
    """The point of S_- at Gauss-Hermite nodes, with the common half variance -1/2.

    Examples
    --------
    >>> [round(float(c), 12) for c in narrow_point(3).coefficients()]
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.008333333333]
    """
    import mpmath as mp

    with mp.workdps(_DIGITS):
        moments = [mp.mpf(0) if k % 2 else mp.fac2(k - 1) for k in range(2 * m)]
        masses, means = _quadrature(moments, m)
        return Point(masses, means, (-mp.mpf(1) / 2,) * m)


def wide_point(m: int, mass: float) -> Point:
    """The point of S_+ with a wide atom of this mass at 0, half variance 1, and m - 1 narrow ones.

    Their moments are those of exp(v t^2) (1 - e exp(t^2)) / (1 - e), e the mass, at the largest v
    at which the matrix of the first 2 m - 2 of these moments is singular; -v is their common half
    variance.

    Examples
    --------
    >>> point = wide_point(3, 0.2)
    >>> max(abs(float(c)) for c in point.coefficients()[1:6]) < 1e-30
    True
    >>> float(point.coefficients()[6]) > 0
    True
    """
    import mpmath as mp

    with mp.workdps(_DIGITS):
        e = mp.mpf(mass)

        def moments(v: Any) -> list[Any]:
            def even(h: int) -> Any:
                return (v**h - e * (v + 1) ** h) / (1 - e) * mp.factorial(2 * h) / mp.factorial(h)

            return [mp.mpf(0) if k % 2 else even(k // 2) for k in range(2 * m + 1)]

        def definite(v: Any) -> bool:
            own = moments(v)
            sizes = range(1, m + 1)
            return all(
                mp.det(mp.matrix([[own[i + j] for j in range(n)] for i in range(n)])) > 0
                for n in sizes
            )

        low, high = mp.mpf(0), mp.mpf(1)
        while not definite(high):
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if definite(middle) else (middle, high)
        masses, means = _quadrature(moments(high), m - 1)
        rest = tuple((1 - e) * w for w in masses)
        return Point((e, *rest), (mp.mpf(0), *means), (mp.mpf(1), *((-high,) * (m - 1))))


def _quadrature(moments: list[Any], count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Weights and nodes with the first 2 `count` moments of a symmetric law."""
    import mpmath as mp

    matrix = mp.matrix([[moments[i + j] for j in range(count)] for i in range(count)])
    right = mp.matrix([-moments[count + i] for i in range(count)])
    tail = mp.lu_solve(matrix, right)
    polynomial = [mp.mpf(1), *(tail[count - 1 - i] for i in range(count))]
    roots = mp.polyroots(polynomial, maxsteps=500, extraprec=400)
    nodes = [mp.re(root) for root in roots]
    powers = mp.matrix([[node**i for node in nodes] for i in range(count)])
    weights = mp.lu_solve(powers, mp.matrix(moments[:count]))
    return tuple(weights), tuple(nodes)
