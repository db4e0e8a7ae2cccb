"""Slow statistical checks of the whole chain against classical theory: ``pytest -m slow``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, chi2

import moestat
from moestat.estimation.starts import TruthStarts

pytestmark = pytest.mark.slow

DESIGN = moestat.Uniform(-3.0, 3.0)
REPLICATES = 300


@pytest.fixture(scope="module")
def fits():
    """Certified fits of the exact-specified softmax truth of mlmoe_table1, n = 50,000."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=3)
    theta = family.pack(
        {
            "beta0": [0.5, 0.0],
            "beta1": [5.0, 0.0],
            "a": [[-1.0, 0.0, 0.0], [-2.0, 2.0, 0.0]],
            "b": [[2.0, -1.5, 0.0], [-2.0, 2.0, 0.0]],
        }
    )
    results = []
    for seed in range(REPLICATES):
        X, y = moestat.sample(family, theta, 50_000, rng=seed, design=DESIGN)
        start = TruthStarts(family, theta, 1, 0.0)
        at_truth = family.log_density(theta, X, y).sum()
        results.append((moestat.fit(family, X, y, starts=[start], rng=0), at_truth))
    assert all(result.certificate.certified for result, _ in results)
    return family, theta, results


def in_truth_order(family, theta, result):
    """Parameters and intervals with the atoms of the fit in the truth's order."""
    order = np.argsort(result.blocks["a"][:, 0, 0])[::-1]
    if order[0] == 0:
        return theta
    atoms, shared = family.split(theta)
    return family.pin(family.join(atoms[::-1], shared))


def test_wald_intervals_cover(fits):
    family, theta, results = fits
    hits = np.zeros(family.n_params)
    for result, _ in results:
        truth = in_truth_order(family, theta, result)
        low, high = result.conf_int().T
        inside = (low <= truth) & (truth <= high)
        # Coordinates are counted by the truth's atom: swap them back when the fit is swapped.
        if truth is not theta:
            atoms, shared = family.split(inside.astype(float))
            inside = family.join(atoms[::-1], shared).astype(bool)
        hits += inside
    allowed = binom.ppf([1e-4, 1 - 1e-4], REPLICATES, 0.95)
    assert np.all(hits[family.lower < family.upper] >= allowed[0])


def test_likelihood_ratio_is_chi_square(fits):
    family, _, results = fits
    ratio = np.array([2 * (result.log_likelihood - at_truth) for result, at_truth in results])
    dimension = family.n_free_params
    assert np.all(ratio > 0)
    assert abs(ratio.mean() - dimension) < 4 * np.sqrt(2 * dimension / REPLICATES)
    tail = np.mean(ratio > chi2.ppf(0.9, dimension))
    assert abs(tail - 0.1) < 4 * np.sqrt(0.09 / REPLICATES)


def test_exact_specified_loss_falls_at_one_half(fits):
    family, theta, _ = fits
    sizes, losses = [], []
    for n in (10_000, 30_000, 100_000, 300_000):
        for replicate in range(25):
            X, y = moestat.sample(family, theta, n, rng=[n, replicate], design=DESIGN)
            start = TruthStarts(family, theta, 1, 0.0)
            result = moestat.fit(family, X, y, starts=[start], rng=0)
            assert result.certificate.certified
            sizes.append(n)
            losses.append(moestat.voronoi_loss(result.measure, family.measure(theta), "softmax-D1"))
    rate = moestat.fit_rate(sizes, losses, theory=-0.5)
    assert abs(rate.slope + 0.5) < 4 * rate.standard_error
