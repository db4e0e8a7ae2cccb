"""Fits in which an expert is chosen once for a group of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import ExtrapolationWarning
from moestat.model.reference import log_sum_exp
from moestat.solvers import EM, QuasiNewton


@pytest.fixture(scope="module")
def subjects():
    """60 subjects of 12 rows, intercepts +-.6, standard deviation 1, rows in random order."""
    rng = np.random.default_rng(3)
    kind = rng.random(60) < 0.5
    owner = rng.permutation(np.repeat(np.arange(60), 12))
    x = rng.uniform(-1, 1, 720)
    y = np.where(kind[owner], 0.6, -0.6) + rng.normal(size=720)
    frame = pd.DataFrame({"y": y, "x": x, "id": [f"s{i:02d}" for i in owner], "age": owner % 7})
    return frame, kind, owner


@pytest.fixture(scope="module")
def result(subjects):
    return moestat.fit_formula("y ~ x | 1 | id", subjects[0], n_experts=2, rng=0)


def right(result, kind):
    """Share of rows whose most probable expert is theirs."""
    found = result.responsibilities.argmax(axis=1) == 1
    return max(np.mean(found == kind), np.mean(found != kind))


def test_groups_find_subjects_that_rows_do_not(subjects, result):
    frame, kind, owner = subjects
    assert result.certificate.certified
    assert right(result, kind[owner]) >= 0.95
    rows = moestat.fit_formula("y ~ x | 1", frame, n_experts=2, rng=0)
    assert right(rows, kind[owner]) < 0.8


def test_the_log_likelihood_is_an_independent_sum(subjects, result):
    frame, _, owner = subjects
    b = result.blocks
    mean = b["b"][:, None] + b["a"][:, :1] * frame["x"].to_numpy()
    variance = b["nu"][:, None]
    rows = -0.5 * np.log(2 * np.pi * variance) - (frame["y"].to_numpy() - mean) ** 2 / 2 / variance
    joint = np.stack([np.bincount(owner, row) for row in rows]) + b["beta0"][:, None]
    total = np.sum(log_sum_exp(joint) - log_sum_exp(b["beta0"]))
    assert result.llf == pytest.approx(total, rel=1e-12)
    tau = np.exp(joint - log_sum_exp(joint))[:, owner].T
    assert np.allclose(result.responsibilities, tau, atol=1e-12)


def test_criteria_count_groups(result):
    assert (result.nobs, result.n_groups, result.n_independent) == (720, 60, 60)
    assert result.bic == pytest.approx(np.log(60) * 7 - 2 * result.llf)
    assert "720 in 60 groups" in str(result.summary())


def test_rows_may_come_in_any_order_and_labels_may_be_numbers(subjects, result):
    frame, _, owner = subjects
    order = np.argsort(owner, kind="stable")
    X, y = frame[["x"]].iloc[order], frame["y"].iloc[order]
    again = moestat.fit("gaussian", X, y, n_experts=2, gate_inputs=[], groups=owner[order], rng=0)
    assert again.llf == pytest.approx(result.llf, abs=1e-6)
    assert np.allclose(
        again.responsibilities[np.argsort(order)], result.responsibilities, atol=1e-4
    )


@pytest.mark.parametrize("solver", [EM(), QuasiNewton()], ids=lambda s: s.name)
def test_other_solvers_end_at_the_same_maximum(subjects, result, solver):
    frame, *_ = subjects
    X, y = frame[["x"]], frame["y"]
    options = {"n_experts": 2, "gate_inputs": [], "groups": frame["id"], "rng": 0}
    again = moestat.fit("gaussian", X, y, solver=solver, **options)
    assert again.llf == pytest.approx(result.llf, abs=1e-3)


def test_inputs_of_the_gate_are_those_of_the_group(subjects):
    frame, *_ = subjects
    good = moestat.fit_formula("y ~ x | age", frame, groups="id", n_experts=2, rng=0)
    assert good.certificate.certified
    with pytest.raises(ValueError, match="'x' does within group"):
        moestat.fit_formula("y ~ x | x | id", frame, n_experts=2)
    X, y, weight = frame[["age"]], frame["y"], np.arange(720.0)
    with pytest.raises(ValueError, match="sample_weight differs within group"):
        moestat.fit("gaussian", X, y, groups=frame["id"], sample_weight=weight)
    for groups, match in (
        (np.arange(3), r"one label per row, shape \(720,\)"),
        ([None] * 720, "720 missing values"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.fit("gaussian", frame[["x"]], frame["y"], groups=groups)


def test_errors_of_groups(subjects, result):
    """The sandwich is that of the scores of groups; resampled groups have about its errors."""
    robust = result.get_robustcov_results("HC0").theta_bse
    cluster = result.get_robustcov_results("cluster").theta_bse
    assert np.allclose(cluster, robust * np.sqrt(60 / 59))
    free = result.free
    assert np.all(np.abs(np.log(robust[free] / result.theta_bse[free])) < 0.4)
    for kind in ("pairs", "parametric", "bayesian"):
        again = result.bootstrap(60, kind, rng=0)
        assert np.all(np.abs(np.log(again.theta_bse[free] / robust[free])) < 0.6)
    with pytest.raises(ValueError, match="'expected': not available with groups"):
        result.get_robustcov_results("expected")
    with pytest.raises(ValueError, match="have several labels"):
        result.get_robustcov_results("cluster", np.arange(720))


def test_numbers_of_experts_are_compared_by_groups(subjects):
    frame, *_ = subjects
    options = {"groups": frame["id"], "gate_inputs": [], "rng": 0}
    chosen = moestat.select("gaussian", frame[["x"]], frame["y"], k=(1, 2), folds=3, **options)
    assert chosen.chosen("bic") == chosen.chosen("cv") == 2


def test_new_rows_of_a_known_subject_have_its_expert(subjects, result):
    frame, *_ = subjects
    new = pd.DataFrame({"x": [0.0, 0.0], "id": ["s00", "unheard of"]})
    with pytest.warns(ExtrapolationWarning, match="'unheard of', are not in the fit"):
        known, other = result.predict(new, groups=new["id"])
    own = result.responsibilities[np.flatnonzero(frame["id"] == "s00")[0]]
    assert known == pytest.approx(own @ result.blocks["b"], rel=1e-10)
    assert other == pytest.approx(result.predict(new)[1], rel=1e-12)


@pytest.mark.parametrize("name", ["multinomial", "poisson"])
def test_other_responses_in_groups(name):
    rng = np.random.default_rng(1)
    owner = np.repeat(np.arange(80), 10)
    kind, x = (rng.random(80) < 0.5)[owner], rng.normal(size=800)
    eta = np.where(kind, 0.5 + x, 0.5 - x)
    y = (
        rng.random(800) < 1 / (1 + np.exp(-eta))
        if name == "multinomial"
        else rng.poisson(np.exp(eta))
    )
    fit = moestat.fit(name, x, y, n_experts=2, gate_inputs=[], groups=owner, rng=0)
    assert fit.certificate.certified
    assert right(fit, kind) > 0.9


def test_influence_is_that_of_groups(subjects, result):
    """One subject less, by a fit from the estimate."""
    frame = subjects[0]
    found = result.influence()
    assert found.moves.shape == (60, result.theta.size)
    at = int(np.argmax(found.displacement))
    label = np.unique(frame["id"])[at]
    rest = moestat.fit_formula(
        "y ~ x | 1 | id",
        frame[frame["id"] != label],
        starts=[moestat.starts.GivenStarts([result.theta])],
        rng=0,
    )
    moved = rest.theta - result.theta
    assert np.linalg.norm(found.moves[at] - moved) < 0.3 * np.linalg.norm(moved)


def test_experts_by_weight_pair_the_rows_of_groups_with_their_own_weights():
    rng = np.random.default_rng(3)
    group = rng.permutation(np.repeat(np.arange(60), 6))  # not in blocks
    z, x = rng.normal(size=60)[group], rng.normal(size=group.size)
    y = np.where(z + rng.logistic(size=60)[group] > -0.5, 1 + 2 * x, -1 - x)
    y += 0.4 * rng.normal(size=group.size)
    weight = np.where(z < 0, 5.0, 1.0)
    X, options = np.c_[x, z], {"groups": group, "gate_inputs": [1], "sample_weight": weight}
    result = moestat.fit("gaussian", X, y, n_experts=2, rng=0, **options)
    chance = result.predict(X, which="gate")
    share = np.average(chance, axis=0, weights=weight)
    assert share[0] > share[1]
    assert np.mean(chance[:, 0]) < 0.5


def test_whole_numbers_are_the_same_labels_whatever_the_type_of_the_array():
    rng = np.random.default_rng(0)
    group, X, y = np.repeat(np.arange(20), 3), rng.normal(size=(60, 1)), rng.normal(size=60)
    fits = [
        moestat.fit("gaussian", X, y, n_experts=2, groups=labels, gate_inputs=[], rng=0)
        for labels in (group, group.astype(object))
    ]
    for one in fits:
        assert one.rows.groups.dtype.kind == "i"
        means = [one.predict(X, groups=labels) for labels in (group, group.astype(object))]
        assert np.array_equal(*means)


@pytest.mark.parametrize("other", ["0", True, 1.0, False])
def test_labels_that_look_alike_or_are_equal_are_refused(other):
    """1 and "1" became one group, 1 and True two."""
    labels = np.repeat(np.arange(20), 3).astype(object)
    labels[5] = other
    with pytest.raises(ValueError, match="groups must hold labels of one type"):
        moestat.fit("gaussian", np.arange(60.0) % 7, np.arange(60.0), n_experts=1, groups=labels)


def test_weights_that_differ_name_the_group_as_it_is_given():
    group = np.repeat(np.arange(20), 3)
    options = {"groups": group, "sample_weight": 1.0 + np.arange(60)}
    with pytest.raises(ValueError, match=r"sample_weight differs within group 0$"):
        moestat.fit("gaussian", np.arange(60.0) % 7, np.arange(60.0), n_experts=1, **options)
