"""The public fit: bad input, results and summaries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import moestat
from moestat.base.warnings import OptimumWarning
from moestat.estimation.starts import (
    GivenStarts,
    MeasureStarts,
    RandomStarts,
    TruthStarts,
    make_starts,
)
from moestat.solvers import Newton
from moestat.solvers.problem import Objective, Problem, Rows
from tests.conftest import WIDE

FAMILY = moestat.family("multinomial", gate="softmax", n_experts=2, n_features=2, n_classes=3)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return moestat.sample(FAMILY, rng.normal(size=FAMILY.n_params), 400, rng=rng)


def with_value(array, where, value):
    changed = np.array(array, dtype=float)
    changed[where] = value
    return changed


BAD = {
    "NaN in X": (lambda X, y: (with_value(X, (3, 1), np.nan), y), "X holds 1 NaN or infinite"),
    "inf in X": (lambda X, y: (with_value(X, (3, 1), np.inf), y), "X holds 1 NaN or infinite"),
    "strings in X": (lambda X, y: (np.full(X.shape, "a"), y), "X must hold numbers"),
    "X of other width": (lambda X, y: (X[:, :1], y), r"X must have shape \(any, 2\), got \(400, 1"),
    "X with one axis": (lambda X, y: (X[:, 0], y), r"X must have shape \(any, 2\), got \(400,\)"),
    "y of other length": (lambda X, y: (X, y[:-1]), "X has 400 samples but y has 399"),
    "y in two axes": (lambda X, y: (X, np.c_[y, y]), r"shape \(n,\) for \w+, got \(400, 2\)"),
    "NaN in y": (lambda X, y: (X, with_value(y, 0, np.nan)), "y has 1 missing values"),
    "fractions in y": (
        lambda X, y: (X, with_value(y, 0, 1.5)),
        "integers, words or truth values; got 1.5",
    ),
    "a label too many": (
        lambda X, y: (X, with_value(y, 0, 4)),
        r"labels 1\.\.3 or 3 labels of another kind; got 4 labels: 1, 2, 3, 4",
    ),
    "one word in y": (lambda X, y: (X, np.array(["a"] * 400)), "got 1 labels: a"),
    "absent class": (lambda X, y: (X, np.minimum(y, 2)), "class 3 of 1..3 never occurs"),
    "n too small": (lambda X, y: (X[:14], y[:14]), "n = 14 samples cannot determine 15 free"),
    "no data": (lambda X, y: (X[:0], y[:0]), "X has no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_give_one_clear_error(case, data):
    spoil, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        moestat.fit(FAMILY, *spoil(*data), rng=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": np.ones(3)}, r"sample_weight must have shape \(400\), got \(3,\)"),
        ({"sample_weight": -np.ones(400)}, "sample_weight must be >= 0"),
        ({"sample_weight": np.zeros(400)}, "sample_weight must have a positive sum"),
        ({"rng": "seed"}, "rng must be a numpy.random.Generator, a seed or None, got 'seed'"),
        ({"starts": []}, r"starts must be a list of one or more rules .*, got \[\]"),
        ({"starts": "random"}, "starts must be a list of .*RandomStarts.*, got 'random'"),
        ({"starts": [np.zeros(15)]}, r"starts must be a list of .*GivenStarts\(\[theta\]\)"),
        ({"starts": [GivenStarts([[0.0, 1.0]])]}, "points have 2 parameters, the family"),
        ({"solver": "newton"}, r"solver must be a solver such as .*Newton\(\).*, got 'newton'"),
    ],
)
def test_bad_options_give_one_clear_error(options, message, data):
    with pytest.raises(ValueError, match=message):
        moestat.fit(FAMILY, *data, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate": "soft"}, "unknown gate 'soft'; known: 'softmax', 'softmax-top', 'sigmoid'"),
        ({"expert": "cubic"}, "unknown expert 'cubic'"),
        ({"likelihood": "no such"}, "unknown likelihood 'no such'"),
        ({"n_experts": 0}, "n_experts must be an integer >= 1, got 0"),
        ({"n_experts": 2.5}, "n_experts must be an integer >= 1, got 2.5"),
        ({"n_features": 0}, "n_features must be an integer >= 1"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2, got 1"),
        ({"bounds": {"alpha": (1, -1)}}, r"bounds of 'alpha' must increase, got \(1, -1\)"),
        ({"bounds": {"delta": (0, 1)}}, "unknown block 'delta'"),
        ({"bounds": {"gamma": (1, 2)}}, "bounds of 'gamma' must hold 0"),
    ],
)
def test_bad_families_give_one_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        moestat.family(**options)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([0.0, 1.0], r"starts: points must have shape \(any, any\), got \(2,\)"),
        ([[np.nan, 1.0]], "starts: points holds 1 NaN"),
        (np.zeros((0, 4)), "starts: points must hold at least one row"),
    ],
)
def test_bad_starting_values_give_one_clear_error(points, message):
    with pytest.raises(ValueError, match=message):
        GivenStarts(points)


class Own:
    """A start rule of one's own that draws what it is given."""

    name = "own"

    def __init__(self, points):
        self.points = points

    def draw(self, problem, rng):
        return self.points


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros(FAMILY.n_params), rf"must have shape \(any, {FAMILY.n_params}\), got \("),
        (np.zeros((2, 3)), r"got \(2, 3\)"),
        (np.zeros((0, FAMILY.n_params)), "starts: rule 'own' draws no start"),
        (None, "what rule 'own' draws is missing"),
        (np.full((1, FAMILY.n_params), np.nan), r"draws holds \d+ NaN"),
    ],
)
def test_rules_of_ones_own_that_draw_no_starts_are_refused(data, points, message):
    with pytest.raises(ValueError, match=message):
        moestat.fit(FAMILY, *data, starts=[Own(points)])


