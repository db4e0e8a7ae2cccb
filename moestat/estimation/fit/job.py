"""A fit to be computed: the model, the data, the solver and its starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import Encoded, FloatArray, Labels, Seed
from moestat.base.validate import is_sequence, short
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import arranged
from moestat.estimation.data.priors import Prior, as_prior
from moestat.estimation.data.random_terms import check_random_effects
from moestat.estimation.data.read import check_size, hint_of_shares
from moestat.estimation.rules import HIGHER
from moestat.estimation.search.options import MAXIMA, SearchOptions
from moestat.estimation.search.runs import default_solver
from moestat.estimation.starts import StartRule
from moestat.model.family import Family
from moestat.model.responses import columns_of
from moestat.solvers import Newton, Solver
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Problem, Target
from moestat.solvers.trust_region.kinks import has_kinks

__all__ = ["FitJob", "check_rows", "checked_starts"]

_SQUARES, _ROWS = 48, 6
"""Measured peak memory of a fit: matrices (P, P) of all parameters, and copies of the data."""


@dataclass(frozen=True)
class FitJob:
    """One fit to be computed.

    Parameters
    ----------
    family : Family
        The model.
    data : Data
        The data, as `moestat.estimation.data.data.read_data` or `Data.of` have read them.
    solver, starts, rng, prior
        As in `moestat.fit`.
    by_weight : bool
        Whether experts come in descending order of their mean weight.
    search : SearchOptions
        How starts are searched if none are given.
    """

    family: Family
    data: Data
    solver: Solver | None = None
    starts: Sequence[StartRule] | None = None
    rng: Seed = None
    prior: Prior | None = None
    by_weight: bool = False
    search: SearchOptions = field(default_factory=SearchOptions)

    def __post_init__(self) -> None:
        self.search.check_beside(self.starts)

    @classmethod
    def of(
        cls,
        family: Family,
        data: Data,
        *,
        n_starts: int | None = None,
        time_limit: float | None = None,
        risk: float | None = None,
        maximum: str = MAXIMA[0],
        prior: Prior | str | None = None,
        **more: Any,
    ) -> Self:
        """The job from the arguments of `moestat.fit`; `more` are further fields."""
        search = SearchOptions(n_starts, time_limit, risk, maximum)
        return cls(family, data, prior=as_prior(prior, family), search=search, **more)

    def problem(self, whole: bool = False) -> Problem:
        """The data as the loops read them, after every check that does not need the solver."""
        family, data = self.family, self.data
        design, weight = data.X.T, data.weight
        response = family.likelihood.encode(data.y, family.n_classes)
        columns = ("X", design), *(("y", values) for values in columns_of(response))
        used = weight > 0
        check_rows(
            family,
            self.prior,
            [(name, v.min(-1, initial=0.0), v.max(-1, initial=0.0)) for name, v in columns],
            response if used.all() else response[used],
            float(weight.sum()),
            int(used.sum()),
            data.groups,
        )
        return Problem(family, arranged(design, response, weight, data.groups, whole))

    @property
    def coefficients_of_higher(self) -> tuple[float, ...] | None:
        """Coefficients of the probability of a higher maximum; None where it was not estimated."""
        if self.family.is_regression or self.family.n_experts == 1 or len(self.rules()) > 1:
            return None
        if self.prior is None:
            return HIGHER.coefficients
        return HIGHER.modes if self.prior == as_prior("weak", self.family) else None

    def rules(self) -> list[StartRule]:
        """The rules of starts, the default search if none are given."""
        if self.starts is None:
            return [self.search.rule(self.family)]
        return checked_starts(self.starts)

    def chosen_solver(self) -> Solver:
        """The solver, checked; the default one of the model if none is given."""
        solver = default_solver(self.family) if self.solver is None else self.solver
        if not (hasattr(solver, "steps") and hasattr(solver, "needs")):
            raise ValueError(
                "solver must be a solver such as moestat.solvers.Newton(), or the result of"
                f" moestat.solvers.make_solver(name), got {short(solver)}"
            )
        solver.needs.check(solver.name, self.family)
        if self.prior is not None and not isinstance(solver, Newton):
            raise ValueError(f"prior: needs the solver Newton, got solver {solver.name!r}")
        return solver

    def check_target(self, problem: Problem, target: Target) -> None:
        """Raise unless the target can fit the model, and memory suffices."""
        family = self.family
        P, (d, n) = family.n_params, problem.data.X.shape
        check_room(
            FLOAT_BYTES * (_SQUARES * P**2 + _ROWS * n * (d + 2)),
            f"X, n_experts: a fit of {P:,} parameters to {n:,} rows",
            "; take fewer experts or inputs",
        )
        special = {
            "equal": family.ties,
            "groups": self.data.groups is not None,
            "y of two columns": np.iscomplexobj(problem.data.y),
            "y of several responses": family.likelihood.parts,
        }
        for name in (name for name, is_given in special.items() if is_given):
            if not isinstance(target, Cores):
                raise ValueError(f"{name}: such fits run on the processor; leave out target=")
            if has_kinks(family):
                raise ValueError(f"{name}: the likelihood with gate {family.gate.name!r} has kinks")


def checked_starts(starts: object) -> list[StartRule]:
    """The start rules of a list, checked."""
    rules: list[Any] = list(starts) if is_sequence(starts) else []
    if not rules or not all(hasattr(rule, "draw") and hasattr(rule, "name") for rule in rules):
        raise ValueError(
            "starts must be a list of one or more rules of moestat.estimation.starts, such as"
            " [RandomStarts(4)] or, for your own values, [GivenStarts([theta])]; your own rule"
            f" must have draw and name, got {short(starts)}"
        )
    return rules


def check_rows(
    family: Family,
    prior: Prior | None,
    ranges: Iterable[tuple[str, FloatArray, FloatArray]],
    response: Encoded | None,
    size: float,
    n_rows: int,
    groups: Labels | None,
) -> None:
    """Raise if rows, in memory or elsewhere, do not determine the parameters of a family.

    Parameters
    ----------
    family, prior
        Those of the fit.
    ranges : sequence of (str, ndarray, ndarray)
        Columns by the name of their argument, with the least and the greatest value of each.
    response : ndarray or None
        Encoded responses of the rows with a weight, or their two ends; None for classes that all
        occur.
    size, n_rows : float and int
        Sum of the weights, and number of the rows that have one.
    groups : ndarray or None
        Labels of the groups of rows, all or some.
    """
    for name, low, high in ranges:
        check_size(name, low, high)
    if response is not None:
        _check_response(family, response)
    if size < family.n_free_params and prior is None:
        raise ValueError(
            f"n = {size:g} samples cannot determine {family.n_free_params} free parameters;"
            f' prior="weak" adds the missing information{hint_of_shares(size, n_rows)}'
        )
    if family.likelihood.effects is not None:
        check_random_effects(family, groups, prior)
    if family.n_experts > n_rows:
        raise ValueError(
            f"n_experts must be at most the number of rows {n_rows}, got {family.n_experts}"
        )


def _check_response(family: Family, response: Encoded) -> None:
    """Raise if the responses vary too little for a maximum-likelihood estimate to exist."""
    likelihood = family.likelihood
    for one, (marginal, _) in zip(likelihood.parts, family.marginals, strict=True):
        try:
            _check_response(marginal, response[one.field])
        except ValueError as error:
            raise ValueError(f"response {one.name!r}: {error}") from None
    if likelihood.parts:
        return
    if likelihood.counts:
        assert likelihood.link is not None
        level = float(np.mean(likelihood.level(response)))
        if level == 0.0 and not ("censored" in likelihood.options and np.any(response)):
            raise ValueError("y is 0 everywhere; the predictor of its mean would diverge")
        with np.errstate(divide="ignore"):
            end = np.isinf(likelihood.link(level))
        if level > 0.0 and end:
            raise ValueError("y is the number of trials everywhere; its predictor would diverge")
        return
    if likelihood.support is None:
        if np.ptp(response) == 0:
            raise ValueError("y is constant; its variance would be 0")
        return
    labels = np.asarray(likelihood.decode(likelihood.support(family.n_classes)))
    absent = np.setdiff1d(labels, likelihood.decode(np.unique(response)))
    if absent.size:
        raise ValueError(
            f"y: class {absent[0]} of 1..{family.n_classes} never occurs; its logits would"
            " diverge. Recode y or lower n_classes"
        )
