"""One rule for slopes: its three sentences on laws with a known rate."""

import math

import numpy as np
import pytest

from moestat.rates.bounds import judge_bound, theory_slopes
from moestat.rates.rate import fit_rate


def test_slopes_of_a_theorem_are_those_of_its_law_with_and_without_the_logarithm():
    n = np.geomspace(1e4, 1e5, 20)
    steep, flat = theory_slopes(-0.5, n[0], n[-1])
    assert steep == -0.5
    assert flat == pytest.approx(fit_rate(n, (np.log(n) / n) ** 0.5).slope, abs=1e-3)
    assert theory_slopes(0.2, 10, 1000) == (0.2, 0.2)
    assert theory_slopes(-0.5, 2, 1000) == (-0.5, -0.5)


@pytest.mark.parametrize(
    ("interval", "sentences"),
    [
        ((-0.55, -0.46), (True, True, False)),
        ((-0.46, -0.42), (True, True, False)),  # the logarithm's slope is -0.45
        ((-0.62, -0.53), (True, False, True)),
        ((-0.42, -0.38), (False, False, False)),
        ((-0.80, -0.30), (False, False, False)),  # too wide
        ((math.nan, math.nan), (False, False, False)),
    ],
)
def test_three_sentences(interval, sentences):
    found = judge_bound(interval, theory_slopes(-0.5, 1e4, 1e5))
    assert (found.not_slower, found.this_exponent, found.faster) == sentences
    assert found.sentence


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5])
def test_a_law_of_the_exponent_is_recognised_whatever_its_logarithm(power):
    rng, n = np.random.default_rng(5), np.repeat(np.geomspace(1e4, 1e6, 6), 20)
    words = []
    for _ in range(60):
        loss = n**-0.5 * np.log(n) ** power * np.exp(0.4 * rng.standard_normal(n.size))
        words.append(fit_rate(n, loss, theory=-0.5, n_bootstrap=0).bound.this_exponent)
    assert np.mean(words) > 0.85


def test_a_faster_law_is_no_refutation_and_not_the_exponent():
    rng, n = np.random.default_rng(6), np.repeat(np.geomspace(1e4, 1e6, 6), 20)
    loss = n**-0.5 * np.exp(0.4 * rng.standard_normal(n.size))
    rate = fit_rate(n, loss, theory=-0.25, n_bootstrap=0)
    assert rate.bound.faster
    assert rate.bound.not_slower
    assert rate.consistent_with_theory is False
    assert rate.theory_p_value < 1e-6
