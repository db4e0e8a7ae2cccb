"""Predictions with errors: derivatives of every kind of family, and memory that grows like n."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import moestat
from moestat.estimation.inference.delta import gradients, predictions
from tests.kinds import KINDS, REGRESSION, kind_id, known, make, random_theta


@pytest.mark.parametrize("kind", [*KINDS, *REGRESSION], ids=kind_id)
def test_gradients_of_predictions_are_those_of_the_compiled_mean(kind):
    rng = np.random.default_rng(3)
    family = make(kind, 3, 2, 3)
    theta = random_theta(family, rng, 0.5)
    X = rng.normal(size=(4, 2))
    value = family.mean if family.likelihood.support is None else family.probabilities
    np.testing.assert_allclose(
        predictions(family, theta, X).T.reshape(value(theta, X).shape), value(theta, X), rtol=1e-9
    )
    ((rows, _, gradient),) = gradients(family, theta, X)
    assert rows == slice(0, 4)
    free = [j for j in range(theta.size) if j not in known(family)]
    for j in rng.choice(free, size=min(12, len(free)), replace=False):
        step = np.zeros(theta.size)
        step[j] = 1e-5
        by_steps = (value(theta + step, X) - value(theta - step, X)) / 2e-5
        np.testing.assert_allclose(
            gradient[j].T.reshape(by_steps.shape), by_steps, rtol=1e-5, atol=1e-7
        )


def test_predictions_of_many_rows_take_memory_like_n():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = np.where(x > 0, 1 + 2 * x, -2 * x) + 0.3 * rng.normal(size=400)
    result = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    few = result.get_prediction(x[:5])
    many = np.resize(x, 200_000)
    tracemalloc.start()
    prediction = result.get_prediction(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Before: a matrix (n, n), 320 GB.
    assert peak < 60 * 8 * many.size
    np.testing.assert_allclose(prediction.se[:5], few.se, rtol=1e-12)
