"""Readers that forget something: a law of the suite sees each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moestat.estimation.data import read
from moestat.estimation.fit import doubts, fitted
from moestat.estimation.fit import job as jobs
from moestat.estimation.fitting import estimators
from moestat.estimation.fitting import fit_source as source_fits
from moestat.estimation.inference import covariance, misfit, simpler, three_step
from moestat.estimation.inference.inner_fit import InnerFit
from moestat.estimation.reading.formula import FormulaInputs
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.results import results, rows_of_fit
from moestat.estimation.studies import selection
from moestat.model.family import Family
from moestat.solvers import certificate
from tests.kinds import each_run
from tests.laws.cases import Case, Member, _fitted
from tests.laws.every import LAWS
from tests.laws.laws import FAILS, judge
from tests.laws.readers import READERS

NORMAL, COUNTS, CLASSES = Member("gaussian"), Member("poisson"), Member("multinomial")
TRIALS, BOUNDS = Member("binomial", kind="trials"), Member("gaussian", kind="censored")
BOTH = Member(("gaussian", "poisson"), kind="several")


def after(function, change):
    """A function whose answer is changed."""
    return lambda *args, **kwargs: change(function(*args, **kwargs))


def reader(**lost):
    """`read_rows` with something of the rows replaced."""

    def change(found):
        inputs, rows = found
        return inputs, replace(rows, **{name: make(rows) for name, make in lost.items()})

    return after(rows_of_fit.read_rows, change)


def swapped(found):
    """Inputs with the first two columns in each other's place."""
    return replace(found, design=np.ascontiguousarray(found.design[::-1]))


MUTATIONS = {
    "a summary makes a fit": (
        (results.MoEResults, "_order_doubt", property(lambda self: str(simpler.simpler(self)))),
        Case(NORMAL, "plain"),
    ),
    "responses of two columns are not checked": (
        (misfit, "_check_dependence", lambda fits: _of_one_column(fits)),
        Case(TRIALS, "plain"),
    ),
    "shapes on their limits stay there under restrictions": (
        (InnerFit, "movable", property(lambda self: self.free)),
        Case(Member("negative-binomial"), "plain"),
    ),
    "a fit on a bound of the user is uncertified without a word": (
        (certificate, "collapsed_atoms", lambda problem, theta: _on_any_floor(problem, theta)),
        Case(NORMAL, "plain"),
    ),
    "clusters of weight 0 leave the design": (
        (covariance, "strata_of", lambda *given: _without_units_of_weight_0(*given)),
        Case(NORMAL, "weights"),
    ),
    "each formula leaves out rows of its own": (
        (selection, "shared_source", lambda formulas, data, family, given: data),
        Case(NORMAL, "plain"),
    ),
    "weights of new rows are forgotten": (
        (rows_of_fit, "read_rows", reader(weight=lambda rows: np.ones(len(rows.y)))),
        Case(COUNTS, "weights"),
    ),
    "groups of new rows are forgotten": (
        (rows_of_fit, "read_rows", reader(groups=lambda rows: None)),
        Case(NORMAL, "groups"),
    ),
    "inputs of new rows are swapped": (
        (fitted, "read_new_inputs", after(fitted.read_new_inputs, swapped)),
        Case(NORMAL, "plain"),
    ),
    "the transformation of the response is forgotten": (
        (FormulaInputs, "response_in", lambda self, given, names, several: given[names[0]]),
        Case(NORMAL, "transformed"),
    ),
    "failures are taken for successes": (
        (
            FormulaInputs,
            "response_in",
            after(
                FormulaInputs.response_in,
                lambda column: replace(column, values=column.values[:, ::-1]),
            ),
        ),
        Case(TRIALS, "plain"),
    ),
    "responses are taken by position": (
        ("tests", "swap", None),
        Case(BOTH, "plain"),
    ),
    "a fit forgets its weights": (
        (read, "as_weights", lambda weight, n: np.ones(n)),
        Case(NORMAL, "weights"),
    ),
    "a fit forgets its groups": (
        (jobs, "arranged", lambda X, y, w, groups, whole=False: ARRANGED(X, y, w, None, whole)),
        Case(NORMAL, "groups"),
    ),
    "constraints are counted and not kept": (
        (Family, "ties", property(lambda self: [])),
        Case(NORMAL, "equal"),
    ),
    "a file forgets the groups": (
        (results, "write_record", lambda path, r: WRITTEN(path, _without_groups(r))),
        Case(NORMAL, "groups"),
    ),
    "a selection forgets the weights": (
        (selection, "_weights_of", lambda options, given: options.pop("weights", None) and None),
        Case(COUNTS, "weights"),
    ),
    "a source forgets the weights": (
        (source_fits, "Plan", lambda inputs, weights, *more: PLAN(inputs, None, *more)),
        Case(COUNTS, "weights"),
    ),
    "rows of weight 0 count once": (
        (read, "as_weights", after(read.as_weights, lambda weight: np.maximum(weight, 1.0))),
        Case(NORMAL, "weights"),
    ),
    "an offset of new rows is forgotten": (
        (fitted, "read_new_inputs", lambda family, *given: _without_offset(family, given)),
        Case(COUNTS, "offset"),
    ),
    "groups of new rows are those of other rows": (
        (rows_of_fit, "read_rows", reader(groups=lambda rows: rows.groups[::-1])),
        Case(NORMAL, "groups"),
    ),
    "bounds of new rows are read as known responses": (
        (rows_of_fit, "read_rows", reader(y=lambda rows: rows.y[:, [0, 0]])),
        Case(BOUNDS, "plain"),
    ),
    "an estimator forgets the weights": (
        (estimators._MoEEstimator, "_fit", lambda *given: FITTED(*given[:4], None)),
        Case(NORMAL, "weights"),
    ),
    "numbers of trials of rows are forgotten": (
        (rows_of_fit.RowsOfFit, "_at_rows", lambda self, y: self.family),
        Case(TRIALS, "plain"),
    ),
    "a note on coefficients is forgotten": (
        (doubts, "_undetermined", lambda standard, result, far: []),
        Case(Member("gaussian", expert="activation"), "transformed"),
    ),
    "a file forgets the prior": (
        (results, "write_record", lambda path, r: WRITTEN(path, replace(r, prior=None))),
        Case(NORMAL, "prior"),
    ),
    "answers lose what rows are called": (
        (Inputs, "like", lambda self, values, columns=None: np.asarray(values)),
        Case(NORMAL, "missing"),
    ),
}

