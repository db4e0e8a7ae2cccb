"""Evidence: what the certificates of a curve's fits say about how far to trust its rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray


@dataclass(frozen=True)
class Spread:
    """Quantiles of a quantity over fits.

    Parameters
    ----------
    count : int
        Fits with a finite value.
    missing : int
        Fits whose value is infinite or was not recorded.
    smallest, lower, median, upper, largest : float
        Extremes and quartiles of the finite values.
    """

    count: int
    missing: int
    smallest: float
    lower: float
    median: float
    upper: float
    largest: float


@dataclass(frozen=True)
class Evidence:
    """What the certificates of a curve's estimates say, over all sample sizes.

    Parameters
    ----------
    statuses : mapping of str to int
        How the solver ended, and how often.
    condition : Spread or None
        Condition number of the information; missing where it is singular.
    active : mapping of str to int
        Parameters on a bound of the parameter space, and in how many fits, most frequent first.
    n_starts : mapping of int to int
        Starts per fit, and in how many fits.
    agreement : Spread or None
        Share of the starts that reached the best log-likelihood.
    unanimous, with_several : int
        Fits of several starts whose starts all reached it, and fits of several starts.
    n_optima : mapping of int to int
        Distinct certified optima, and in how many fits; 0 where no start was certified.
    gains : Spread or None
        Log-likelihood still to be gained by the uncertified fits.
    """

    statuses: dict[str, int]
    condition: Spread | None
    active: dict[str, int]
    n_starts: dict[int, int]
    agreement: Spread | None
    unanimous: int
    with_several: int
    n_optima: dict[int, int]
    gains: Spread | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


NUMBERS = ("condition", "agreement", "n_starts", "n_optima", "gain")
"""Numbers of a certificate that evidence is made of."""


def gather(
    columns: Mapping[str, FloatArray],
    certified: Any,
    statuses: Mapping[str, int],
    active: Mapping[str, int],
) -> Evidence:
    """The evidence of estimates.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (N,)
        For each of `NUMBERS` those of the estimates, NaN where there is none.
    certified : ndarray of shape (N,)
        Whether they are certified.
    statuses, active : mapping of str to int
        How solvers ended, and parameters on a bound, each with the number of estimates.

    Returns
    -------
    Evidence
        Counts and quantiles.

    Examples
    --------
    >>> nothing, one = np.array([np.nan]), np.array([1.0])
    >>> columns = dict.fromkeys(NUMBERS, nothing) | {"condition": 1e3 * one, "n_optima": one}
    >>> evidence = gather(columns, np.array([True]), {}, {"a[0]": 1})
    >>> evidence.active, evidence.condition.median, evidence.n_optima
    ({'a[0]': 1}, 1000.0, {1: 1})
    """
    several = columns["n_starts"] > 1
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
    )


def _counts(values: FloatArray) -> dict[int, int]:
    """Value -> number of fits, in the order of the values."""
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return {int(value): int(count) for value, count in zip(found, counts, strict=True)}


def _spread(values: FloatArray) -> Spread | None:
    """Quantiles of the values that are there; None if none is."""
    there = values[~np.isnan(values)]
    if not there.size:
        return None
    quantiles = [float(q) for q in np.quantile(there, [0.0, 0.25, 0.5, 0.75, 1.0])]
    return Spread(there.size, values.size - there.size, *quantiles)
