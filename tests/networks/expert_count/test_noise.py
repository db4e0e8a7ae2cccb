"""Routing noise: its law, and what it depends on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from moestat.networks import Network, PatchLaw, uniform_noise
from moestat.networks.expert_count.passes import Passes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_uniform_on_the_unit_interval(dtype):
    r = uniform_noise(3, 5, 20_000, 16, dtype)
    assert r.dtype == dtype
    assert 0 <= r.min() < r.max() < 1
    assert stats.kstest(r.ravel().astype(float), "uniform").pvalue > 1e-3


def test_noise_of_other_steps_samples_experts_and_seeds_is_unrelated():
    r = uniform_noise(3, 5, 20_000, 4)
    others = (
        uniform_noise(3, 6, 20_000, 4),
        uniform_noise(4, 5, 20_000, 4),
        np.roll(r, 1, axis=0),
        np.roll(r, 1, axis=1),
    )
    for other in others:
        assert abs(np.corrcoef(r.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(r.size)
    # The pairs of two experts fill the unit square evenly.
    cells = np.histogram2d(r[0], r[1], bins=8, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_experts", [1, 5, 16])
def test_a_router_of_zeros_sends_each_expert_its_share(n_experts, dtype):
    data = PatchLaw().sample(16_000, rng=0)
    passes = Passes(Network(n_experts=n_experts), data, dtype)
    theta = np.zeros((n_experts, 4, 50), dtype)
    passes.route(theta, (1, 0))
    assert (passes.chosen == uniform_noise(1, 0, 16_000, n_experts, dtype).argmax(axis=0)).all()
    counts = np.bincount(passes.chosen, minlength=n_experts)
    assert n_experts == 1 or stats.chisquare(counts).pvalue > 1e-3
    assert passes.gate == pytest.approx(1 / n_experts, rel=1e-6)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_routes_are_those_of_the_largest_noisy_score(scale):
    data = PatchLaw(n_patches=6).sample(3000, rng=0)
    theta = scale * np.random.default_rng(1).normal(size=(7, 6, 50))
    h = np.einsum("mpd,npd->mn", theta, data.dense)
    passes = Passes(Network(n_experts=7), data, np.float64)
    for noise, r in ((None, 0.0), ((4, 9), uniform_noise(4, 9, 3000, 7))):
        passes.route(theta, noise)
        assert (passes.chosen == (h + r).argmax(axis=0)).all()
        pi = np.exp(h - h.max(axis=0))
        pi /= pi.sum(axis=0)
        assert passes.gate == pytest.approx(pi[passes.chosen, np.arange(3000)], rel=1e-12)
