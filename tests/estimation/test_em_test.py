"""The EM test of Li and Chen: closed forms, size, power."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import moestat
from moestat.estimation.studies.em_test import _limit, _shares, em_test, make_kernel

LAWS = {
    "poisson": (1.0, lambda m: stats.poisson(m)),
    "exponential": (1.0, lambda m: stats.expon(scale=m)),
    "normal": (0.7, lambda m: stats.norm(m, 0.7)),
    "binomial": (9.0, lambda m: stats.binom(9, m / 9)),
}


@pytest.mark.parametrize("name", LAWS)
def test_kernels_are_those_of_scipy(name):
    size, law = LAWS[name]
    own = make_kernel(name, size)
    y, weight = own.nodes(2.0, 5.0)
    for mean in (2.0, 5.0):
        frozen: Any = law(mean)
        theirs = frozen.logpmf(y) if hasattr(frozen.dist, "pmf") else frozen.logpdf(y)
        np.testing.assert_allclose(own.log_density(y, mean), theirs, rtol=1e-9, atol=1e-9)
        density = np.exp(own.log_density(y, mean)) * weight
        assert density.sum() == pytest.approx(1, abs=1e-9)
        assert density @ y == pytest.approx(mean, rel=1e-9)
        assert density @ (y - mean) ** 2 == pytest.approx(own.variance(np.array(mean))[0])


def test_shares_maximise_their_objective():
    grid = np.linspace(1e-4, 1 - 1e-4, 200001)
    for first, second in ((3.0, 9.0), (9.0, 3.0), (5.0, 5.2), (0.1, 8.0)):
        value = first * np.log(grid) + second * np.log(1 - grid)
        value += 0.54 * np.log(1 - np.abs(1 - 2 * grid))
        found = _shares(np.array([first]), np.array([second]), 0.54)[0]
        assert found == pytest.approx(grid[np.argmax(value)], abs=1e-4)


def test_weights_of_the_limit_are_those_of_its_quadratic_programme():
    masses, means = np.array([0.4, 0.6]), np.array([1.0, 4.0])
    weights, correlation = _limit(make_kernel("poisson"), masses, means)
    assert sum(weights) == pytest.approx(1)
    # Normal vectors, of which as many coordinates are positive as the projection keeps.
    rng = np.random.default_rng(0)
    B = np.array([[1.0, correlation], [correlation, 1.0]])
    w = rng.multivariate_normal([0, 0], B, 200_000)
    free = np.linalg.solve(B, w.T).T
    both = np.all(free > 0, axis=1)
    none = np.all(w <= 0, axis=1)
    assert weights[2] == pytest.approx(both.mean(), abs=0.004)
    assert weights[0] == pytest.approx(none.mean(), abs=0.004)


def test_the_limit_s_correlation_by_another_quadrature():
    """Two normal components: the covariance by the trapezoidal rule."""
    masses, means = np.array([0.3, 0.7]), np.array([0.0, 2.5])

    y = np.linspace(-12, 15, 100_001)
    s = y - means[:, None]
    f = stats.norm.pdf(s)
    rows = np.array([f[0] - f[1], *(s * f), *(0.5 * (s**2 - 1) * f)])
    B = (rows / (masses @ f)) @ rows.T * (y[1] - y[0])
    left = B[3:, 3:] - B[3:, :3] @ np.linalg.solve(B[:3, :3], B[:3, 3:])
    expected = left[0, 1] / np.sqrt(left[0, 0] * left[1, 1])
    assert _limit(make_kernel("normal"), masses, means)[1] == pytest.approx(expected, abs=1e-6)


def test_power_and_the_hypothesis_of_two():
    rng = np.random.default_rng(3)
    y = rng.poisson(np.repeat([2.0, 9.0], 150))
    one = moestat.em_test(y)
    assert one.pvalue < 1e-8
    assert one.weights == (0.5, 0.5)
    two = moestat.em_test(y, 2)
    assert two.pvalue > 0.05
    np.testing.assert_allclose(two.means, [2, 9], rtol=0.2)
    np.testing.assert_allclose(two.masses, 0.5, atol=0.1)
    assert "EM test" in str(two)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [("poisson", 1.0), ("normal", 1.0), ("exponential", 1.0)]
)
def test_size_of_the_test_of_one_component(name, size):
    rng = np.random.default_rng(4)
    draw = {"poisson": rng.poisson, "exponential": rng.exponential, "normal": rng.normal}[name]
    p = np.array([em_test(draw(3.0, size=200), kernel=name).pvalue for _ in range(300)])
    assert abs(np.mean(p < 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2, 3], 3), "n_components must be 1 or 2, got 3"),
        (([1, 1, 1],), "two different values"),
        (([-1, 2, 3],), r"y must lie in \[0, inf\] for the kernel 'poisson'"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        em_test(*arguments)
    with pytest.raises(ValueError, match="kernel must be one of poisson"):
        em_test([1, 2, 3], kernel="gamma")
