"""Truths that merge: far ones are told apart, merged ones are not."""

from __future__ import annotations

import re

import numpy as np

from experiments.pages import local_minimax
from experiments.pages.local_minimax import compute, intercept_errors, page, spec_text
from moestat.sweep.spec.read import parse_spec


def test_two_lines_keep_mean_and_variance_of_one():
    truth = parse_spec(spec_text(10**8, 0.2)).truths["close"]
    blocks = truth.family.unpack(truth.theta)
    b, nu = blocks["b"].ravel(), blocks["nu"].ravel()
    assert np.isclose(b.mean(), 0.5)
    assert np.isclose((nu + (b - 0.5) ** 2).mean(), 0.25)


def test_what_is_far_is_estimated_and_what_is_near_is_not():
    far = intercept_errors(10**12, 0.3, replicates=3)
    near = intercept_errors(10**8, 1e-3, replicates=3)
    assert far.size == near.size == 3
    assert far.max() < 0.01
    assert np.median(near) > 1e-3  # more than their distance


def test_the_page_has_a_row_per_path():
    text = page(compute(sizes=(10**8,), replicates=1))
    assert text.count("| too few |") == 4


def test_the_worst_quantile_over_all_paths_has_an_interval_around_its_slope(monkeypatch):
    rng = np.random.default_rng(0)

    def made(n, distance, replicates):
        return n ** (-1 / 8 if distance > 0.05 else -1 / 4) * rng.exponential(size=replicates)

    monkeypatch.setattr(local_minimax, "intercept_errors", made)
    text = page(compute(sizes=(10**8, 10**10), replicates=400))
    assert text.index("In agreement with the theorem") < text.index("| d |")
    words = text.rpartition("falls like")[2]
    slope, low, high = (float(each) for each in re.findall(r"-0\.\d{3}", words)[:3])
    assert low < slope < high
    assert low < -1 / 8 < high
