"""How long and for which maximum a fit looks for starting values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import one_of, positive_int, real_in
from moestat.estimation.data.priors import has_prior
from moestat.estimation.rules import MODES, MOST_FITS
from moestat.estimation.search.agreement import Pool, search_of
from moestat.estimation.search.modes import ModeSearch
from moestat.estimation.starts import StartRule
from moestat.model.family import Family
from moestat.solvers.problem import Problem

__all__ = ["MAXIMA", "SearchOptions", "SearchRule"]


@runtime_checkable
class SearchRule(StartRule, Protocol):
    """A rule that searches, and keeps a record of what it has seen."""

    @property
    def risk(self) -> float:
        """Largest accepted probability of a higher end."""
        ...

    @property
    def is_calibrated(self) -> bool:
        """Whether its record says how probable a higher end is."""
        ...

    def rows(self, problem: Problem) -> int:
        """Number of rows that a search runs on; its starts have seen these."""
        ...

    def new_record(self, on_all: bool, coefficients: tuple[float, ...] | None) -> Any:
        """The record of a search that has not begun, on all rows of the fit or on a sample."""
        ...

    def find_starts(
        self, problem: Problem, rng: np.random.Generator, record: Any = None
    ) -> tuple[FloatArray, list[int]]:
        """The starts (m, P), and how many runs reached each height, the highest first."""
        ...

    def so_far(self, record: Any, problem: Problem) -> FloatArray:
        """The starts (m, P) of a search that was interrupted."""
        ...


MAXIMA = "regular", "highest"
"""The maxima of the likelihood that a fit can return, the default first."""


@dataclass(frozen=True)
class SearchOptions:
    """What `moestat.fit` takes about the default starts.

    Parameters
    ----------
    n_starts, time_limit, risk, maximum
        As in `moestat.fit`.
    more : tuple of StartRule
        Rules whose starts are added to those of each pool.
    """

    n_starts: int | None = None
    time_limit: float | None = None
    risk: float | None = None
    maximum: str = MAXIMA[0]
    more: tuple[StartRule, ...] = ()

    def __post_init__(self) -> None:
        one_of("maximum", self.maximum, MAXIMA)
        if self.n_starts is not None:
            positive_int("n_starts", self.n_starts, maximum=MOST_FITS)
        if self.time_limit is not None:
            real_in("time_limit", self.time_limit, 0.0)
        if self.risk is not None:
            real_in("risk", self.risk, 0.0, 1.0)

    def check_beside(self, starts: object) -> None:
        """Raise if starts are given as well."""
        if starts is not None and self != SearchOptions():
            raise ValueError(
                "n_starts, time_limit, risk and maximum apply to the default starts only; leave"
                " them out if you give starts"
            )

    def rule(self, family: Family) -> SearchRule:
        """The search for a family: for modes, if it has several experts and the weak prior."""
        limit = np.inf if self.time_limit is None else self.time_limit
        is_single = family.n_experts == 1
        if self.maximum == "highest" or is_single or not has_prior(family):
            return search_of(self.n_starts, time_limit=limit, more=self.more, risk=self.risk)
        accepted = MODES.risk if self.risk is None else self.risk
        pool = Pool(self.n_starts or MODES.starts, more=self.more)
        return ModeSearch(pool, accepted, time_limit=limit)