ARRANGED, WRITTEN, PLAN = jobs.arranged, results.write_record, source_fits.Plan
NEW, FITTED = fitted.read_new_inputs, estimators._MoEEstimator._fit


def _on_any_floor(problem, theta):
    family = problem.family
    blocks = [family.blocks[name] for name in family.likelihood.scales]
    return tuple(int(i) for at in blocks for i in np.flatnonzero(theta[at] <= family.lower[at]))


CHECKED = misfit._check_dependence


def _of_one_column(fits):
    return CHECKED(fits) if len(fits) == 1 and fits[0].y.ndim == 1 else []


STRATA = covariance.strata_of


def _without_units_of_weight_0(scores, inside, strata):
    used = inside > 0.0
    return STRATA(scores[used], inside[used], None if strata is None else strata[used])


def _without_offset(family, given):
    found = NEW(family, *given)
    design = found.design.copy()
    design[family.offset_input[0]] = 0.0
    return replace(found, design=design)


def _without_groups(result):
    return replace(result, data=replace(result.data, groups=None))


@pytest.mark.parametrize("mutation", each_run(MUTATIONS, [*MUTATIONS][::3], first=[*MUTATIONS][:1]))
def test_a_law_sees_it(mutation, monkeypatch):
    (place, name, changed), case = MUTATIONS[mutation]
    _fitted.cache_clear()
    if changed is None:
        monkeypatch.setattr(
            "moestat.estimation.data.rows._by_names", lambda y, known, names: y.iloc[:, ::-1]
        )
    else:
        monkeypatch.setattr(place, name, changed)
    try:
        seen = any(cell.verdict == FAILS for law in LAWS for cell in judge(law, case))
    finally:
        _fitted.cache_clear()
    assert seen, mutation


def by_position(rows, name, count, index=None):
    """Places of rows by their order, whatever their labels."""
    return np.arange(count) if count == len(rows.y) else rows.kept


@pytest.mark.parametrize("reader", READERS)
def test_readers_by_position_are_seen(reader, monkeypatch):
    """Each question that takes a column of the rows reads it by the labels."""
    case = Case(NORMAL, "missing")
    for place, name in ((fitted, "places_of_rows"), (three_step, "places_of_units")):
        monkeypatch.setattr(place, name, by_position)
    cells = judge("columns of rows are read by labels", case)
    assert any(c.verdict == FAILS for c in cells if c.question.split(", ")[0] == reader)
