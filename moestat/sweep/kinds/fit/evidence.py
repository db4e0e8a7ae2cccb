"""Evidence for a rate from the certificates of the curve's fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray


@dataclass(frozen=True)
class Spread:
    """Quantiles of a quantity over fits."""

    count: int  # fits with a finite value
    missing: int  # fits whose value is infinite or was not recorded
    smallest: float  # extremes and quartiles of the finite values
    lower: float
    median: float
    upper: float
    largest: float


@dataclass(frozen=True)
class Evidence:
    """Summary of the certificates of a curve's estimates, over all sample sizes."""

    statuses: dict[str, int]  # how the solver ended, and how often
    condition: Spread | None  # condition number of the information; missing where it is singular
    # Parameters on a bound of the parameter space, and in how many fits, most frequent first.
    active: dict[str, int]
    n_starts: dict[int, int]  # starts per fit, and in how many fits
    agreement: Spread | None  # share of the starts that reached the best log-likelihood
    unanimous: int  # fits of several starts whose starts all reached it, and fits of several starts
    with_several: int
    # Distinct certified optima, and in how many fits; 0 where no start was certified.
    n_optima: dict[int, int]
    gains: Spread | None  # log-likelihood still to be gained by the uncertified fits
    agreeing: int = 0  # fits of several starts of which at least half reached the best height
    # Mean estimated probability that a fit misses its maximum; None where it was not estimated.
    missed: float | None = None
    doubtful: int = 0  # fits in doubt, see `in_doubt`
    # Log-likelihood above the best run near the truth, and in how many fits it is more than 0.
    above_near_truth: Spread | None = None
    higher: int = 0
    # Log-likelihood above that of the truth, and in how many fits it is less than 0.
    above_truth: Spread | None = None
    below_truth: int = 0
    confirmed: int = 0  # fits that had a second pass, and those that it moved
    moved: int = 0


NUMBERS = (
    "condition",
    "agreement",
    "n_starts",
    "n_optima",
    "gain",
    "p_higher",
    "above_near_truth",
    "above_truth",
    "second_pass.gain",
)
"""Numbers of a certificate that evidence is made of; a dot leads into a mapping."""
HALF = 0.5
"""Share of the runs that have to reach the best height for starts to agree."""
HIGHER = 1e-2
"""Difference of log-likelihoods from which on two maxima are two, `SAME_HEIGHT` of estimation."""


def in_doubt(columns: Mapping[str, FloatArray]) -> NDArray[np.bool_]:
    """Which of N estimates may have missed their maximum.

    They are those of several starts of which fewer than half reached the best height.  The
    estimated probability of a higher maximum does not tell single estimates apart any better
    (`benchmarks/sweep_starts.py doubt`).
    """
    return (columns["n_starts"] > 1) & (columns["agreement"] < HALF)


def below_truth(above: FloatArray) -> int:
    """How many of N estimates have a lower log-likelihood than the truth."""
    return int(np.sum(above < -HIGHER))


def gather(
    columns: Mapping[str, FloatArray],
    certified: NDArray[np.bool_],
    statuses: Mapping[str, int],
    active: Mapping[str, int],
) -> Evidence:
    """The evidence of N estimates.

    `columns` holds for each of `NUMBERS` an array (N,) with NaN where an estimate has no number.
    `statuses` counts estimates by how the solver ended, `active` by parameter on a bound.
    """
    several = columns["n_starts"] > 1
    chance, above = columns["p_higher"], columns["above_near_truth"]
    beyond = columns["above_truth"]
    gained = columns["second_pass.gain"]
    known = chance[~np.isnan(chance)]
    return Evidence(
        statuses=dict(sorted(statuses.items())),
        condition=_spread(columns["condition"]),
        active=dict(sorted(active.items(), key=lambda item: (-item[1], item[0]))),
        n_starts=_counts(columns["n_starts"]),
        agreement=_spread(columns["agreement"]),
        unanimous=int(np.sum(columns["agreement"][several] == 1.0)),
        with_several=int(np.sum(several)),
        n_optima=_counts(columns["n_optima"]),
        gains=_spread(columns["gain"][~certified]),
        agreeing=int(np.sum(columns["agreement"][several] >= HALF)),
        missed=float(known.mean()) if known.size else None,
        doubtful=int(np.sum(in_doubt(columns))),
        above_near_truth=_spread(above),
        higher=int(np.sum(above > HIGHER)),
        above_truth=_spread(beyond),
        below_truth=below_truth(beyond),
        confirmed=int(np.sum(~np.isnan(gained))),
        moved=int(np.sum(gained > 0.0)),
    )


def _counts(values: FloatArray) -> dict[int, int]:
    """Value -> number of fits, in the order of the values."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return {int(value): int(count) for value, count in zip(distinct, counts, strict=True)}


def _spread(values: FloatArray) -> Spread | None:
    """Quantiles of the values that are not NaN; None without any."""
    recorded = values[~np.isnan(values)]
    if not recorded.size:
        return None
    quantiles = [float(q) for q in np.quantile(recorded, [0.0, 0.25, 0.5, 0.75, 1.0])]
    return Spread(recorded.size, values.size - recorded.size, *quantiles)
