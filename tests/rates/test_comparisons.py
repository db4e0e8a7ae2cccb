import json
import math

import numpy as np
import pytest

from moestat.rates.comparisons import compare_rates
from moestat.rates.rate import fit_rate


def two_curves(rng, slopes=(-0.5, -0.5), replicates=10, shared=0.3, own=0.1):
    """Two losses of the same data sets, whose luck they share."""
    n = np.repeat(np.geomspace(1e3, 1e6, 5).round(), replicates)
    luck = shared * rng.standard_normal(n.size)
    losses = [
        np.exp(slope * np.log(n) + luck + own * rng.standard_normal(n.size)) for slope in slopes
    ]
    return n, *losses


@pytest.mark.parametrize("paired", [True, False])
def test_differences_cover(paired):
    rng, draws = np.random.default_rng(0), 200
    hits = boot = rejected = 0
    for _ in range(draws):
        n, one, two = two_curves(rng, (-0.5, -0.4), shared=0.3 if paired else 0.0)
        result = compare_rates(n, one, n, two, paired=paired, n_bootstrap=200)
        hits += result.interval[0] <= -0.1 <= result.interval[1]
        boot += result.bootstrap_interval[0] <= -0.1 <= result.bootstrap_interval[1]
        n, one, two = two_curves(rng, shared=0.3 if paired else 0.0)
        rejected += compare_rates(n, one, n, two, paired=paired, n_bootstrap=0).p_value < 0.05
    error = math.sqrt(0.05 * 0.95 / draws)
    assert abs(hits / draws - 0.95) < 3 * error
    assert abs(boot / draws - 0.95) < 4 * error
    assert abs(rejected / draws - 0.05) < 3 * error


def test_pairs_cancel_what_the_data_sets_share():
    n, one, two = two_curves(np.random.default_rng(1), (-0.5, -0.45))
    pairs = compare_rates(n, one, n, two, paired=True)
    alone = compare_rates(n, one, n, two)
    assert pairs.standard_error < alone.standard_error / 2
    assert pairs.p_value < 0.01 < alone.p_value


def test_independent_differences_are_the_differences_of_the_fits():
    rng = np.random.default_rng(2)
    n, one, _ = two_curves(rng)
    m, _, two = two_curves(rng, (-0.5, -0.2), replicates=4)
    first, second = fit_rate(n, one, n_bootstrap=0), fit_rate(m, two, n_bootstrap=0)
    result = compare_rates(n, one, m, two)
    assert result.difference == first.slope - second.slope
    assert result.standard_error == pytest.approx(
        math.hypot(first.standard_error, second.standard_error)
    )
    assert result.n_observations == (50, 20)
    low, high = result.bootstrap_interval
    assert low < result.difference < high
    assert high - low == pytest.approx(result.interval[1] - result.interval[0], rel=0.3)


def test_equal_curves_do_not_differ():
    n, one, _ = two_curves(np.random.default_rng(3))
    result = compare_rates(n, one, n, one, paired=True)
    assert (result.difference, result.p_value) == (pytest.approx(0.0, abs=1e-12), 1.0)


def test_without_replicates_there_is_no_bootstrap():
    n, one, two = two_curves(np.random.default_rng(4), replicates=1)
    result = json.loads(json.dumps(compare_rates(n, one, n, two).as_dict(), allow_nan=False))
    assert result["bootstrap_interval"] == [None, None]
    assert None not in result["interval"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([10, 100], [1, 2], [10, 1000], [1, 2]), {"paired": True}, "pairs must have the same n"),
        (
            ([10, 100], [1e300, 1], [10, 100], [1e-300, 1]),
            {"paired": True},
            "their ratios are beyond the range of float64",
        ),
        (([10, 100], [1, 2], [10], [1]), {}, "n must hold at least 2 distinct"),
        (([10, 100], [1, 0], [10, 100], [1, 2]), {}, "loss must be positive"),
    ],
)
def test_wrong_inputs(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        compare_rates(*arguments, **options)