def test_a_rule_of_ones_own_is_named_in_the_certificate(data):
    best = moestat.fit(FAMILY, *data, rng=0)
    again = moestat.fit(FAMILY, *data, starts=[Own([best.params])])
    assert again.certificate.start == "own 0"
    assert again.log_likelihood == pytest.approx(best.log_likelihood, abs=1e-6)
    with pytest.raises(ValueError, match="your own rule must have draw and name"):
        moestat.fit(FAMILY, *data, starts=[type("Nameless", (), {"draw": Own.draw})()])


def test_a_fit_from_its_own_maximum_stays_there(data):
    best = moestat.fit(FAMILY, *data, rng=0)
    again = moestat.fit(FAMILY, *data, starts=[GivenStarts([best.params])])
    assert again.certificate.start == "given 0"
    assert again.certificate.certified
    assert again.log_likelihood == pytest.approx(best.log_likelihood, abs=1e-6)


@pytest.mark.parametrize("gate", ["softmax", "sigmoid", "sigmoid-inner", "sigmoid-euclidean"])
def test_starts_around_the_mixing_measure_have_the_true_density(gate, truth):
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 200, rng=0)
    fitted = family.with_experts(5)
    problem = Problem(fitted, Rows(np.ascontiguousarray(X.T), y - 1, np.ones(200)))
    (rule,) = make_starts({"measure": 3, "noise": 0.0}, family, theta)
    assert isinstance(rule, MeasureStarts)
    expected = family.rowwise(theta, problem.data.X, problem.data.y)[2]
    for start in rule.draw(problem, np.random.default_rng(1)):
        log_density = fitted.rowwise(start, problem.data.X, problem.data.y)[2]
        np.testing.assert_allclose(log_density, expected, atol=1e-12)
    copies = TruthStarts(family, theta, 1, 0.0).draw(problem, np.random.default_rng(1))[0]
    assert np.abs(fitted.rowwise(copies, problem.data.X, problem.data.y)[2] - expected).max() > 0.01


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"truth": 1}, "truth-centred starts need a truth"),
        (
            {"rand": 1},
            "unknown start rule 'rand'; known: 'truth', 'measure', 'split', 'cluster', 'random',",
        ),
        ({}, "at least one start"),
        ({"random": -1}, "starts: random must be an integer >= 0, got -1"),
        ({"random": 1, "noise": 0.1}, "noise belongs to truth-centred starts"),
        ({"truth": 1, "noise": []}, "noise must be a number >= 0 or a list of them"),
        ({"truth": 1, "noise": [0.1, -1.0]}, "noise must be"),
    ],
)
def test_bad_start_tables_give_one_clear_error(table, message):
    with pytest.raises(ValueError, match=message):
        make_starts(table, *((FAMILY, np.zeros(FAMILY.n_params)) if "noise" in table else ()))


def test_pack_names_what_is_missing():
    with pytest.raises(ValueError, match="missing: beta1; unknown: 'slope'"):
        FAMILY.pack({"beta0": [0, 0], "slope": 1, "a": 1, "b": 1})
    blocks = FAMILY.unpack(np.zeros(FAMILY.n_params))
    with pytest.raises(ValueError, match=r"block 'beta1' must have shape \(2, 2\), got \(2, 3\)"):
        FAMILY.pack({**blocks, "beta1": np.zeros((2, 3))})
    with pytest.raises(ValueError, match="block 'beta0' holds 1 NaN"):
        FAMILY.pack({**blocks, "beta0": [0.0, np.nan]})


