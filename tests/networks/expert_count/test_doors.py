"""Public functions refuse what their compiled loops would run off the end of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moestat.networks import (
    Network,
    PatchLaw,
    Weights,
    dispatch_entropy,
    evaluate,
    expert_errors,
    train,
    uniform_noise,
)

LAW = PatchLaw(n_clusters=2, n_features=6, n_patches=4, scale=10.0)
DATA = LAW.sample(40, rng=0)
NETWORK = Network(n_experts=3, n_neurons=2)
WEIGHTS = train(NETWORK, DATA, 3, rng=0).weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": DATA.position + 10**7}, r"position must lie in 0\.\.3"),
        ({"position": DATA.position[:, :2]}, r"position must have shape \(40, 3\)"),
        ({"position": np.zeros((40, 3), int)}, "each of the 4 patches once"),
        ({"basis": DATA.basis + 10**7}, r"basis must lie in 0\.\.5"),
        ({"basis": -1 - DATA.basis}, r"basis must lie in 0\.\.5"),
        ({"noise_position": DATA.noise_position - 9}, "noise_position must lie"),
        ({"cluster": DATA.cluster + 2}, r"cluster must lie in 0\.\.1"),
        ({"label": DATA.label[:-1]}, "must have shape"),
        ({"label": np.zeros(40, int)}, "label must be -1 or 1"),
        ({"label": DATA.label * 0.5}, "label must hold whole numbers"),
        ({"amplitude": DATA.amplitude * np.nan}, "amplitude must hold finite numbers"),
        ({"noise": DATA.noise.astype(str)}, "noise must hold finite numbers"),
        ({"noise": None}, "noise is missing"),
        ({"law": "patches"}, "law must be a PatchLaw"),
    ],
)
def test_data_fit_their_law(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        replace(DATA, **change)


@pytest.mark.parametrize("function", [evaluate, expert_errors])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (Network("cnn", 3, 2).initial(4, 6, 0), r"experts must have shape \(3, 4, 2, 6\)"),
        (Network("mlp", 2, 2).initial(4, 6, 0), "experts must have shape"),
        (Weights(WEIGHTS.experts, WEIGHTS.router[:2]), "router must have shape"),
        (Weights(WEIGHTS.experts.astype(np.float64), WEIGHTS.router), "one precision"),
        (Weights(WEIGHTS.experts.astype(np.float16), WEIGHTS.router), "float32 or float64"),
        (WEIGHTS.experts, "weights must be Weights"),
    ],
)
def test_weights_fit_their_network(function, weights, message):
    with pytest.raises((ValueError, TypeError), match=message):
        function(NETWORK, weights, DATA)


def test_training_checks_at_the_door():
    for change, message in (
        ({"start": Network("cnn", 3, 2).initial(4, 6, 0)}, "start.experts must have shape"),
        ({"optimiser": "adam"}, "optimiser must be an Optimiser"),
        ({"look": 3}, "look must be callable"),
        ({"n_steps": 20_000_000_000}, "n_steps must be at most"),
        ({"data": DATA.dense}, "data must be PatchData"),
        ({"network": "mlp"}, "network must be a Network"),
    ):
        arguments = {"network": NETWORK, "data": DATA, "n_steps": 2} | change
        with pytest.raises((ValueError, TypeError), match=message):
            train(**arguments)


def test_noise_in_a_file_is_noise(tmp_path):
    stored = np.memmap(tmp_path / "noise", float, "w+", shape=DATA.noise.shape)
    stored[:] = DATA.noise
    found = train(NETWORK, replace(DATA, noise=stored), 3, rng=0)
    assert np.array_equal(found.weights.experts, WEIGHTS.experts)


def test_other_doors():
    with pytest.raises(ValueError, match="dispatch must hold counts"):
        dispatch_entropy([[0, 0], [0, 0]])
    with pytest.raises(ValueError, match="seed must be an integer"):
        uniform_noise(-1, 0, 2, 2)
    with pytest.raises(ValueError, match="dtype must be"):
        uniform_noise(1, 0, 2, 2, np.int8)
    with pytest.raises(ValueError, match="n_patches must be"):
        NETWORK.initial(0, 6)
