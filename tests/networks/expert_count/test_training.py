"""Training: Algorithm 1 by hand, invariances, gradients without direction, failures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moestat.networks import (
    Adam,
    GradientDescent,
    Network,
    NormalisedGradientDescent,
    PatchData,
    PatchLaw,
    Weights,
    train,
    uniform_noise,
)

LAW = PatchLaw(scale=10.0)


def _sigma(z):
    return 1 / (1 + math.exp(-z))


def test_two_steps_of_algorithm_1_by_hand():
    """M = 2, J = 1, d = 4, n = 3, P = 3: every patch has one coordinate."""
    law = PatchLaw(n_clusters=2, n_features=4, n_patches=3)
    #             position (signal, centre, distractor)   coordinate   amplitude
    data = PatchData(
        law=law,
        label=np.array([1, -1, 1]),
        cluster=np.array([0, 1, 0]),
        position=np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]]),
        basis=np.array([[0, 2, 1], [1, 3, 0], [0, 2, 1]]),
        amplitude=np.array([[1.0, 1.5, 2.0], [-0.5, 2.0, 1.0], [2.0, 1.0, -1.0]]),
        noise_position=np.empty((3, 0), int),
        noise=np.empty((3, 0, 4)),
    )
    w = np.zeros((2, 3, 1, 4))
    w[0, :, 0] = [0.5, 0.2, -0.1, 0.3]
    w[1, :, 0] = [-0.4, 0.6, 0.2, 0.1]
    start = Weights(w, np.zeros((2, 3, 4)))
    network, rule = Network(n_experts=2, n_neurons=1), NormalisedGradientDescent(0.1, 0.5)
    trained = train(network, data, 2, optimiser=rule, start=start, rng=7, precision="float64")

    rng = np.random.default_rng(7)
    network.initial(3, 4, rng)  # a run draws its weights first, then the seed of its noise
    seed = int(rng.integers(2**63))
    w, theta = w[:, :, 0].copy(), np.zeros((2, 3, 4))
    for step in range(2):
        r = uniform_noise(seed, step, 3, 2)
        dw, dtheta = np.zeros_like(w), np.zeros_like(theta)
        for i in range(3):
            y = data.label[i]
            patches = list(zip(data.position[i], data.basis[i], data.amplitude[i], strict=True))
            h = [sum(theta[m, p, c] * a for p, c, a in patches) for m in (0, 1)]
            m = 0 if h[0] + r[0, i] > h[1] + r[1, i] else 1
            pi = [_sigma(h[0] - h[1]), _sigma(h[1] - h[0])]
            f = sum((w[m, p, c] * a) ** 3 for p, c, a in patches)
            slope = -_sigma(-y * pi[m] * f) * y / 3
            for p, c, a in patches:
                dw[m, p, c] += slope * pi[m] * 3 * (w[m, p, c] * a) ** 2 * a
                for k in (0, 1):
                    dtheta[k, p, c] += slope * pi[m] * f * ((k == m) - pi[k]) * a
        for m in (0, 1):
            if np.any(dw[m] != 0):
                w[m] -= 0.1 * dw[m] / math.sqrt((dw[m] ** 2).sum())
        theta -= 0.5 * dtheta
    assert np.abs(theta).max() > 0
    assert trained.weights.experts[:, :, 0] == pytest.approx(w, rel=1e-13)
    assert trained.weights.router == pytest.approx(theta, rel=1e-12)


def test_the_first_loss_is_that_of_the_start_and_training_lowers_it():
    data = LAW.sample(600, rng=0)
    rules = {
        "normalised": NormalisedGradientDescent(),
        "gd": GradientDescent(0.05, 0.05),
        "adam": Adam(0.002, 0.01),
    }
    for rule in rules.values():
        trained = train(Network(n_experts=4), data, 150, optimiser=rule, rng=1)
        assert trained.losses[-1] < 0.6 * trained.losses[0]


def test_gradient_descent_and_adam_take_their_steps():
    data, network = LAW.sample(60, rng=0), Network(n_experts=2, n_neurons=2)
    ends = {}
    for name, rule in {"gd": GradientDescent(1e-3, 2e-3), "adam": Adam(1e-3, 2e-3)}.items():
        start = network.initial(4, 50, 5)
        trained = train(network, data, 1, optimiser=rule, start=start, rng=3, precision="float64")
        ends[name] = trained.weights.experts - start.experts, trained.weights.router
    # The first step of Adam is the rate times the sign of the gradient.
    for plain, adam, rate in zip(ends["gd"], ends["adam"], (1e-3, 2e-3), strict=True):
        large = np.abs(plain) > 1e-7
        assert large.any()
        assert adam[large] == pytest.approx(rate * np.sign(plain[large]), rel=1e-3)


def test_scale_of_the_data_is_scale_of_the_weights():
    """(s sigma0, s eta, s^2 eta_r) on unscaled data is (sigma0, eta, eta_r) on data times s."""
    s, ends = 8.0, []
    for scale, factor in ((s, 1.0), (1.0, s)):
        data = PatchLaw(n_patches=5, scale=scale).sample(300, rng=0)
        rule = NormalisedGradientDescent(0.001 * factor, 0.1 * factor**2)
        network = Network(n_experts=4, sigma_0=0.01 * factor)
        trained = train(network, data, 30, optimiser=rule, rng=1, precision="float64")
        ends.append((trained.weights.experts / factor, trained.weights.router / factor, trained))
    for first, second in zip(ends[0][:2], ends[1][:2], strict=True):
        assert first == pytest.approx(second, rel=1e-9, abs=1e-15)
    assert ends[0][2].losses == pytest.approx(ends[1][2].losses, rel=1e-12)


def test_runs_are_functions_of_their_seeds():
    data = LAW.sample(200, rng=0)
    first, same, other = (train(Network(n_experts=4), data, 20, rng=seed) for seed in (1, 1, 2))
    assert (first.weights.experts == same.weights.experts).all()
    assert (first.weights.router == same.weights.router).all()
    assert (first.weights.experts != other.weights.experts).any()


def test_an_expert_without_samples_stays_and_is_counted():
    data, network = LAW.sample(50, rng=0), Network(n_experts=3)
    start = network.initial(4, 50, 0)
    start.router[:2] = 0.0
    start.router[2] = -100.0
    start.router[2, :, 4:8] = -1e3  # far below the others wherever there is a cluster's centre
    trained = train(network, data, 5, optimiser=NormalisedGradientDescent(0.001, 0.0), start=start)
    assert trained.unmoved.tolist() == [0, 0, 5]
    kept = start.astype(np.float32).experts[2]
    assert (trained.weights.experts[2] == kept).all()
    assert (trained.weights.experts[0] != start.astype(np.float32).experts[0]).any()


def test_gradients_that_underflow_move_nothing_and_are_counted():
    data, network = LAW.sample(200, rng=0), Network(n_experts=4, sigma_0=1e-22)
    single = train(network, data, 3, rng=1)
    assert single.unmoved.tolist() == [3, 3, 3, 3]
    assert (single.weights.experts == network.initial(4, 50, 1).astype(np.float32).experts).all()
    double = train(network, data, 3, rng=1, precision="float64")
    assert double.unmoved.tolist() == [0, 0, 0, 0]


def test_training_that_turns_non_finite_names_its_step():
    data = LAW.sample(100, rng=0)
    rule = GradientDescent(1e30, 1e30)
    with pytest.raises(ArithmeticError, match=r"training gave infinite or NaN values at step \d+"):
        train(Network(n_experts=2), data, 30, optimiser=rule, rng=0)


def test_looks_see_the_weights_on_the_way():
    seen, data = {}, LAW.sample(100, rng=0)
    trained = train(
        Network(n_experts=2),
        data,
        5,
        rng=0,
        look=lambda t, weights: seen.update({t: weights.experts.copy()}),
        look_every=2,
    )
    assert list(seen) == [0, 2, 4, 5]
    assert (seen[5] == trained.weights.experts).all()
    assert (train(Network(n_experts=2), data, 4, rng=0).weights.experts == seen[4]).all()


def test_initial_weights_are_equal_or_independent_across_patches():
    equal = Network(n_experts=3, sigma_0=0.1).initial(4, 50, rng=0)
    assert (equal.experts == equal.experts[:, :1]).all()
    assert equal.experts.std() == pytest.approx(0.1, rel=0.1)
    assert (equal.router == 0).all()
    apart = Network(n_experts=3, initialisation="independent").initial(4, 50, rng=0)
    assert (apart.experts[:, 0] != apart.experts[:, 1]).all()
    assert Network("cnn", 3).initial(4, 50).experts.shape == (3, 1, 8, 50)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network("lstm"), "unknown expert 'lstm'"),
        (lambda: Network(n_experts=0), "n_experts must be an integer >= 1, got 0"),
        (lambda: Network(n_neurons=0), "n_neurons must be an integer >= 1, got 0"),
        (lambda: Network(activation="cube"), "unknown activation 'cube'"),
        (lambda: Network(initialisation="zero"), "unknown initialisation 'zero'"),
        (lambda: Network(sigma_0=0.0), "sigma_0 must be a number in"),
        (lambda: NormalisedGradientDescent(-1.0), "learning_rate must be a number in"),
        (lambda: Adam(1.0, -0.1), "router_rate must be a number in"),
        (lambda: train(Network(), LAW.sample(5), 0), "n_steps must be an integer >= 1, got 0"),
        (lambda: train(Network(), LAW.sample(5), 1, precision="half"), "precision must be one of"),
    ],
)
def test_bad_input_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
