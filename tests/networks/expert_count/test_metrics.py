"""Metrics: entropy, accuracy, specialists."""

from __future__ import annotations

import numpy as np
import pytest

from moestat.networks import (
    Network,
    PatchLaw,
    dispatch_entropy,
    evaluate,
    expert_errors,
    train,
)

LAW = PatchLaw(scale=10.0)


def test_entropy_is_zero_when_pure_and_log_k_when_uniform():
    assert dispatch_entropy(np.diag([3, 1, 4, 1])) == 0.0
    assert dispatch_entropy(np.full((4, 6), 10)) == pytest.approx(np.log(4), rel=1e-14)
    # Two experts of 3 and 1 examples: the second is pure, the first has (1, 2).
    expected = 3 / 4 * (np.log(3) / 3 + np.log(1.5) * 2 / 3)
    assert dispatch_entropy([[1, 0], [2, 1]]) == pytest.approx(expected, rel=1e-14)


def test_an_untrained_router_prefers_no_cluster_and_is_ties_to_the_first_expert():
    data, network = LAW.sample(400, rng=0), Network(n_experts=3)
    found = evaluate(network, network.initial(4, 50, 0), data)
    assert found.experts_in_use == 1
    assert found.dispatch.sum() == 400
    shares = np.bincount(data.cluster) / 400
    assert found.entropy == pytest.approx(-(shares * np.log(shares)).sum())


def test_margins_and_errors_are_those_of_the_dense_network():
    data, network = LAW.sample(300, rng=0), Network(n_experts=5, n_neurons=3)
    weights = train(network, data, 40, rng=1, precision="float64").weights
    x = data.dense
    f = (np.einsum("mpjd,npd->nmpj", weights.experts, x) ** 3).sum(axis=(2, 3))
    h = np.einsum("mpd,npd->nm", weights.router, x)
    pi = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
    row, chosen = np.arange(300), h.argmax(axis=1)
    margins = data.label * (pi * f)[row, chosen]
    found = evaluate(network, weights, data)
    assert (found.chosen == chosen).all()
    assert found.margins == pytest.approx(margins, rel=1e-10)
    assert found.loss == pytest.approx(np.log1p(np.exp(-margins)).mean(), rel=1e-10)
    assert found.accuracy == np.mean(margins > 0)
    assert found.experts_in_use == len(set(chosen.tolist()))
    wrong = data.label[:, None] * f <= 0
    errors = [[wrong[data.cluster == k, m].mean() for m in range(5)] for k in range(4)]
    assert expert_errors(network, weights, data) == pytest.approx(np.array(errors))
