"""The limit: which score decides, and how far the atoms then are from the truth.

With c_l the coefficient of t^l in the sum of w_j exp(mu_j t + b_j t^2) over m atoms, the
log-likelihood ratio is the sum of sqrt(n) c_l s_l Z_l - n c_l^2 s_l^2 / 2, with s_l^2 = l! the
variance of the Hermite polynomial of degree l, so that its maximum has sqrt(n) c_l = Z_l / s_l for
l up to 2 m.  In the units mu = n^(-1/(4 m)) x, b = n^(-1/(2 m)) y all c_l but the last are then of
lower order: the shape (w, x, y) has c_1 = .. = c_(2 m - 1) = 0 and the sign of Z_2m in c_2m, and of
these shapes the next term of the likelihood takes the one with the largest c_(2 m + 1).

Two atoms have no such shape with means apart where Z_4 > 0.  With d the distance of their means,
beta the difference of half variances, q = w (1 - w) and beta' = beta + (1 - 2 w) d^2 / 6,

    c_3 = q d beta',  c_4 = -q (1 - q) d^4 / 36 + q (1 - 2 w) d^2 beta' / 3 + q beta'^2 / 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from moestat.base.types import FloatArray

__all__ = [
    "FLOOR",
    "coefficients",
    "errors_in_the_limit",
    "limit_constants",
    "limit_shape",
    "quantiles_in_the_limit",
    "scales",
]

FLOOR = 0.1
"""Least mass of an atom."""
_SHAPES = 20
"""Starts of the search for a shape."""


def scales(most: int) -> FloatArray:
    """Standard deviations of the Hermite polynomials of degree 0 to `most`."""
    return np.sqrt([float(math.factorial(order)) for order in range(most + 1)])


def coefficients(atoms: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """The c_l of a mixture, and their derivatives.

    Parameters
    ----------
    atoms : ndarray of shape (3 m,)
        Masses, means and half variances of the atoms, the latter two less those of the truth.
    most : int
        Largest l.

    Returns
    -------
    c : ndarray of shape (most + 1,)
        Coefficients of t^0 to t^most.
    slopes : ndarray of shape (most + 1, 3 m)
        Derivatives in masses, means and half variances.

    Examples
    --------
    >>> c, _ = coefficients(np.array([1.0, 1.0, 0.5]), 3)
    >>> c.tolist()  # of exp(t + t^2 / 2)
    [1.0, 1.0, 1.0, 0.6666666666666666]
    """
    masses, means, halves = atoms.reshape(3, -1)
    terms = np.zeros((most + 3, means.size))  # two rows of zeros in front: l = -2, -1
    terms[2] = 1.0
    for order in range(1, most + 1):
        terms[order + 2] = (means * terms[order + 1] + 2.0 * halves * terms[order]) / order
    slopes = np.hstack([terms[2:], masses * terms[1:-1], masses * terms[:-2]])
    return terms[2:] @ masses, slopes


def limit_shape(m: int, sign: int, floor: float = FLOOR) -> FloatArray | None:
    """Masses, means and half variances of the limit where the score of order 2 m is `sign` s_2m.

    Parameters
    ----------
    m : int
        Atoms.
    sign : int
        1 or -1, the sign of the score.
    floor : float
        Least mass.

    Returns
    -------
    ndarray of shape (3 m,) or None
        The shape in units of n^(-1/(4 m)) and n^(-1/(2 m)); None where no shape was found.

    Examples
    --------
    >>> shape = limit_shape(2, -1)
    >>> q = 0.1 * 0.9
    >>> bool(np.isclose(abs(shape[2] - shape[3]) ** 4, 36.0 / (q * (1.0 - q)), rtol=1e-4))
    True
    >>> limit_shape(2, 1) is None
    True
    """
    rng, target = np.random.default_rng(0), np.zeros(2 * m + 1)
    target[0], target[-1] = 1.0, sign
    best: OptimizeResult | None = None
    for _ in range(_SHAPES):
        found = minimize(
            lambda v: tuple(-each[-1] for each in coefficients(v, 2 * m + 1)),
            np.concatenate([rng.dirichlet(np.ones(m)), *rng.standard_normal((2, m))]),
            jac=True,
            method="SLSQP",
            bounds=[(floor, 1.0)] * m + [(None, None)] * (2 * m),
            constraints={
                "type": "eq",
                "fun": lambda v: coefficients(v, 2 * m)[0] - target,
                "jac": lambda v: coefficients(v, 2 * m)[1],
            },
            options={"maxiter": 300, "ftol": 1e-12},
        )
        apart = np.abs(found.x[m : 2 * m]).max() > 1e-3
        if found.success and apart and (best is None or found.fun < best.fun):
            best = found
    return None if best is None else best.x


def limit_constants(m: int, floor: float = FLOOR) -> dict[int, float]:
    """The largest mean of `limit_shape` by sign, of the signs that have a shape.

    Examples
    --------
    >>> {sign: round(value, 3) for sign, value in limit_constants(2).items()}
    {-1: 4.121}
    """
    shapes = {sign: limit_shape(m, sign, floor) for sign in (-1, 1)}
    return {
        sign: float(np.abs(shape[m : 2 * m]).max())
        for sign, shape in shapes.items()
        if shape is not None
    }


def errors_in_the_limit(
    n: float, scores: FloatArray, m: int, constants: Mapping[int, float], floor: float = FLOOR
) -> FloatArray:
    """The largest error of a mean, for sample size `n` and given scores.

    Parameters
    ----------
    n : float
        Sample size.
    scores : ndarray of shape (N, 2)
        The scores of order 2 m - 1 and 2 m, standard normal.
    m : int
        Atoms.
    constants : mapping of int to float
        Of `limit_constants`.
    floor : float
        Least mass.

    Returns
    -------
    ndarray of shape (N,)
        Errors: of order n^(-1/(4 m)), but n^(-1/4) for two atoms with a positive fourth score.
    """
    lower, last = scores.T
    size = np.abs(last) / scales(2 * m)[-1]
    slow = size ** (1.0 / (2 * m)) * n ** (-1.0 / (4 * m))
    if m > 2:
        return slow * np.where(last < 0.0, constants[-1], constants[1])
    q = floor * (1.0 - floor)
    spread = np.sqrt(2.0 * size / q)
    near = (1.0 - floor) * np.abs(lower) / (scales(3)[-1] * q * spread) * n**-0.25
    apart = constants[-1] * slow
    return np.where(last < 0.0, apart, np.minimum(near, apart))


def quantiles_in_the_limit(
    n: FloatArray, levels: FloatArray, m: int, constants: Mapping[int, float]
) -> FloatArray:
    """Quantiles of `errors_in_the_limit` at sizes `n`, of shape (sizes, levels)."""
    scores = np.random.default_rng(0).standard_normal((100_000, 2))
    errors = (errors_in_the_limit(size, scores, m, constants) for size in n)
    return np.array([np.quantile(each, levels) for each in errors])
