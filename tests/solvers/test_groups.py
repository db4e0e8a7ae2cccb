"""Groups of rows that share one choice of an expert: sums and derivatives against an oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moestat.model.reference import log_sum_exp
from moestat.solvers.groups import group_sums, scores_of_groups
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import WORK
from tests import oracle
from tests.kinds import kind_id, known, make, random_response, random_theta

GROUPED = [
    ("gaussian", "softmax", "linear"),
    ("gaussian", "sigmoid-euclidean", "linear"),
    ("gaussian", "competition", "linear"),
    ("gaussian", "softmax", {"name": "ffn", "hidden": 2}),
    ("multinomial", "sigmoid", "linear"),
    ("negative-binomial", "softmax", "linear"),
    ("student-t", "softmax", "linear"),
]


def random_groups(kind, k=3, d=2, K=3, sizes=(1, 5, 2, 9, 3, 1, 7), seed=0):
    """A family, parameters, and rows group by group; the gate's inputs are those of first rows."""
    rng = np.random.default_rng(seed)
    family = make(kind, k, d, K)
    theta = random_theta(family, rng, 0.7)
    n = sum(sizes)
    X, y = rng.uniform(-1, 1, size=(n, d)), random_response(family, rng, n)
    begin = np.cumsum([0, *sizes[:-1]])
    weight = np.repeat(rng.exponential(size=len(sizes)), sizes)
    encoded = family.likelihood.encode(y, family.n_classes)
    data = Rows(np.ascontiguousarray(X.T), encoded, weight, begin=begin)
    return family, theta, X, y, data


def expected(family, theta, X, y, data):
    """``sum_g w_g log sum_i pi_i(x_g) prod f_i`` by plain NumPy."""
    blocks = oracle.blocks_of(family, theta)
    gate = oracle.gate_scores(family, blocks, X)[:, data.begin]
    rows = oracle.expert_log_densities(family, blocks, X, y)
    joint = gate + np.add.reduceat(rows, data.begin, axis=1)
    return data.weight[data.begin] @ (log_sum_exp(joint) - log_sum_exp(gate))


def complex_score(family, theta, *data):
    def along(j):
        moved = theta.astype(complex)
        moved[j] += 1e-30j
        return expected(family, moved, *data).imag / 1e-30

    return np.array([along(j) for j in range(theta.size)])


@pytest.mark.parametrize("kind", GROUPED, ids=kind_id)
def test_value_score_and_hessian_of_groups_are_those_of_the_formula(kind):
    family, theta, X, y, data = random_groups(kind)
    here = Problem(family, data).evaluate(Request(Objective.INFORMED, theta))
    assert -here.value == pytest.approx(expected(family, theta, X, y, data), rel=1e-13)
    score = complex_score(family, theta, X, y, data)
    assert np.allclose(-here.gradient, score, rtol=0, atol=1e-12 * np.abs(score).max())
    h, numeric = 1e-5, np.zeros_like(here.hessian)
    for j in set(range(theta.size)) - known(family):
        step = h * np.eye(theta.size)[j]
        up, down = (complex_score(family, theta + s, X, y, data) for s in (step, -step))
        numeric[j] = (up - down) / (2 * h)
    assert np.allclose(-here.hessian, numeric, rtol=0, atol=1e-7 * np.abs(numeric).max())
    scores, weight = scores_of_groups(family, theta, data), data.weight[data.begin]
    assert np.allclose(scores.T @ weight, score, rtol=0, atol=1e-11 * np.abs(score).max())
    assert np.allclose(here.information, (scores.T * weight) @ scores)


@pytest.mark.parametrize("kind", GROUPED[:2], ids=kind_id)
def test_complete_data_of_groups_have_the_score_of_the_observed_ones(kind):
    family, theta, *_, data = random_groups(kind)
    problem = Problem(family, data)
    observed = problem.evaluate(Request(Objective.OBSERVED, theta))
    assert problem.evaluate(Request(Objective.EXPECTATION, theta)).value == observed.value
    complete = problem.evaluate(Request(Objective.COMPLETE, theta))
    assert np.allclose(complete.gradient, observed.gradient, atol=1e-10)
    h = 1e-6
    for j in range(theta.size):
        step = h * np.eye(theta.size)[j]
        up, down = (problem.evaluate(Request(Objective.COMPLETE, theta + s)) for s in (step, -step))
        assert (up.value - down.value) / (2 * h) == pytest.approx(complete.gradient[j], abs=1e-6)
        numeric = (up.gradient - down.gradient) / (2 * h)
        assert np.allclose(numeric, complete.hessian[j], atol=1e-5)


def test_groups_of_one_row_are_rows():
    family, theta, *_, data = random_groups(GROUPED[0], sizes=(1,) * 40)
    rows = Problem(family, Rows(data.X, data.y, data.weight))
    for objective in (Objective.VALUE, Objective.INFORMED):
        one = Problem(family, data).evaluate(Request(objective, theta))
        other = rows.evaluate(Request(objective, theta))
        for name in vars(one):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-10)


def test_sums_do_not_depend_on_how_rows_are_held_in_memory(monkeypatch):
    family, theta, *_, data = random_groups(GROUPED[0], sizes=(3, 50, 2, 2, 4, 120, 1))
    whole = group_sums(family, theta, data, 2)
    monkeypatch.setattr("moestat.solvers.groups.WORK", WORK._replace(block=7))
    parts = group_sums(family, theta, replace(data), 2)
    assert np.allclose(whole.hessian, parts.hessian, rtol=1e-12, atol=1e-12)
    assert np.allclose(whole.scores, parts.scores, rtol=1e-12, atol=1e-12)
    assert whole.value == pytest.approx(parts.value, rel=1e-14)
