"""Procedures that a sweep of inference judges.  A new one is a function and a line at the end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from moestat.base.warnings import MoEWarning
from moestat.estimation.inference.bootstrap import bootstrap
from moestat.estimation.inference.dendrogram import dendrogram, has_dendrogram
from moestat.estimation.inference.hypotheses import likelihood_ratio
from moestat.estimation.inference.nested import lr_test, score_test
from moestat.estimation.inference.profile import profile
from moestat.estimation.search.agreement import search_of
from moestat.estimation.studies.order import bootstrap_lrt
from moestat.estimation.studies.selection import CRITERIA, select
from moestat.sweep.kinds.inference.observed import Observed, Outcomes
from moestat.sweep.kinds.inference.trial import Trial

_LEVEL = 0.05


@dataclass(frozen=True)
class Procedure:
    """A procedure of inference after a fit, and the nominal value of its outcomes."""

    nominal: float | None  # what the mean of the outcomes should be
    evaluate: Callable[[Observed], Outcomes | None]  # None without a certified fit
    labels: Callable[[Observed], Iterable[str]]  # those of the outcomes of a certified fit
    item: str = "fit"  # what stands in for the items where there is none
    searches: bool = False  # whether it searches for other maxima, from starts
    of_means: bool = False  # whether it is of conditional means
    least_inputs: int = 1  # the fewest inputs that it takes

    def check(self, name: str, trial: Trial) -> None:
        """Raise unless the procedure, called `name`, can judge cells of the trial."""
        if self.searches and trial.n_starts == 0:
            raise ValueError(
                f"n_starts must be an integer >= 1 for the procedure {name!r}, which searches"
            )
        if self.of_means and trial.family.likelihood.support is not None:
            raise ValueError(
                f"procedures: {name!r} judges intervals of means, which the likelihood"
                f" {trial.family.likelihood.name!r} does not have"
            )

        if trial.family.n_features < self.least_inputs:
            raise ValueError(
                f"procedures: {name!r} needs a truth with n_features >= {self.least_inputs}, got"
                f" {trial.family.n_features}"
            )

    def judge(self, observed: Observed) -> Outcomes:
        """Outcomes by label and item."""
        outcomes = self.evaluate(observed)
        if outcomes is None:
            return {label: {self.item: None} for label in self.labels(observed)}
        return outcomes


def _contains(ends: Iterable[float], value: float) -> float | None:
    """Whether an interval holds a value, 1 or 0; None for an interval with an end that is NaN."""
    low, high = ends
    return None if low != low or high != high else float(low <= value <= high)


def _covariances(observed: Observed) -> tuple[str, ...]:
    """Those that are judged: by groups where there are groups."""
    kinds = ("observed", "expected", "HC0", "HC1")
    return (*kinds, "cluster") if observed.trial.group_size > 1 else kinds


def _wald(observed: Observed) -> Outcomes | None:
    """Whether Wald intervals, by each covariance, hold their parameter."""
    if (result := observed.result) is None:
        return None
    outcomes = {}
    for kind in _covariances(observed):
        groups = observed.groups if kind == "cluster" else None
        # By hand: an interval that should not be trusted would warn.
        half = 1.959963984540054 * result.get_robustcov_results(kind, groups).theta_bse
        ends = np.column_stack([result.theta - half, result.theta + half])
        outcomes[f"Wald, {kind}"] = {
            name: _contains(ends[j], value) for name, j, value in observed.targets
        }
    return outcomes


_MEAN_KINDS = ("observed", "HC0")


def _prediction(observed: Observed) -> Outcomes | None:
    """Whether delta-method intervals hold the conditional mean, by place in the design."""
    if (result := observed.result) is None:
        return None
    X, means = observed.places
    outcomes = {}
    for kind in _MEAN_KINDS:
        ends = result.get_robustcov_results(kind).get_prediction(X).conf_int()
        outcomes[f"mean, {kind}"] = {
            f"at {X[t].round(2).tolist()}": _contains(ends[t], float(means[t]))
            for t in range(len(X))
        }
    return outcomes


def _profile(observed: Observed) -> Outcomes | None:
    """Whether profile intervals hold their parameter; no answer where a higher value was met."""
    if (result := observed.result) is None:
        return None
    contains: dict[str, float | None] = {}
    for name, j, value in observed.targets:
        try:
            ends = profile(result, result.param_names[j]).interval
        except ValueError:
            ends = float("nan"), float("nan")
        contains[name] = _contains(ends, value)
    return {"profile": contains}


_RESAMPLED = {
    "pairs": ("percentile", "basic", "bca"),
    "parametric": ("percentile", "basic"),
    "bayesian": ("percentile",),
}


def _bootstrap(observed: Observed) -> Outcomes | None:
    """Whether bootstrap intervals hold their parameter."""
    if (result := observed.result) is None:
        return None
    outcomes, count = {}, observed.trial.n_resamples
    for kind, methods in _RESAMPLED.items():
        again = bootstrap(result, count, kind, rng=observed.rng.spawn(1)[0], threads=1)
        for method in methods:
            ends = again.conf_int(method=method)
            outcomes[f"bootstrap {kind}, {method}"] = {
                name: _contains(ends[j], value) for name, j, value in observed.targets
            }
    return outcomes


_NESTED = ("likelihood ratio", "score", "Wald, observed", "Wald, expected", "Wald, HC0")


def _nested(observed: Observed) -> Outcomes | None:
    """Whether tests that the last input has no effect reject at level 5%."""
    if (full := observed.result) is None:
        return None
    family = full.family
    last = family.n_features - 1
    # Every coefficient of the last input that is free.
    tested = [
        name
        for name, low, high in zip(full.param_names, family.lower, family.upper, strict=True)
        if low < high and name.endswith(f",{last}]")
    ]
    if (smaller := observed.without_last()) is None:
        return None
    constraints = ", ".join(f"{name} = 0" for name in tested)
    small = smaller.blocks
    blocks = full.family.unpack(np.zeros(family.n_params))
    for name, block in blocks.items():
        blocks[name] = (
            small[name]
            if small[name].shape == block.shape
            else np.concatenate([small[name], np.zeros((*block.shape[:-1], 1))], axis=-1)
        )
    pvalues = {
        "likelihood ratio": lr_test(smaller, full).pvalue,
        "score": score_test(full, family.pack(blocks), df=len(tested)).pvalue,
    }
    for kind in ("observed", "expected", "HC0"):
        test = full.get_robustcov_results(kind).wald_test(constraints)
        pvalues[f"Wald, {kind}"] = test.pvalue
    return {name: {"last input": float(p < _LEVEL)} for name, p in pvalues.items()}


_ORDER = ("bootstrap likelihood ratio", "chi-square by parameters")


def _order(observed: Observed) -> Outcomes | None:
    """Whether tests against one more expert reject at 5%; chi-square is what one must not do."""
    if (small := observed.result) is None:
        return None
    trial = observed.trial
    large = observed.fitted(small.family.with_experts(trial.n_experts + 1))
    starts = [search_of(trial.n_starts, searches=1)]
    rng = observed.rng.spawn(1)[0]
    again = bootstrap_lrt(small, large, trial.n_resamples, rng=rng, threads=1, starts=starts)
    df = large.family.n_free_params - small.family.n_free_params
    naive = likelihood_ratio(small.log_likelihood, large.log_likelihood, df)
    pvalues = again.pvalue, naive.pvalue
    return {
        name: {"one more expert": float(p <= _LEVEL)}
        for name, p in zip(_ORDER, pvalues, strict=True)
    }


def _selection(observed: Observed) -> Outcomes:
    """For each criterion whether it chooses k* experts, and whether it chooses more."""
    trial = observed.trial
    true, X, y = trial.truth.family.n_experts, *observed.data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        table = select(
            trial.family,
            X,
            y,
            k=range(1, trial.n_experts + 1),
            folds=3,
            rng=observed.rng.spawn(1)[0],
            starts=[search_of(trial.n_starts, searches=1)],
            threads=1,
        )
    # The dendrogram is of the fit with the most experts.
    chosen = {name: table.chosen(name) for name in CRITERIA}
    largest = table.results[trial.n_experts]
    if has_dendrogram(largest.family) and trial.n_experts > 1:
        chosen["dendrogram"] = dendrogram(largest.family, largest.theta, X, y).n_experts
    return {
        **{f"{name} right": {"k": float(k == true)} for name, k in chosen.items()},
        **{f"{name} too many": {"k": float(k > true)} for name, k in chosen.items()},
    }


PROCEDURES: Mapping[str, Procedure] = {
    "wald": Procedure(0.95, _wald, lambda observed: [f"Wald, {k}" for k in _covariances(observed)]),
    "prediction": Procedure(
        0.95, _prediction, lambda _: [f"mean, {k}" for k in _MEAN_KINDS], of_means=True
    ),
    "profile": Procedure(0.95, _profile, lambda _: ["profile"]),
    "bootstrap": Procedure(
        0.95,
        _bootstrap,
        lambda _: [f"bootstrap {k}, {m}" for k, methods in _RESAMPLED.items() for m in methods],
    ),
    "nested": Procedure(0.05, _nested, lambda _: _NESTED, "last input", least_inputs=2),
    "order": Procedure(0.05, _order, lambda _: _ORDER, "one more expert", searches=True),
    "selection": Procedure(None, _selection, lambda _: (), searches=True),
}
"""Procedures by name."""
