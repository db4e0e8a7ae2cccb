"""Stochastic gradient descent against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.solvers import SGD
from moestat.solvers.driver import drive
from moestat.solvers.problem import Problem, Rows
from tests import oracle
from tests.kinds import each_run

RELU = {"name": "activation", "activation": "relu", "weighted": False}
TANH = {"name": "activation", "activation": "tanh", "weighted": False}


def one_batch(family, theta, X, y, rate):
    """``theta - rate * gradient of mean (f - y)^2``."""
    r = oracle.regression(family, theta, X) - y
    return theta - rate * 2.0 * oracle.jacobian(family, theta, X).T @ r / len(y)


@pytest.mark.parametrize(
    "gate", each_run(["sigmoid-quadratic", "softmax-partial"], ["sigmoid-quadratic"])
)
@pytest.mark.parametrize("batch", each_run([7, 300, 1000], [300, 1000]))
def test_epochs_are_steps_of_batches(gate, batch):
    family = moestat.family("least-squares", gate=gate, expert=TANH, n_experts=2, n_features=2)
    rng = np.random.default_rng(0)
    start = family.pin(rng.normal(size=family.n_params))
    X, y = rng.uniform(-1, 1, (311, 2)), rng.normal(size=311)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(311)))
    solver = SGD(epochs=2, learning_rate=0.2, batch_size=batch, seed=3)
    (solution,) = drive([solver.steps(problem, start)], [problem])
    orders = np.random.default_rng([3, *start.view(np.uint64)])
    theta = start
    for _ in range(2):
        order = orders.permutation(311)
        for first in range(0, 311, batch):
            rows = order[first : first + batch]
            theta = one_batch(family, theta, X[rows], y[rows], 0.2)
    assert np.allclose(solution.theta, family.pin(theta), rtol=0, atol=1e-11)
    assert solution.certificate.status == "iteration limit"
    assert not solution.certificate.certified
    assert solution.certificate.gain > 1e-4


def test_the_antisymmetric_part_is_all_that_a_full_matrix_would_add():
    """A step on the packed matrix is the symmetric part of a step on all entries."""
    d, rate = 3, 0.1
    family = moestat.family(
        "least-squares", gate="sigmoid-partial", expert=TANH, n_experts=1, n_features=d
    )
    rng = np.random.default_rng(1)
    theta, A = rng.normal(size=family.n_params), rng.normal(size=(1, d, d))
    theta[family.blocks["A"]] = moestat.base.symmetric.pack_symmetric(A)
    X, y = rng.uniform(-1, 1, (50, d)), rng.normal(size=50)
    packed = one_batch(family, theta, X, y, rate)[family.blocks["A"]]
    r = oracle.regression(family, theta, X) - y
    blocks = family.unpack(theta)
    w = oracle.weights(family, blocks, X)[0]
    pull = r * w * (1 - w) * oracle.predictors(family, blocks, X)[0]
    full = A[0] - rate * 2.0 * np.einsum("n,nf,ng->fg", pull, X, X) / 50
    assert np.allclose(moestat.base.symmetric.pack_symmetric(full), packed[0], atol=1e-13)


def test_runs_again_alike_and_differs_by_start():
    family = moestat.family(
        "least-squares", gate="sigmoid-quadratic", expert=RELU, n_experts=2, n_features=2
    )
    rng = np.random.default_rng(2)
    truth = rng.normal(size=family.n_params)
    X, y = moestat.sample(family, truth, 2000, rng=0, design=moestat.Uniform(-1, 1), noise=0.01)
    starts = [TruthStarts(family, truth, 3, 0.3)]
    one, two = (moestat.fit(family, X, y, solver=SGD(), starts=starts, rng=5) for _ in range(2))
    assert np.array_equal(one.params, two.params)
    assert one.residual_variance < np.var(y)


@pytest.mark.parametrize("option", ["epochs", "batch_size"])
def test_options_are_checked(option):
    with pytest.raises(ValueError, match=f"{option} must be an integer >= 1"):
        SGD(**{option: 0})
    with pytest.raises(ValueError, match="learning_rate must be a number"):
        SGD(learning_rate=0.0)
