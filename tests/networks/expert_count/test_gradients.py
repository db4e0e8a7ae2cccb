"""Gradients of a training step, against a dense implementation, and their invariances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moestat.networks import Network, PatchLaw, Weights
from moestat.networks.expert_count.passes import Passes
from tests.networks.expert_count import dense


def _case(
    expert, n_patches, n_experts=6, n_neurons=9, n=40, activation="cubic", dtype: type = np.float64
):
    data = PatchLaw(n_clusters=3, n_features=11, n_patches=n_patches, scale=1.5).sample(n, rng=0)
    network = Network(expert, n_experts, n_neurons, activation, "independent", sigma_0=0.4)
    weights = network.initial(n_patches, 11, rng=1)
    weights.router[:] = 0.3 * np.random.default_rng(2).normal(size=weights.router.shape)
    return network, data, weights, Passes(network, data, dtype)


def _gradient(passes, weights, **options):
    passes.route(weights.router, **options)
    return passes.loss_and_gradient(weights)


@pytest.mark.parametrize("activation", ["cubic", "tanh"])
@pytest.mark.parametrize("n_patches", [3, 4, 6])
@pytest.mark.parametrize("expert", ["mlp", "cnn"])
def test_gradients_are_derivatives_of_the_loss_at_fixed_routes(expert, n_patches, activation):
    _, data, weights, passes = _case(expert, n_patches, activation=activation)
    loss, gradient = _gradient(passes, weights, noise=(1, 2))
    given = data.dense, data.label, passes.chosen, expert == "cnn", activation
    assert loss == pytest.approx(dense.loss(weights.experts, weights.router, *given), rel=1e-12)
    rng = np.random.default_rng(3)
    for part in ("experts", "router"):
        found = getattr(gradient, part)
        for _ in range(40):
            at = tuple(int(rng.integers(size)) for size in found.shape)
            wanted = dense.derivative(weights.experts, weights.router, *given, part=part, at=at)
            assert found[at] == pytest.approx(wanted, rel=1e-10, abs=1e-10 * np.abs(found).max())


@pytest.mark.parametrize("expert", ["mlp", "cnn"])
def test_single_precision_agrees_to_its_digits(expert):
    _, _, weights, passes = _case(expert, 6, n=400)
    loss, gradient = _gradient(passes, weights)
    *_, single = _case(expert, 6, n=400, dtype=np.float32)
    loss_32, gradient_32 = _gradient(single, weights.astype(np.float32))
    assert (single.chosen == passes.chosen).all()
    assert loss_32 == pytest.approx(loss, rel=1e-6)
    for part in ("experts", "router"):
        exact, found = getattr(gradient, part), getattr(gradient_32, part)
        assert found.dtype == np.float32
        assert np.linalg.norm(found - exact) < 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("n_experts", [1, 2, 6])
def test_router_gradients_sum_to_zero_over_the_experts(n_experts):
    _, _, weights, passes = _case("mlp", 6, n_experts=n_experts)
    _, gradient = _gradient(passes, weights, noise=(1, 2))
    assert gradient.router.shape[0] == n_experts
    largest = np.abs(gradient.router).max()
    assert np.abs(gradient.router.sum(axis=0)).max() <= 1e-14 * max(largest, 1.0)
    assert largest > 0 or n_experts == 1


def test_permuted_experts_with_their_noise_have_permuted_gradients():
    _, _, weights, passes = _case("mlp", 4)
    _, gradient = _gradient(passes, weights, noise=(1, 2))
    chosen, gate = passes.chosen, passes.gate
    order = np.array([3, 0, 5, 1, 4, 2])
    permuted = Weights(weights.experts[order], weights.router[order])
    _, found = _gradient(passes, permuted, noise=(1, 2), numbers=order)
    assert (order[passes.chosen] == chosen).all()
    assert passes.gate == pytest.approx(gate, rel=1e-14)
    assert found.experts == pytest.approx(gradient.experts[order], rel=1e-12)
    assert found.router == pytest.approx(gradient.router[order], rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("expert", ["mlp", "cnn"])
def test_only_the_cnn_is_invariant_to_the_order_of_the_patches(expert):
    network, data, weights, passes = _case(expert, 6)
    turned = replace(
        data, position=5 - data.position, noise_position=5 - data.noise_position[:, ::-1],
        noise=data.noise[:, ::-1],
    )  # fmt: skip
    assert (turned.dense == data.dense[:, ::-1]).all()
    other = Passes(network, turned, np.float64)
    found = []
    for each in (passes, other):
        gradient = np.zeros_like(weights.experts)
        each.send(2)
        loss = each.experts(weights.experts, gradient)
        found.append((loss, each.output, gradient))
    same = [np.allclose(a, b, rtol=1e-12, atol=1e-15) for a, b in zip(*found, strict=True)]
    assert all(same) if expert == "cnn" else not any(same)
