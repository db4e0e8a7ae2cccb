import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from statsmodels.api import WLS, add_constant
from statsmodels.stats.multitest import multipletests

from moestat.rates.rate import RateCurve, fit_rate, holm


def curve(rng, slope=-0.5, sizes=6, replicates=10, noise=0.3, curvature=0.0):
    n = np.repeat(np.geomspace(1e3, 1e6, sizes).round(), replicates)
    x = np.log(n) - np.log(n).mean()
    log_loss = 1 + slope * np.log(n) + curvature * x**2
    return n, np.exp(log_loss + noise * rng.standard_normal(n.size))


@pytest.mark.parametrize("slope", [-0.5, -0.25, 0.0, 0.3])
def test_recovers_a_slope_without_noise(slope):
    n = np.array([100.0, 1000, 10000, 1e6])
    rate = fit_rate(n, 3 * n**slope, theory=slope)
    assert rate.slope == pytest.approx(slope, abs=1e-12)
    assert rate.intercept == pytest.approx(np.log(3))
    assert rate.curvature == pytest.approx(0, abs=1e-12)
    assert rate.consistent_with_theory is True
    assert (rate.n_observations, rate.n_sizes) == (4, 4)
    assert all(math.isnan(end) for end in rate.bootstrap_interval)


def test_recovers_a_slope_on_the_log_log_scale():
    n = np.geomspace(1e2, 1e7, 12)
    rate = fit_rate(n, np.sqrt(np.log(n) / n))
    assert rate.log_log_slope == pytest.approx(0.5, abs=1e-12)
    assert -0.5 < rate.slope < -0.4


def test_point_estimate_equals_a_direct_solution():
    rng = np.random.default_rng(0)
    n, loss = curve(rng, replicates=5)
    n, loss = n[:-2], loss[:-2] ** np.where(n[:-2] > 1e5, 1.5, 1.0)  # unbalanced, unequal
    y = np.log(loss)
    # The variance of log loss as a power of n, by weighted least squares over the sizes.
    sizes = np.unique(n)
    df = np.array([np.sum(n == size) - 1 for size in sizes])
    variance = np.array([y[n == size].var(ddof=1) for size in sizes])
    noise = polygamma(1, df / 2)
    target = np.log(variance) - digamma(df / 2) + np.log(df / 2)
    fit = WLS(target, add_constant(np.log(sizes)), weights=1 / noise).fit()
    spread = fit.normalized_cov_params[1, 1]
    power = fit.params[1] * max(0, 1 - spread / fit.params[1] ** 2)
    assert power != 0
    root = n ** (-power / 2)
    design = np.column_stack([np.ones(n.size), np.log(n)])
    expected = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    rate = fit_rate(n, loss)
    assert [rate.intercept, rate.slope] == pytest.approx(expected, rel=1e-9)
    # HC3 by its definition.
    W = design * root[:, None]
    inverse = np.linalg.inv(W.T @ W)
    leverage = np.einsum("ij,jk,ik->i", W, inverse, W)
    residual = (y * root - W @ expected) / (1 - leverage)
    covariance = inverse @ (W.T * residual**2) @ W @ inverse
    assert rate.standard_error == pytest.approx(np.sqrt(covariance[1, 1]), rel=1e-7)
    x = np.column_stack([design, (np.log(n) - 9) ** 2]) * root[:, None]
    quadratic = np.linalg.lstsq(x, y * root, rcond=None)[0][2]
    assert rate.curvature == pytest.approx(quadratic, rel=1e-7)
    weights = root**2
    total = weights @ (y - np.average(y, weights=weights)) ** 2
    left = weights @ (y - design @ expected) ** 2
    assert rate.r_squared == pytest.approx(1 - left / total)


def test_one_replicate_per_size_is_ordinary_least_squares():
    rng = np.random.default_rng(1)
    n, loss = curve(rng, sizes=9, replicates=1)
    expected = np.polyfit(np.log(n), np.log(loss), 1)
    rate = fit_rate(n, loss)
    assert [rate.slope, rate.intercept] == pytest.approx(expected)
    assert rate.interval[0] < rate.slope < rate.interval[1]


def test_noisy_sizes_weigh_less():
    n = np.repeat([1e3, 1e4, 1e5], 40)
    rng = np.random.default_rng(2)
    noise = np.repeat([0.01, 0.01, 1.0], 40) * rng.standard_normal(n.size)
    loss = n**-0.5 * np.exp(noise + np.repeat([0, 0, 1.0], 40))
    assert abs(fit_rate(n, loss).slope + 0.5) < 0.1
    assert np.polyfit(np.log(n), np.log(loss), 1)[0] > -0.4


