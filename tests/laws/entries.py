"""Laws of the other entry points: each fits what `moestat.fit_formula` fits from the same options.

An entry point gets the formula, the table and the options of the case.  The fit that it reports is
asked for its log-likelihood of the rows as a table; the same options, begun from its estimate, must
have that height; and it must have read the same rows, weights and groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import moestat
from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, asked, compared, law, obeyed
from tests.laws.questions import response_of


def _select(case: Case, given: dict[str, Any]) -> Any:
    family, _ = given.pop("family"), given.pop("n_experts")
    chosen = moestat.select(
        family, case.formula, k=[2], data=case.frame, n_starts=2, rng=0, threads=1, **given
    )
    return chosen.best


def _stepwise(case: Case, given: dict[str, Any]) -> Any:
    return moestat.stepwise(
        case.formula, case.frame, start=case.formula, n_starts=2, rng=0, threads=1, **given
    ).best


def _lasso(case: Case, given: dict[str, Any]) -> Any:
    family = given.pop("family")
    path = moestat.lasso_path(
        family, case.formula, data=case.frame, penalties=[0.05], rng=0, **given
    )
    return path.best()


def _parquet(case: Case, given: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        case.frame.to_parquet(path)
        return moestat.fit_formula(case.formula, str(path), n_starts=2, rng=0, threads=1, **given)


ENTRIES: dict[str, Callable[[Case, dict[str, Any]], Any]] = {
    "select": _select,
    "stepwise": _stepwise,
    "lasso_path": _lasso,
    "Parquet": _parquet,
}
"""Entry points that take a formula, each to the fit that it reports."""

PENALISED = ("lasso_path",)
"""Entry points whose estimate is no maximum of the likelihood."""


@law
def other_entry_points(case: Case) -> Iterator[Cell]:
    """Each entry point fits the same rows with the same weights and groups, or refuses."""
    base = case.result
    rows = case.rows
    before = case.frame.copy()
    for question, call in ENTRIES.items():
        given = dict(case.arguments)
        found, refusal, foreign = asked(lambda call=call, given=given: call(case, given))
        if refusal or foreign:
            yield Cell(question, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        yield compared(f"{question}, rows", found.nobs, base.nobs)
        if {"equal", "fixed"} & {*case.options}:
            yield Cell(f"{question}, constraints", *obeyed(found))
        height, refusal, foreign = asked(
            lambda found=found: found.log_likelihood(rows, response_of(case, rows))
        )
        if refusal or foreign:
            yield Cell(question, FAILS, str(foreign or refusal))
            continue
        yield compared(f"{question}, own rows", height, found.llf)
        again, refusal, foreign = asked(
            lambda found=found: case.fit(
                rows,
                starts=found.theta,
                # The formula of a fit leaves out its random effects.
                formula=None if "nested" in case.options else found.data.formula.formula,
            )
        )
        if refusal or foreign:
            yield Cell(question, FAILS, str(foreign or refusal))
        elif question in PENALISED:
            # The same model has a maximum above the penalised estimate.
            below = found.llf <= again.llf + 1e-6 or "prior" in case.options
            yield Cell(f"{question}, height", HOLDS if below else FAILS, f"{found.llf}")
        elif found.certificate.certified and not found.certificate.collapsed:
            yield compared(f"{question}, height", again.llf, found.llf, rtol=0.0, atol=1e-3)
    yield Cell("data unchanged", HOLDS if case.frame.equals(before) else FAILS)


@law
def tests_of_nested_fits(case: Case) -> Iterator[Cell]:
    """Twice the difference of log-likelihoods, with as many degrees of freedom as were fixed."""
    if case.option not in ("plain", "weights", "groups", "weights, groups", "missing"):
        return
    full = case.result
    slope = next((c.slope for c in _expert_channels(case) if c.slope), None)
    if slope is None:
        return
    small, refusal, foreign = asked(lambda: case.fit(fixed={slope: {(1, "z"): 0.0}}))
    if refusal or foreign:
        yield Cell("restricted fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    begun, refusal, foreign = asked(lambda: case.fit(starts=small.theta))
    if refusal or foreign:
        yield Cell("full fit", FAILS, str(foreign or refusal))
        return
    test, refusal, foreign = asked(lambda: moestat.lr_test(small, begun))
    if refusal or foreign:
        yield Cell("lr_test", FAILS if foreign else REFUSED, str(foreign or refusal))
    else:
        want = 2.0 * (begun.llf - small.llf)
        yield compared("lr_test", test.statistic, max(want, 0.0), atol=1e-6)
        yield Cell("degrees of freedom", HOLDS if test.df >= 1 else FAILS, f"{test.df}")
    test, refusal, foreign = asked(
        lambda: moestat.bootstrap_lrt(case.fit(n_experts=1, starts=None), full, 2, rng=0)
    )
    if refusal or foreign:
        yield Cell("bootstrap_lrt", FAILS if foreign else REFUSED, str(foreign or refusal))
    else:
        yield Cell("bootstrap_lrt", HOLDS if np.isfinite(test.statistic) else FAILS)


def _expert_channels(case: Case) -> Any:
    family = case.result.family
    return family.channels[family.first_expert_channel :]


@law
def estimators_are_fits(case: Case) -> Iterator[Cell]:
    """Estimators of scikit-learn fit arrays and weights as `moestat.fit` does."""
    if case.option not in ("plain", "weights", "prior") or case.member.kind in ("trials",):
        return
    law_of = case.arguments["family"]
    if case.member.kind == "censored":
        law_of = {"name": law_of, "censored": True}
    rows = case.rows
    estimator = moestat.MoEClassifier if law_of == "multinomial" else moestat.MoERegressor
    own = {"n_experts": 2, "gate": case.member.gate, "expert": case.member.expert}
    own["prior"] = case.arguments.get("prior")
    named = {} if law_of == "multinomial" else {"likelihood": law_of}
    weight = {"sample_weight": rows["w"].to_numpy()} if "weights" in case.options else {}
    X, y = rows[["x", "z"]], response_of(case, rows)
    found, refusal, foreign = asked(
        lambda: estimator(**own, **named, n_starts=2, random_state=0).fit(X, y, **weight)
    )
    if refusal or foreign:
        yield Cell("fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    made = found.results_
    if made.certificate.certified and not made.certificate.collapsed:
        starts = [moestat.starts.GivenStarts(made.theta[None])]
        again, refusal, foreign = asked(
            lambda: moestat.fit(law_of, X, y, starts=starts, rng=0, **own, **weight)
        )
        if refusal or foreign:
            yield Cell("fit", FAILS, str(foreign or refusal))
        else:
            yield compared("fit", again.llf, made.llf, rtol=0.0, atol=1e-3)
    yield compared("predict", found.predict(X), np.asarray(made.predict(X, _kind(law_of))))


def _kind(law_of: Any) -> str:
    return "class" if law_of in ("multinomial", "ordinal") else "mean"


@law
def sweeps_of_inference(case: Case) -> Iterator[Cell]:
    """A cell of a sweep of inference judges a member, or the spec is refused in a sentence."""
    from moestat.sweep.kinds.inference.observed import Observed
    from moestat.sweep.kinds.inference.procedures import PROCEDURES
    from moestat.sweep.kinds.inference.trial import make_trial

    member = case.member
    if case.option != "plain" or member.kind != "one" or not isinstance(member.likelihood, str):
        return
    family, theta = case.truth
    truth = {"likelihood": member.likelihood, "gate": member.gate, "expert": member.expert}
    truth["n_features"] = 2
    truth |= {"n_classes": family.n_classes} if family.likelihood.support is not None else {}
    truth |= {name: values.tolist() for name, values in family.unpack(theta).items()}
    truth |= {"noise": 0.05} if family.is_regression else {}
    design = {"law": "uniform", "low": -1, "high": 1}
    fields = {"n": 150, "truth": truth, "design": design, "n_starts": 1, "n_resamples": 3}
    for name, procedure in PROCEDURES.items():
        made, refusal, foreign = asked(
            lambda name=name: make_trial({**fields, "procedures": [name]})
        )
        if refusal or foreign:
            yield Cell(name, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        _, refusal, foreign = asked(
            lambda name=name, procedure=procedure, made=made: procedure.check(name, made)
        )
        if refusal or foreign:
            yield Cell(name, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        observed = Observed(made, np.random.default_rng(0), np.random.default_rng(1))
        found, refusal, foreign = asked(
            lambda procedure=procedure, observed=observed: procedure.judge(observed)
        )
        if refusal or foreign:
            yield Cell(name, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        values = [value for items in found.values() for value in items.values()]
        fine = all(value is None or 0.0 <= value <= 1.0 for value in values)
        yield Cell(name, HOLDS if values and fine else FAILS, f"{found}"[:100])
