"""Sums over groups with random effects, beside dense normal densities in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from moestat import family
from moestat.model.plain import blocks_of
from moestat.model.reference import log_sum_exp
from moestat.solvers.groups import group_sums
from moestat.solvers.problem import Objective, Problem, Request, Rows

STEP = 1e-200
KINDS = [
    (["1"], "free"),
    ([1], "free"),
    (["1", 0], "free"),
    ([0, "1", 1], "free"),
    (["1", 0], "diagonal"),
]


def problem(random, covariance, k, n_groups=12):
    """A problem with groups of one to six rows, and parameters (P,)."""
    rng = np.random.default_rng([3, k, len(random)])
    table = {"name": "gaussian", "random": random, "covariance": covariance}
    model = family(table, gate="softmax", n_experts=k, n_features=2)
    sizes = rng.integers(1, 7, n_groups)
    begin, n = np.cumsum(sizes) - sizes, int(sizes.sum())
    weight = np.repeat(rng.uniform(0.5, 2.0, n_groups), sizes)
    data = Rows(rng.normal(size=(2, n)), rng.normal(size=n), weight, begin=begin)
    theta = model.feasible(model.pin(0.7 * rng.normal(size=model.n_params)))
    return model, data, theta


def dense(model, theta, data, tau=None):
    """Weighted log-likelihood by covariance matrices of whole groups; theta may be complex."""
    b = blocks_of(model, theta)
    total, edges = 0.0, np.append(data.begin, data.size)
    for g, begin in enumerate(data.begin):
        rows = slice(begin, edges[g + 1])
        phi = np.vstack([np.ones(edges[g + 1] - begin), data.X[:, rows]]).T
        scores, joint = [], []
        for i in range(model.n_experts):
            loadings = phi @ np.vstack([b["l"][i], b["L"][i].T])
            V = loadings @ loadings.T + b["nu"][i] * np.eye(len(phi))
            r = data.y[rows] - phi @ np.append(b["b"][i], b["a"][i])
            log_det = np.log(np.linalg.det(2.0 * np.pi * V))
            scores.append(b["beta0"][i] + b["beta1"][i] @ phi[0, 1:])
            joint.append(scores[-1] - 0.5 * (log_det + r @ np.linalg.solve(V, r)))
        scores, joint = np.array(scores)[:, None], np.array(joint)[:, None]
        top = log_sum_exp(joint)[0] if tau is None else tau[:, g] @ joint[:, 0]
        total = total + data.weight[begin] * (top - log_sum_exp(scores)[0])
    return total


def complex_slopes(function, theta):
    """Derivatives (P, ...) by complex steps."""
    return np.array([np.imag(function(theta + 1j * STEP * e)) / STEP for e in np.eye(theta.size)])


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("random", "covariance"), KINDS)
def test_sums_are_those_of_dense_densities(random, covariance, k):
    model, data, theta = problem(random, covariance, k)
    found = group_sums(model, theta, data, 2)
    free = model.lower < model.upper
    assert found.value == pytest.approx(dense(model, theta, data), rel=1e-12)
    score = complex_slopes(lambda at: dense(model, at, data), theta)
    assert np.allclose(found.score[free], score[free], rtol=1e-9, atol=1e-9)
    side = 1e-5 * np.eye(theta.size)
    sides = [[group_sums(model, theta + s * e, data, 1).score for e in side] for s in (1, -1)]
    curvature = (np.array(sides[0]) - np.array(sides[1])) / 2e-5
    assert np.allclose(found.hessian[free][:, free], curvature[free][:, free], rtol=1e-6, atol=1e-5)


def test_given_responsibilities_are_kept():
    model, data, theta = problem(["1", 0], "free", 3)
    tau = np.random.default_rng(0).dirichlet(np.ones(3), data.begin.size).T
    found, free = group_sums(model, theta, data, 2, tau), model.lower < model.upper
    assert found.value == pytest.approx(dense(model, theta, data, tau), rel=1e-12)
    score = complex_slopes(lambda at: dense(model, at, data, tau), theta)
    assert np.allclose(found.score[free], score[free], rtol=1e-9, atol=1e-9)
    side = 1e-5 * np.eye(theta.size)
    sides = [[group_sums(model, theta + s * e, data, 1, tau).score for e in side] for s in (1, -1)]
    curvature = (np.array(sides[0]) - np.array(sides[1])) / 2e-5
    assert np.allclose(found.hessian[free][:, free], curvature[free][:, free], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("random", "covariance"), KINDS)
def test_groups_of_one_row_are_rows(random, covariance):
    """The likelihood's own block is the law of a row by itself."""
    model, data, theta = problem(random, covariance, 2)
    free = np.ix_(*2 * [np.flatnonzero(model.lower < model.upper)])
    alone = Rows(data.X, data.y, data.weight, begin=np.arange(data.size))
    rows = Rows(data.X, data.y, data.weight)
    request = Request(Objective.INFORMED, theta)
    one, other = (Problem(model, each).evaluate(request) for each in (alone, rows))
    assert one.value == pytest.approx(other.value, rel=1e-12)
    for name in ("hessian", "information"):
        assert np.allclose(getattr(one, name)[free], getattr(other, name)[free], atol=1e-8)


def test_without_effects_the_sums_are_those_of_independent_rows():
    model, data, theta = problem(["1", 0], "free", 2)
    plain = family("gaussian", gate="softmax", n_experts=2, n_features=2)
    blocks = {**model.unpack(theta), "l": np.zeros((2, 2)), "L": np.zeros((2, 2, 2))}
    found = group_sums(model, model.pack(blocks), data, 2)
    own = plain.pack({name: blocks[name] for name in plain.blocks})
    other = group_sums(plain, own, data, 2)
    assert np.allclose(found.log_density, other.log_density, rtol=1e-12)
    at = np.concatenate([model.blocks[name].ravel() for name in plain.blocks])
    to = np.concatenate([plain.blocks[name].ravel() for name in plain.blocks])
    assert np.allclose(found.hessian[np.ix_(at, at)], other.hessian[np.ix_(to, to)], atol=1e-9)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"random": []}, "random must hold"),
        ({"random": ["1", "1"]}, "each once"),
        ({"random": [-1]}, "random must hold"),
        ({"random": ["1"], "covariance": "toeplitz"}, "covariance must be one of free, diagonal"),
        ({"random": ["1"], "censored": True}, "censored responses"),
        ({"random": [0, 1, 2, 3, 4, 5, 6, 7, 8]}, "at most 8 random effects, got 9"),
    ],
)
def test_wrong_effects_are_refused(table, match):
    with pytest.raises(ValueError, match=match):
        family({"name": "gaussian", **table}, gate="softmax")
