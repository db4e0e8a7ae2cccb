"""Two quadratic sigmoid gates that add up to a constant one, as far as powers of x go.

sigma(c_1 + b_1 x + A_1 x^2) + sigma(c_2 + b_2 x + A_2 x^2) with b of order eps and A of order eps^2
is a series in eps x.  Behind the fact quadratic-gates of Yan et al. (2025).
"""

from __future__ import annotations

import numpy as np

from experiments.claims.kinds import InequalityEvidence
from experiments.claims.trial import Trial
from moestat.base.types import FloatArray

__all__ = ["ATTENTION_GATE_PAIRS", "THRESHOLD", "cancelling", "quartic", "unequal"]

THRESHOLD = 1.0 - 3.0**-0.5
"""The value of a constant gate above which two gates agree with it to one order more."""
_SEED, _DRAWS = 22, 2000


def cancelling(share: float, first: float) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Two gates with the values `first` and ``share - first`` at 0, constant up to x^3.

    Parameters
    ----------
    share, first : float
        Value of the sum at 0, and of the first gate.

    Returns
    -------
    (values, slopes, curves, left)
        Values of both gates, their slopes b (the first is 1), the curves A that undo the
        coefficients of x^2 and x^3, and the coefficient of x^4 that is left.

    Examples
    --------
    >>> abs(cancelling(THRESHOLD, 0.5 * THRESHOLD)[3]) < 1e-15
    True
    """
    values = np.array([first, share - first])
    once = values * (1.0 - values)
    twice = once * (1.0 - 2.0 * values)
    thrice = once * (1.0 - 6.0 * once)
    fourth = twice * (1.0 - 12.0 * once)
    slopes = np.array([1.0, -once[0] / once[1]])
    if first == 0.5 * share:
        found = -twice / (2.0 * once)  # the coefficient of x^3 is 0 by symmetry
    else:
        found = np.linalg.solve(
            np.array([once, twice * slopes]),
            np.array([-twice @ slopes**2 / 2.0, -thrice @ slopes**3 / 6.0]),
        )
    curves = np.asarray(found, np.float64)
    left = twice @ curves**2 / 2.0 + thrice @ (slopes**2 * curves) / 2.0 + fourth @ slopes**4 / 24.0
    return values, slopes, curves, float(left)


def unequal(share: float, low: float, high: float) -> float:
    """The value of the first gate, between two, at which the coefficient of x^4 vanishes, too.

    Examples
    --------
    >>> round(unequal(0.6, 0.1, 0.29), 4)
    0.1856
    """
    for _ in range(200):
        middle = 0.5 * (low + high)
        left = cancelling(share, low)[3] * cancelling(share, middle)[3] > 0.0
        low, high = (middle, high) if left else (low, middle)
    return 0.5 * (low + high)


def quartic(share: float) -> FloatArray:
    """The coefficient of x^4, up to factors that are not 0, in w = (p_1 - p_2)^2.

    Parameters
    ----------
    share : float
        S = p_1 + p_2, the value of the constant gate.

    Returns
    -------
    FloatArray (5,)
        Coefficients of w^4 to w^0.
    """
    s = share
    return np.array(
        [
            9 * s**2 - 18 * s + 6,
            -36 * s**4 + 144 * s**3 - 192 * s**2 + 96 * s + 8,
            54 * s**6 - 324 * s**5 + 732 * s**4 - 768 * s**3 + 400 * s**2 - 128 * s,
            -36 * s**8
            + 288 * s**7
            - 912 * s**6
            + 1440 * s**5
            - 1144 * s**4
            + 352 * s**3
            + 32 * s**2,
            3 * s**4 * (s - 2) ** 4 * (3 * s**2 - 6 * s + 2),
        ]
    )


def _gate_pairs() -> InequalityEvidence:
    """The quartic has the sign of the coefficient, and a zero in (0, S^2) beyond the threshold."""
    rng = np.random.default_rng(_SEED)
    wrong = 0
    for _ in range(_DRAWS):
        share = rng.uniform(0.01, 0.99)
        first = share * rng.uniform(0.01, 0.49)
        value = np.polyval(quartic(share), (share - 2.0 * first) ** 2)
        left = cancelling(share, first)[3]
        # Scaled so that a sign at rounding does not count.
        wrong += value * left > 0.0 and abs(left) > 1e-9
        roots = np.roots(quartic(share))
        real = roots.real[np.abs(roots.imag) < 1e-9]
        inside = int(np.sum((real > 0.0) & (real < share**2)))
        wrong += inside != (share > THRESHOLD)
    detail = "signs of the coefficient of x^4, and zeros of the quartic, at random gates"
    return InequalityEvidence(float(wrong), _DRAWS, detail)


ATTENTION_GATE_PAIRS = Trial(
    "attention quadratic-gates",
    _gate_pairs,
    "the coefficient of x^4 vanishes for some gates exactly if S > 1 - 3^(-1/2)",
)
