"""Distributions from probabilities or a distribution function, beside those of SciPy."""

import numpy as np
import pytest
from scipy import stats

from moestat.model.quantiles import OfCounts, OfNumbers

Q = np.array([0.0, 1e-12, 0.025, 0.5, 0.975, 1.0 - 1e-12, 1.0])
MEANS = np.array([1e-3, 0.7, 20.0, 3e3])

COUNTS = {
    "poisson": stats.poisson(MEANS),
    "long tail": stats.nbinom(0.2, 0.2 / (0.2 + np.minimum(MEANS, 50.0))),
    "from 3": stats.poisson(MEANS, loc=3),
}
NUMBERS = {
    "gamma": (stats.gamma(0.3, scale=MEANS), (0.0, np.inf)),
    "t": (stats.t(3, loc=-MEANS, scale=MEANS), (-np.inf, np.inf)),
    "beta": (stats.beta(0.5, 1.0 + MEANS), (0.0, 1.0)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_have_the_functions_of_scipy(name):
    known = COUNTS[name]
    least = int(known.support()[0].min())
    law = OfCounts(known.logpmf, known.mean(), known.std(), least)
    y = np.array([-1.0, 0.0, 2.5, 3.0, 19.0, 3e3, np.inf])[:, None]
    np.testing.assert_allclose(law.cdf(y), known.cdf(y), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(law.sf(y), known.sf(y), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(law.pmf(y[:-1]), np.exp(known.logpmf(y[:-1])), rtol=1e-14)
    inner = Q[1:-1, None]
    # One count to either side where a sum of probabilities and scipy's function round otherwise.
    assert np.all(np.abs(law.ppf(inner[:-1]) - known.ppf(inner[:-1])) <= 1e-6)
    assert np.all(law.ppf(0.0) == least)
    assert np.all(law.ppf(1.0) == np.inf)
    assert np.all(law.cdf(law.ppf(inner)) >= inner - 1e-13)
    drawn = law.rvs(size=(4000, MEANS.size), random_state=np.random.default_rng(0))
    error = known.std() / np.sqrt(4000)
    assert np.all(np.abs(drawn.mean(axis=0) - known.mean()) < 5 * error + 1e-12)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_the_functions_of_scipy(name):
    known, ends = NUMBERS[name]
    for above in (None, known.sf):
        law = OfNumbers(known.cdf, known.mean(), known.std(), ends, above)
        y = np.array([-5.0, 0.0, 0.3, 1.0, 7.0])[:, None]
        np.testing.assert_allclose(law.cdf(y), known.cdf(y), rtol=1e-14)
        np.testing.assert_allclose(law.sf(y), known.sf(y), rtol=1e-9, atol=1e-15)
    inner = Q[2:5, None]
    wanted = known.ppf(inner)
    assert np.all(np.abs(law.ppf(inner) - wanted) <= 1e-10 * np.abs(wanted) + 2e-15 * known.std())
    assert np.array_equal(law.ppf(Q[[0, -1], None]), np.array(ends)[:, None] + 0 * known.mean())
    assert law.support() == ends


def test_sums_end_for_probabilities_that_do_not_sum_to_one():
    """A wrong density is found by the contract tests, which therefore have to end."""
    law = OfCounts(lambda y: -5.0 - y, np.ones(2), np.ones(2))
    assert np.all(law.cdf(1e300) < 0.02)
    assert np.all(np.isfinite(law.ppf(0.5)))


def test_upper_tails_of_counts_have_their_digits():
    """One less the distribution function would stay at its rounding, however far the count."""
    means = np.array([0.3, 4.0, 60.0])
    scipy_law = stats.poisson(means)
    law = OfCounts(scipy_law.logpmf, means, np.sqrt(means))
    far = np.ceil(means + np.array([0.0, 3.0, 8.0])[:, None] * np.sqrt(means))
    np.testing.assert_allclose(law.sf(far), scipy_law.sf(far), rtol=1e-9)
    assert np.all(law.sf(1e6) == 0.0)
    np.testing.assert_array_equal(law.sf(-1.0), 1.0)
