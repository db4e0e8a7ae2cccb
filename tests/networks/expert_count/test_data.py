"""Clustered patches: the law of Definition 1, and its compact storage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from moestat.networks import PatchLaw
from moestat.networks.expert_count.packing import pack

LAW = PatchLaw(n_clusters=4, n_features=50, n_patches=6, sigma_p=0.7, scale=3.0)
DATA = LAW.sample(20_000, rng=1)


def test_compact_storage_is_the_dense_data():
    x = DATA.dense
    row = np.arange(DATA.size)
    assert x.shape == (DATA.size, 6, 50)
    for k in range(3):
        patch = x[row, DATA.position[:, k]]
        assert (patch != 0).sum(axis=1).max() == 1
        assert (patch[row, DATA.basis[:, k]] == DATA.amplitude[:, k]).all()
    assert (x[row[:, None], DATA.noise_position] == DATA.noise).all()
    both = np.sort(np.hstack([DATA.position, DATA.noise_position]), axis=1)
    assert (both == np.arange(6)).all()


def test_signals_lie_where_definition_1_puts_them():
    K = LAW.n_clusters
    assert (DATA.basis[:, 0] == DATA.cluster).all()
    assert (DATA.basis[:, 1] == K + DATA.cluster).all()
    assert (DATA.basis[:, 2] < K).all()
    assert (DATA.basis[:, 2] != DATA.cluster).all()
    assert (np.sign(DATA.amplitude[:, 0]) == DATA.label).all()
    assert (DATA.amplitude[:, 1] > 0).all()


def test_amplitudes_have_the_laws_of_the_paper():
    laws = ((0.5, 2.0), (1.0, 2.0), (0.5, 3.0))
    for k, (low, high) in enumerate(laws):
        drawn = np.abs(DATA.amplitude[:, k]) / LAW.scale
        assert stats.kstest(drawn, stats.uniform(low, high - low).cdf).pvalue > 1e-3


def test_pairs_signs_and_places_are_uniform_and_noise_is_gaussian():
    pairs = np.unique(DATA.cluster * 4 + DATA.basis[:, 2], return_counts=True)[1]
    signs = np.unique(DATA.label * 3 + np.sign(DATA.amplitude[:, 2]), return_counts=True)[1]
    places = np.unique(DATA.position @ [36, 6, 1], return_counts=True)[1]
    assert (len(pairs), len(signs), len(places)) == (12, 4, 120)
    for counts in (pairs, signs, places):
        assert stats.chisquare(counts).pvalue > 1e-3
    scale = LAW.scale * LAW.sigma_p / np.sqrt(LAW.n_features)
    assert stats.kstest(DATA.noise[:2000].ravel(), stats.norm(0, scale).cdf).pvalue > 1e-3


@pytest.mark.parametrize("n_patches", [3, 4, 6])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_packed_samples_are_those_of_the_data(n_patches, n):
    data = PatchLaw(n_patches=n_patches).sample(n, rng=0)
    packed = pack(data, np.float64)
    real = packed.label != 0
    assert sorted(packed.order[real].tolist()) == list(range(n))
    x, at = data.dense[packed.order], np.arange(len(real))
    for k in range(3):
        found = x[at, packed.position[k], packed.basis[k]]
        assert (found[real] == packed.amplitude[k][real]).all()
    assert (packed.amplitude[:, ~real] == 0).all()
    assert (packed.rows[~real] == 0).all()
    assert (x[at[:, None], packed.slots][real] == packed.rows[real]).all()
    for start, stop in zip(packed.bounds[:-1], packed.bounds[1:], strict=True):
        assert (packed.slots[start:stop][real[start:stop]] == packed.slots[start]).all()
        size = (n_patches - 3) * 50
        block = packed.columns[start * size : stop * size].reshape(n_patches - 3, 50, stop - start)
        assert (block.transpose(2, 0, 1) == packed.rows[start:stop]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_patches": 2}, "n_patches must be an integer >= 3, got 2"),
        ({"n_clusters": 1}, "n_clusters must be an integer >= 2, got 1"),
        ({"n_clusters": 26}, "n_features must be at least 2 n_clusters = 52"),
        ({"alpha": (2.0, 0.5)}, "alpha must be a pair"),
        ({"beta": (0.0, 1.0)}, "beta must be a number in"),
        ({"gamma": 1.0}, "gamma must be a pair"),
        ({"sigma_p": -1.0}, "sigma_p must be a number in"),
        ({"scale": 0.0}, "scale must be a number in"),
    ],
)
def test_bad_laws_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")) as caught:
        PatchLaw(**options)
    assert "\n" not in str(caught.value)


def test_a_sample_has_at_least_one_example():
    with pytest.raises(ValueError, match="n must be an integer >= 1, got 0"):
        PatchLaw().sample(0)
