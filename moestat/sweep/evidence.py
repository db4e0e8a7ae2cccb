"""Evidence: what the certificates of a curve's fits say about how far to trust its rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moestat.sweep.record import Record

__all__ = ["Evidence", "Spread", "gather"]


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


def gather(records: Sequence[Record]) -> Evidence:
    """The evidence of estimates.

    Parameters
    ----------
    records : sequence of Record
        Records with an estimate, certified or not.

    Returns
    -------
    Evidence
        Counts and quantiles.

    Examples
    --------
    >>> certificate = {"condition": 1e3, "active": ["a[0]"], "n_optima": 1, "n_starts": 3}
    >>> evidence = gather([Record("k", "c", 10, 0, "done", certificate=certificate)])
    >>> evidence.active, evidence.condition.median, evidence.n_optima
    ({'a[0]': 1}, 1000.0, {1: 1})
    """
    certificates = [record.certificate for record in records]
    uncertified = [record.certificate for record in records if not record.certified]
    several = [each for each in certificates if each.get("n_starts", 1) > 1]
    active = Counter(name for each in certificates for name in each.get("active", ()))
    return Evidence(
        statuses=_counts(certificates, "status"),
        condition=_spread(certificates, "condition"),
        active=dict(sorted(active.items(), key=lambda item: (-item[1], item[0]))),
        n_starts=_counts(certificates, "n_starts"),
        agreement=_spread(certificates, "agreement"),
        unanimous=sum(each.get("agreement") == 1.0 for each in several),
        with_several=len(several),
        n_optima=_counts(certificates, "n_optima"),
        gains=_spread(uncertified, "gain"),
    )


def _counts(certificates: Sequence[Any], key: str) -> dict[Any, int]:
    """Value -> number of fits, in the order of the values."""
    return dict(sorted(Counter(each[key] for each in certificates if key in each).items()))


def _spread(certificates: Sequence[Any], key: str) -> Spread | None:
    """Quantiles of the values that are there; None if none is."""
    values = [each[key] for each in certificates if each.get(key) is not None]
    if not values:
        return None
    quantiles = [float(q) for q in np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])]
    return Spread(len(values), len(certificates) - len(values), *quantiles)