def test_pack_takes_contrasts_to_the_last_class():
    full = FAMILY.unpack(np.arange(FAMILY.n_params, dtype=float))
    shift = np.array([[3.0], [-1.0]])
    wide = {
        **full,
        "b": np.hstack([full["b"], np.zeros((2, 1))]) + shift,
        "a": np.concatenate([full["a"], np.zeros((2, 1, 2))], axis=1) + shift[..., None],
    }
    assert np.array_equal(FAMILY.pack(wide), FAMILY.pack(full))


def test_sample_rejects_bad_sizes():
    with pytest.raises(ValueError, match="n must be an integer >= 1, got 0"):
        moestat.sample(FAMILY, np.zeros(FAMILY.n_params), 0)
    with pytest.raises(ValueError, match=r"theta must have shape \(18\), got \(3,\)"):
        moestat.sample(FAMILY, np.zeros(3), 10)
    with pytest.raises(ValueError, match="low must be below high"):
        moestat.Uniform(1.0, 1.0)


def test_sampling_is_reproducible(truth):
    family, theta = truth("sigmoid")
    one, other = (moestat.sample(family, theta, 50, rng=9) for _ in range(2))
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_summary_shows_parameters_errors_and_certificate(truth):
    family, theta = truth("sigmoid")
    X, y = moestat.sample(family, theta, 20_000, rng=0, design=WIDE)
    result = moestat.fit(family, X, y, starts=[TruthStarts(family, theta, 2, 0.05)], rng=0)
    text = str(result.summary())
    assert result.tidy()["name"].tolist() == result.param_names
    for symbol in family.blocks:
        assert f" {symbol} " in text
    assert "(reference)" in text
    assert f"{result.log_likelihood:.3f}" in text
    assert "Certified" in text
    assert result.aic == pytest.approx(2 * 9 - 2 * result.log_likelihood)
    assert result.bic == pytest.approx(np.log(20_000) * 9 - 2 * result.log_likelihood)
    interval = result.conf_int()
    assert np.allclose(interval.mean(axis=1), result.params)
    assert np.allclose(np.diff(interval, axis=1)[:, 0], 2 * 1.959964 * result.bse, rtol=1e-6)


def test_unidentified_coordinates_have_no_standard_error(truth):
    """Two copies of one atom: the split of their mass is free, and the table says so."""
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 3000, rng=0, design=WIDE)
    single = moestat.fit(family.with_experts(1), X, y, rng=0)
    from dataclasses import replace

    from moestat.solvers.problem import Problem, Request, Rows

    double = np.tile(single.params, 2)
    sample = Rows(np.ascontiguousarray(X.T), y - 1, np.ones(len(y)))
    here = Problem(family, sample).evaluate(Request(Objective.OBSERVED, double))
    flat = np.where(np.arange(double.size) < 2, 0.0, 1.0)
    information = here.hessian * np.outer(flat, flat) + np.diag(flat) * 1e4
    result = replace(
        single,
        family=family,
        standard=None,
        solution=replace(single.solution, theta=double, information=information),
    )
    errors = result.bse
    assert np.isnan(errors[0])
    assert np.isnan(errors[1])
    assert np.all(np.isfinite(errors[2:4]))
    assert "(not identified)" in str(result.summary())


def test_start_count_and_agreement_are_reported(truth):
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 4000, rng=3, design=WIDE)
    rules = [TruthStarts(family, theta, 2, 0.05), RandomStarts(6)]
    certificate = moestat.fit(family, X, y, starts=rules, rng=0).certificate
    assert certificate.n_starts == 8
    assert 1 <= certificate.n_optima <= 8
    assert 2 / 8 <= certificate.agreement <= 1.0
    record = certificate.as_dict()
    assert record["certified"] is True
    assert record["inertia"] == list(certificate.inertia)


def test_a_data_set_of_a_batch_is_named_in_its_error(data):
    X, y = data
    with pytest.raises(ValueError, match="data set 1: X holds 1 NaN"):
        moestat.fit_many(FAMILY, [(X, y), (with_value(X, (0, 0), np.nan), y)])
    with pytest.raises(ValueError, match="at least one"):
        moestat.fit_many(FAMILY, [])


def test_the_fit_raises_no_warning(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What a fit says of its own maximum is meant for the user; nothing else may warn.
        warnings.simplefilter("ignore", OptimumWarning)
        result = moestat.fit(FAMILY, *data, solver=Newton(max_iterations=60), rng=0)
    assert np.isfinite(result.llf)


def test_a_default_call_ends_near_the_best_known():
    """Food expenditure by income: -1346.28 is known, and searches agree a tenth below."""
    from statsmodels.datasets import engel

    table = engel.load_pandas().data
    how = {"n_experts": 3, "maximum": "highest", "rng": 0}
    result = moestat.fit("gaussian", table[["income"]], table["foodexp"], **how)
    assert result.llf > -1346.28 - 0.2
