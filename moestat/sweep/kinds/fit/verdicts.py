"""Verdicts: predictions and straightness of all curves of a sweep, judged together.

Each curve's own test errs in one case out of twenty; over many curves some would.  So the p-values
of a spec's curves are adjusted by Holm's rule, and a verdict against a prediction, or against a
straight curve, is wrong for any curve of the sweep with a probability of at most 5%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moestat.rates.bounds import EXACT, FASTER, SLOWER, UNDECIDED
from moestat.rates.rate import RateResult, holm

LEVEL = 0.05
"""An adjusted p-value below this one is a verdict."""


@dataclass(frozen=True)
class Verdict:
    """What a sweep says about one of its curves, all curves considered."""

    # ``"slower"`` than the bound or ``"faster"`` if the slope differs from the predicted ones,
    # ``"this exponent"`` if no difference was found, ``"undecided"`` without a test; empty without
    # a prediction.
    theory: str = ""
    theory_p_value: float | None = None  # adjusted p-value of a predicted slope
    pre_asymptotic: bool = False  # whether the local slope changes with n
    curvature_p_value: float | None = None  # adjusted p-value of a straight curve


def judge(rates: Sequence[RateResult | None]) -> list[Verdict]:
    """The verdicts on the curves of a sweep, whose rates are None where there is none.

    Examples
    --------
    >>> from moestat.rates.rate import fit_rate
    >>> n, wobble = [10, 100, 1000, 10000], [1.0, 1.1, 0.9, 1.0]
    >>> loss = [w * size**-0.5 for w, size in zip(wobble, n)]
    >>> judge([fit_rate(n, loss, theory=-0.5), fit_rate(n, loss, theory=-0.1), None])[1].theory
    'faster'
    """
    theory = holm([math.nan if rate is None else rate.theory_p_value for rate in rates])
    bent = holm([math.nan if rate is None else rate.curvature_p_value for rate in rates])
    return [_verdict(*each) for each in zip(rates, theory, bent, strict=True)]


def _verdict(rate: RateResult | None, theory: float, bent: float) -> Verdict:
    word = ""
    if rate is not None and rate.theory is not None:
        side = FASTER if rate.slope < rate.theory_slopes[0] else SLOWER
        word = UNDECIDED if math.isnan(theory) else side if theory < LEVEL else EXACT
    return Verdict(
        theory=word,
        theory_p_value=None if math.isnan(theory) else theory,
        pre_asymptotic=bent < LEVEL,
        curvature_p_value=None if math.isnan(bent) else bent,
    )