def coverage(rng, draws, sizes, replicates, unequal=0.0, skewed=False):
    """Shares of intervals that hold the true slope: HC3, bootstrap; and the mean half-width."""
    hits, halfwidth = np.zeros(2), 0.0
    for _ in range(draws):
        n = np.repeat(np.geomspace(1e3, 1e6, sizes).round(), replicates)
        noise = rng.standard_exponential(n.size) - 1 if skewed else rng.standard_normal(n.size)
        scale = 0.3 * (1 + unequal * np.linspace(-0.7, 1, sizes)).repeat(replicates)
        rate = fit_rate(n, np.exp(1 - 0.5 * np.log(n) + scale * noise), n_bootstrap=300)
        both = (rate.interval, rate.bootstrap_interval)
        hits += [low <= -0.5 <= high for low, high in both]
        halfwidth += (rate.interval[1] - rate.interval[0]) / 2
    return *(hits / draws), halfwidth / draws


@pytest.mark.parametrize("replicates", [3, 20])
def test_intervals_cover(replicates):
    draws = 300
    error = math.sqrt(0.05 * 0.95 / draws)
    hc3, boot, _ = coverage(np.random.default_rng(5), draws, 6, replicates)
    assert abs(hc3 - 0.95) < 3 * error
    assert abs(boot - 0.95) < 3 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "replicates", "unequal", "skewed", "short"),
    [
        # How far coverage may fall short of 95% beyond Monte Carlo error: HC3, bootstrap.
        (5, 2, 0.0, False, (0.01, 0.01)),
        (5, 3, 0.0, False, (0.01, 0.02)),
        (10, 3, 0.8, False, (0.01, 0.02)),
        (5, 5, 0.8, False, (0.01, 0.02)),
        (5, 10, 0.8, False, (0.0, 0.01)),
        (5, 20, 0.8, False, (0.0, 0.0)),
        (5, 20, 0.8, True, (0.01, 0.02)),
        (5, 100, 0.8, True, (0.0, 0.0)),
    ],
)
def test_intervals_cover_in_the_long_run(sizes, replicates, unequal, skewed, short):
    draws = 2000
    error = math.sqrt(0.05 * 0.95 / draws)
    shares = coverage(np.random.default_rng(5), draws, sizes, replicates, unequal, skewed)[:2]
    print(f"{sizes} sizes, {replicates} replicates, unequal {unequal}, skewed {skewed}: {shares}")
    for share, allowed in zip(shares, short, strict=True):
        assert 0.95 - 3 * error - allowed <= share <= 0.95 + 3 * error


def test_weights_do_not_shorten_the_intervals():
    # Weighing each n by its own variance covered 92% here, to 94% for this rule.
    draws = 400
    hc3, _, _ = coverage(np.random.default_rng(5), draws, 10, 3, unequal=0.8)
    assert hc3 > 0.945 - 3 * math.sqrt(0.05 * 0.95 / draws)


def test_curvature_test_has_its_level_and_power():
    rng = np.random.default_rng(6)
    straight = [fit_rate(*curve(rng), n_bootstrap=0).curvature_p_value for _ in range(200)]
    assert 0.01 <= np.mean(np.array(straight) < 0.05) <= 0.11
    bent = fit_rate(*curve(rng, curvature=0.05), n_bootstrap=0)
    assert bent.curvature == pytest.approx(0.05, abs=0.03)
    assert bent.curvature_p_value < 1e-3


def test_the_last_slope_is_that_of_the_second_of_two_regimes():
    sizes = np.geomspace(1e3, 1e6, 7)
    n, turn = np.repeat(sizes, 10), sizes[3]
    law = np.where(n < turn, n**-0.25 * turn**-0.25, n**-0.5)
    assert fit_rate(n, law).last_slope == pytest.approx(-0.5)
    hits = 0
    for seed in range(300):
        noise = np.random.default_rng(seed).lognormal(0, 0.3, n.size)
        low, high = fit_rate(n, law * noise, n_bootstrap=0).last_interval
        hits += low <= -0.5 <= high
    assert 0.92 <= hits / 300 <= 0.98


def test_the_last_slope_is_that_over_the_largest_third_of_the_sizes():
    n = np.repeat(np.geomspace(1e3, 1e6, 9), 3)
    x = np.log(n)
    loss = np.exp(-0.8 * x + 0.02 * x**2)
    late = n >= np.unique(n)[-3]
    own = np.polyfit(x[late], np.log(loss[late]), 1)[0]
    assert fit_rate(n, loss).last_slope == pytest.approx(own)
    assert np.isnan(fit_rate(n[:6], loss[:6]).last_slope)  # two sizes


