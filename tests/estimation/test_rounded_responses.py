"""Responses that are whole numbers: exact ties on a line are no expert."""

from __future__ import annotations

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
