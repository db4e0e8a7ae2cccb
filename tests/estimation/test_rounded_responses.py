"""Responses that are whole numbers: exact ties on a line are no expert."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import moestat


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_a_spike_on_rounded_responses_is_set_aside(seed):
    """It gained thousands of units, more than a bound of 100 that once was set on such gains."""
    rng = np.random.default_rng(3)
    inputs = np.round(rng.normal(0, 2, 800) * 2) / 2
    noise = np.where(rng.random(800) < 0.3, 9.0, 5.5) * rng.normal(size=800)
    y = np.clip(np.round(30 + 2.3 * inputs + noise), 5, 58)
    found = moestat.fit("gaussian", inputs, y, n_experts=3, rng=seed)
    assert not found.certificate.collapsed


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_selection_leaves_out_fits_that_are_no_maximum():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    found = moestat.select("gaussian", x, 2 * x + rng.normal(size=300), k=(1, 2), rng=0)
    assert found.chosen("bic") == 1
    assert "not chosen from" not in str(found)
    ((one, _),) = [tuple(found.results.values())]
    spoilt = replace(one.solution.certificate, certified=False)
    worse = replace(one, solution=replace(one.solution, certificate=spoilt))
    assert not worse.certificate.certified
    without = replace(found, results={1: worse, 2: found.results[2]})
    assert without.chosen("bic") == 2
    assert "a collapsed expert: 1" in str(without)
    assert replace(without, results={1: worse, 2: worse}).chosen("bic") == 1