def test_monte_carlo_errors_of_the_bootstrap():
    n, loss = curve(np.random.default_rng(13))
    rates = [fit_rate(n, loss, n_bootstrap=400, rng=seed) for seed in range(60)]
    spread = np.std([rate.bootstrap_interval for rate in rates], axis=0)
    stated = np.mean([rate.bootstrap_error for rate in rates], axis=0)
    assert stated == pytest.approx(spread, rel=0.35)


def test_the_theory_p_value_agrees_with_the_interval():
    rng = np.random.default_rng(14)
    for _ in range(20):
        n, loss = curve(rng, replicates=4)
        rate = fit_rate(n, loss, theory=-0.52, n_bootstrap=0)
        assert (rate.theory_p_value > 0.05) is rate.consistent_with_theory
    ends = fit_rate(n, loss, theory=rate.interval[1], n_bootstrap=0)
    assert ends.theory_p_value == pytest.approx(0.05)
    assert math.isnan(fit_rate(n, loss, n_bootstrap=0).theory_p_value)


def test_holm_keeps_the_family_wise_error():
    rng = np.random.default_rng(15)
    p_values = rng.uniform(size=(2000, 8))
    wrong = np.mean([min(holm(row)) < 0.05 for row in p_values])
    assert wrong == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 2000))
    assert np.mean(p_values.min(axis=1) < 0.05) > 0.3  # what it would be without
    adjusted = multipletests([0.01, 0.5, 0.02], method="holm")[1]
    assert holm([0.01, math.nan, 0.5, 0.02])[::2] == pytest.approx(adjusted[:2])
    assert holm([0.01, math.nan, 0.5, 0.02])[3] == pytest.approx(adjusted[2])
    with pytest.raises(ValueError, match=r"p_values must lie in \[0, 1\]"):
        holm([2.0])


def test_bootstrap_is_deterministic_and_follows_its_generator():
    n, loss = curve(np.random.default_rng(7))
    assert fit_rate(n, loss) == fit_rate(n, loss)
    first, second = (fit_rate(n, loss, rng=seed).bootstrap_interval for seed in (1, 2))
    assert first != second
    assert fit_rate(n, loss, rng=np.random.default_rng(1)).bootstrap_interval == first
    order = np.random.default_rng(0).permutation(n.size)
    assert fit_rate(n[order], loss[order]).slope == pytest.approx(fit_rate(n, loss).slope)


def test_bootstrap_width_matches_the_sampling_error():
    n, loss = curve(np.random.default_rng(8), replicates=50)
    rate = fit_rate(n, loss, n_bootstrap=4000)
    width = rate.bootstrap_interval[1] - rate.bootstrap_interval[0]
    assert width == pytest.approx(2 * 1.96 * rate.standard_error, rel=0.1)


def test_bootstrap_width_allows_for_few_replicates():
    n, loss = curve(np.random.default_rng(8), sizes=40, replicates=3, noise=0.02)
    loss *= np.tile([1.0, 1.5, 0.7], 40)  # the same spread at every n: near-equal weights
    y, x = np.log(loss), np.log(n) - np.log(n).mean()
    variance = np.mean([y[n == size].var(ddof=1) for size in np.unique(n)])
    low, high = fit_rate(n, loss, n_bootstrap=4000).bootstrap_interval
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(variance / np.sum(x**2)), rel=0.1)


def test_the_normal_law_of_many_replicates_gives_the_interval_of_resampling(monkeypatch):
    rng = np.random.default_rng(21)
    n = np.repeat([100, 1000, 10_000], [40, 2500, 3000])
    loss = n**-0.5 * np.exp(0.3 * (rng.gamma(2.0, size=n.size) - 2.0))  # a skew law
    short = fit_rate(n, loss, n_bootstrap=2000, rng=0)
    monkeypatch.setattr("moestat.rates.regression._MANY", 10**9)
    long = fit_rate(n, loss, n_bootstrap=2000, rng=1)
    difference = np.subtract(short.bootstrap_interval, long.bootstrap_interval)
    assert np.all(np.abs(difference) <= 4 * np.hypot(short.bootstrap_error, long.bootstrap_error))
    assert short.bootstrap_interval != long.bootstrap_interval


