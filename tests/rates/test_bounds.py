"""One rule for slopes: its three sentences on laws with a known rate."""

import math
from dataclasses import replace

import numpy as np
import pytest

from moestat.rates.bounds import judge_bound, theory_slopes
from moestat.rates.rate import fit_rate
from moestat.rates.regression import Groups, precision_weights


@pytest.mark.parametrize(("low", "high"), [(10, 1e5), (1e3, 1e14), (1e4, 1e6)])
@pytest.mark.parametrize("exponent", [-0.5, -0.25, -1 / 12])
def test_the_slope_with_the_logarithm_is_that_of_the_same_regression(low, high, exponent):
    n = np.repeat(np.geomspace(low, high, 7), 6)
    noise = np.random.default_rng(0).lognormal(0, (n / low) ** -0.3)
    law = (np.log(n) / n) ** -exponent
    rate = fit_rate(n, law * noise, theory=exponent, n_bootstrap=0)
    log_n = np.log(n)
    weights = precision_weights(
        Groups.of(np.log(law * noise), np.unique(n, return_inverse=True)[1]), log_n
    )
    own = np.polyfit(log_n, np.log(law), 1, w=np.sqrt(weights))[0]
    assert rate.theory_slopes == (exponent, pytest.approx(own, abs=1e-10))
    assert np.ptp(weights) > 0


def test_a_law_with_its_logarithm_is_seldom_called_slower():
    for low, high, sizes in ((1e3, 1e14, 12), (10, 1e5, 5)):
        ns = np.repeat(np.geomspace(low, high, sizes), 40)
        slower = 0
        for seed in range(200):
            noise = np.random.default_rng(seed).lognormal(0, 0.3, ns.size)
            rate = fit_rate(ns, (np.log(ns) / ns) ** 0.5 * noise, theory=-0.5, n_bootstrap=0)
            slower += rate.bound.word == "slower"
        assert slower <= 12  # 2.5% of 200 is 5; 12 or fewer in 99.7% of such counts


@pytest.mark.parametrize(
    ("theory", "others", "margin"),
    [
        (-0.5, None, 0.125),
        (-0.25, None, 1 / 24),
        (-1 / 8, None, 1 / 48),
        (-1.0, None, 0.15),
        (-0.5, [-0.45], 0.025),
        (-0.5, [-0.5, 0.0], 0.15),
    ],
)
def test_an_interval_tells_an_exponent_from_the_next_one(theory, others, margin):
    alternatives = {} if others is None else {"alternatives": others}
    n = np.repeat([100.0, 1000.0, 10000.0], 4)
    for width, word in ((0.98, "this exponent"), (1.02, "too wide")):
        # A law without noise, and two values about it that give an interval of a known width.
        rate = fit_rate(n, n**theory, theory=theory, n_bootstrap=0, **alternatives)
        assert rate.theory_margin == pytest.approx(margin)
        half = width * rate.theory_margin
        wide = replace(rate, interval=(theory - half, theory + half))
        assert wide.bound.word == word


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