def test_curvature_p_value_of_a_small_sample():
    from statsmodels.api import OLS, add_constant

    n = np.array([1e2, 1e3, 1e4, 1e5, 1e6])
    loss = np.array([1.0, 0.4, 0.1, 0.05, 0.01])
    x = np.log(n)
    fit = OLS(np.log(loss), add_constant(np.column_stack([x, x**2])))
    expected = fit.fit(cov_type="HC3", use_t=True).pvalues[2]
    assert fit_rate(n, loss).curvature_p_value == pytest.approx(expected, rel=1e-6)


def test_bootstrap_stays_within_sizes():
    # Without spread among replicates, resampling within n changes nothing.
    n = np.repeat([10.0, 100, 1000], 3)
    rate = fit_rate(n, np.repeat([1.0, 0.5, 0.05], 3))
    assert rate.bootstrap_interval == pytest.approx((rate.slope, rate.slope))


def test_two_sizes_leave_curvature_open():
    n, loss = curve(np.random.default_rng(9), sizes=2)
    rate = fit_rate(n, loss)
    assert math.isnan(rate.curvature)
    assert math.isnan(rate.curvature_p_value)
    assert rate.interval[0] < -0.5 < rate.interval[1]


@pytest.mark.parametrize(
    ("n", "loss"),
    [([10, 100], [1.0, 0.5]), ([10, 10, 100], [1.0, 1.1, 0.5])],
)
def test_too_few_losses_leave_the_interval_open(n, loss):
    rate = fit_rate(n, loss, theory=-0.5)
    assert all(math.isnan(end) for end in rate.interval)
    assert rate.consistent_with_theory is None
    assert "undecided" in rate.summary()


def test_verdict_outside():
    n, loss = curve(np.random.default_rng(10), noise=0.1)
    assert fit_rate(n, loss, theory=-0.25).consistent_with_theory is False
    assert fit_rate(n, loss).consistent_with_theory is None


def test_small_sizes_have_no_log_log_slope():
    assert math.isnan(fit_rate([1, 2, 4], [1, 0.5, 0.25]).log_log_slope)


def test_constant_losses():
    rate = fit_rate(np.repeat([10, 100, 1000], 4), np.full(12, 2.0))
    assert rate.slope == pytest.approx(0, abs=1e-12)
    assert rate.intercept == pytest.approx(np.log(2))


def test_as_dict_is_json_and_summary_a_table():
    n, loss = curve(np.random.default_rng(11), sizes=2)
    rate = fit_rate(n, loss, theory=-0.5)
    record = json.loads(json.dumps(rate.as_dict(), allow_nan=False))
    assert record["slope"] == rate.slope
    assert record["interval"] == list(rate.interval)
    assert record["curvature"] is None
    assert record["consistent_with_theory"] is True
    text = rate.summary()
    assert f"{rate.slope:.4f}" in text
    assert "-0.5 (this exponent, p = " in text
    with pytest.raises(FrozenInstanceError):
        rate.slope = 0.0
    assert RateCurve("x", n, loss).n_failed == 0


@pytest.mark.parametrize(
    ("n", "loss", "options", "message"),
    [
        ([10, 100, 1000], [1, 2], {}, "n and loss must have the same length, got 3 and 2"),
        ([10, 10], [1, 2], {}, "n must hold at least 2 distinct sample sizes, got 1"),
        ([10, 100], [1, 0], {}, "loss must be positive, but 1 values"),
        ([10, 100], [1, np.nan], {}, "loss holds 1 NaN"),
        ([10, np.inf], [1, 1], {}, "n holds 1 NaN or infinite"),
        ([0, 10], [1, 1], {}, "n must be positive"),
        ([[10, 100]], [1, 1], {}, "n must have shape"),
        ([10, 100], ["a", 1], {}, "loss must hold numbers"),
        ([10, 100], [1, 0.5], {"theory": "fast"}, "theory must be a number"),
        ([10, 100], [1, 0.5], {"n_bootstrap": -1}, "n_bootstrap must be an integer"),
        ([10, 100], [1, 0.5], {"rng": "seed"}, "rng must be"),
    ],
)
def test_wrong_inputs(n, loss, options, message):
    with pytest.raises(ValueError, match=message):
        fit_rate(n, loss, **options)


@pytest.mark.parametrize("place", [2, 8, 10])
def test_a_sample_size_that_determines_its_own_fit_leaves_no_interval(place):
    n = np.repeat([100.0, 1e3, 1e4], 4)
    losses = n**-0.5 * np.exp(0.1 * np.random.default_rng(0).standard_normal(n.size))
    n[place] = 1e-320
    rate = fit_rate(n, losses, theory=-0.5, n_bootstrap=50, rng=0)
    assert np.isfinite(rate.slope)
    assert not np.isfinite(rate.interval).all()
