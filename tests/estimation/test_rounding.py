"""Steps in which a response is recorded: found, kept in all units, and a bound on experts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moestat
from moestat.base.warnings import BoundWarning, MoEWarning
from moestat.estimation.data.rounding import step_of
from moestat.estimation.studies import order

ignored = pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")


def line(seed, n=600, digits=0):
    """One line whose response is rounded: x (n,), y (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n)
    return x, np.round(2.0 * x + 1.5 * rng.normal(size=n), digits)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    step=st.sampled_from([1.0, 0.1, 0.25, 1 / 3, 7.0, 25.0, 0.01]),
    unit=st.floats(1e-9, 1e9),
    shift=st.floats(-1e3, 1e3),
)
def test_the_step_follows_every_change_of_unit_and_origin(seed, step, unit, shift):
    """As far as float64 can tell: a shift is at most a thousand responses."""
    y = step * np.random.default_rng(seed).integers(-30, 30, 200)
    assert step_of(unit * (y + shift * step)) == pytest.approx(unit * step, rel=1e-9)


@pytest.mark.parametrize("digits", [0, 1, 2])
def test_the_step_is_seen_through_float32_and_copies(digits):
    y = line(1, digits=digits)[1]
    step = pytest.approx(10.0**-digits, rel=1e-4)
    assert step_of(y.astype(np.float32).astype(float)) == step
    assert step_of(np.repeat(y, 3)) == step
    weight = np.ones(y.size)
    weight[::2] = 0.0
    assert step_of(np.where(weight > 0.0, y, np.pi), weight) == step


def test_the_step_is_the_greatest_that_explains_all_values():
    assert step_of(np.array([0.0, 2.0, 5.0, 5.0])) == 1.0
    assert step_of(np.array([1.0, 1.0, 3.0, 7.0])) == 2.0


def test_what_shows_no_steps_has_none():
    """Numbers as they come, copies of them, a spike in them, levels, and a grid without ties."""
    rng = np.random.default_rng(0)
    for n in (5, 50, 500):
        y = rng.normal(size=n)
        for values in (y, np.repeat(y, 2), np.maximum(y, 0.0), np.log1p(rng.integers(0, 9, n))):
            assert step_of(values) == 0.0
    assert step_of(np.arange(40.0)) == 0.0
    assert step_of(np.round(rng.normal(size=40), 9)) == 0.0
    assert step_of(np.full(9, 2.0)) == 0.0


@ignored
def test_an_expert_too_many_is_no_spike_on_one_rounded_value():
    """One line, rounded to 1: without a bound the second expert gains 10 units on one value."""
    chosen, least = [], []
    for seed in range(4):
        fits = moestat.select("gaussian", *line(seed), k=(1, 2), rng=0)
        chosen.append(fits.chosen("bic"))
        least.append(fits.results[2].blocks["nu"].min())
        assert fits.results[2].data.resolution == (1.0,)
    assert chosen == [1] * 4
    assert min(least) >= (1.0 - 1e-9) / 12.0
    how = {"n_experts": 2, "maximum": "highest", "rng": 0}
    free = moestat.fit("gaussian", *line(0), resolution=0, **how)
    assert free.blocks["nu"].min() < 0.01


@ignored
def test_the_bound_is_the_same_in_other_units():
    x, y = line(1)
    one = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    other = moestat.fit("gaussian", x, 2.54 * y + 7.0, n_experts=2, rng=0)
    assert other.llf == pytest.approx(one.llf - y.size * np.log(2.54), abs=1e-4)
    # Experts on a bound are in the order of the start that came there first.
    variances = (np.sort(fit.blocks["nu"]) for fit in (other, one))
    assert next(variances) == pytest.approx(2.54**2 * next(variances), rel=1e-5)


def test_an_expert_on_the_bound_is_certified_and_said():
    x, y = line(1)
    with pytest.warns(BoundWarning, match="as narrow as the rounding of y allows"):
        result = moestat.fit("gaussian", x, y, n_experts=2, maximum="highest", rng=0)
    assert result.certificate.certified
    assert not result.certificate.collapsed
    assert result.blocks["nu"].min() == pytest.approx(1.0 / 12.0)
    assert "y is recorded in steps of 1" in str(result.summary())


@ignored
def test_the_user_decides():
    x, y = line(1)
    how = {"n_experts": 2, "maximum": "highest", "rng": 0}
    wide = [moestat.fit("gaussian", x, y, resolution=3.0, **how | {"rng": s}) for s in range(6)]
    least = [each.blocks["nu"].min() for each in wide]
    assert min(least) == pytest.approx(9.0 / 12.0)
    bounded = moestat.fit("gaussian", x, y, bounds={"nu": (1e-5, 1e3)}, **how)
    assert bounded.blocks["nu"].min() < 0.01
    for resolution, words in ((-1.0, "resolution"), ("fine", "resolution")):
        with pytest.raises(ValueError, match=words):
            moestat.fit("gaussian", x, y, n_experts=2, resolution=resolution)
    with pytest.raises(ValueError, match="resolution: experts of the poisson likelihood have no"):
        moestat.fit("poisson", x, np.abs(y), n_experts=2, resolution=1.0)
    with pytest.raises(ValueError, match=r"number in \[0, inf\), got inf"):
        moestat.fit("gaussian", x, y, n_experts=2, resolution=np.inf)
    both = np.column_stack([y, np.abs(y)])
    with pytest.raises(ValueError, match="no variance of 'y2' that steps could bound"):
        moestat.fit(["gaussian", "poisson"], x, both, n_experts=2, resolution=[1.0, 1.0])


def test_a_line_that_rounding_alone_blurs_is_fitted_as_by_least_squares():
    """Its residuals have the variance of a step, and the bound is half of it."""
    x = np.random.default_rng(0).uniform(-2.0, 2.0, 300)
    y = np.round(3.0 * x, 1)
    result = moestat.fit("gaussian", x, y, n_experts=1, rng=0)
    residual = np.linalg.lstsq(np.column_stack([np.ones(300), x]), y, rcond=None)[1][0] / 300
    assert result.blocks["nu"][0] == pytest.approx(residual, rel=1e-6)
    assert not result.certificate.active


@ignored
@pytest.mark.parametrize(
    ("likelihood", "least"),
    [
        ({"name": "student-t", "dof": 5.0}, 1.0 / 12.0),
        ("log-normal", (1.0 / 9.0) ** 2 / 12.0),
        ({"name": "multivariate-gaussian", "covariance": "VVI"}, 1.0 / 12.0),
    ],
)
def test_other_laws_with_a_variance_have_the_bound(likelihood, least):
    x, y = line(2)
    y = np.clip(y + 5.0, 1.0, 9.0)
    several = isinstance(likelihood, dict) and likelihood["name"].startswith("multi")
    y = np.column_stack([y, y[::-1]]) if several else y
    result = moestat.fit(likelihood, x, y, n_experts=2, rng=0)
    floors = [v for name, v in result.blocks.items() if name.startswith("nu")]
    assert min(np.min(v) for v in floors) >= least * (1.0 - 1e-9)
    assert set(result.data.resolution) == {1.0}


@ignored
def test_what_is_made_of_a_fit_keeps_its_steps(tmp_path):
    """Saved and loaded fits, fits to compressed rows, resamples."""
    x, y = line(1, n=200)
    result = moestat.fit("gaussian", x, y, n_experts=1, rng=0)
    result.save(tmp_path / "fit.npz")
    assert moestat.load(tmp_path / "fit.npz").data.resolution == (1.0,)
    short = moestat.fit("gaussian", np.round(x, 1), y, n_experts=1, compress="auto", rng=0)
    assert short.data.resolution == (1.0,)
    some = result.data.at(np.arange(0, 200, 50))
    assert some.resolution == (1.0,)


def test_real_sets_with_ties_end_with_no_spike():
    """Whole hundred millions of cubic metres: no year by itself is an expert."""
    nile = moestat.datasets.load("nile")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        fits = [moestat.fit("gaussian", nile["year"], nile["volume"], rng=s) for s in range(3)]
    assert {fit.data.resolution for fit in fits} == {(1.0,)}


def flat(n=150):
    """A line so flat that a second expert falls on one rounded value: x (n,), y (n,)."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    return x, np.round(1.0 + 0.2 * x + 1.5 * rng.normal(size=n))


@ignored
def test_a_list_of_equal_likelihoods_has_the_bound_of_one_name():
    """The same model, written as a likelihood for each expert."""
    x, y = flat()
    how = {"maximum": "highest", "rng": 0}
    one = moestat.fit("gaussian", x, y, n_experts=2, **how)
    same = moestat.fit({"experts": ["gaussian", "gaussian"]}, x, y, **how)
    assert one.certificate.active
    assert same.llf == pytest.approx(one.llf, abs=1e-4)
    assert same.data.resolution == one.data.resolution == (1.0,)
    noisy = {"experts": ["gaussian", "gaussian", "uniform"]}
    wide = moestat.fit(noisy, x, y, resolution=2.0, rng=0)
    assert wide.blocks["nu"][:2].min() >= 4.0 / 12.0 * (1.0 - 1e-9)
    positive = {"experts": ["gamma", "log-normal"]}
    other = moestat.fit(positive, x, np.clip(y + 5.0, 1.0, 9.0), rng=0)
    assert other.blocks["nu"][1] >= (1.0 / 9.0) ** 2 / 12.0 * (1.0 - 1e-9)


@ignored
def test_resamples_of_a_fit_on_the_bound_are_certified():
    """An expert that rounding keeps from being narrower has not collapsed, in a refit either."""
    result = moestat.fit("gaussian", *flat(), n_experts=2, maximum="highest", rng=0)
    assert result.certificate.active
    assert result.bootstrap(20, rng=0).n_uncertified == 0


@ignored
def test_a_lasso_path_has_the_bound_and_says_it():
    x, y = flat()
    X = np.column_stack([x, np.random.default_rng(0).normal(size=x.size)])
    options = {"n_experts": 2, "n_penalties": 3, "rng": 0}
    best = moestat.lasso_path("gaussian", X, y, **options).best()
    assert best.blocks["nu"].min() == pytest.approx(1.0 / 12.0)
    assert best.certificate.active
    assert best.certificate.certified
    assert "y is recorded in steps of 1" in str(best.summary())
    free = moestat.lasso_path("gaussian", X, y, resolution=0.0, **options).best()
    assert free.blocks["nu"].min() < 1.0 / 12.0


@ignored
def test_folds_and_simulated_data_have_the_steps_of_the_fit(monkeypatch):
    """Also a step that the user gives."""
    x, y = flat()
    held_out = {
        float(moestat.select("gaussian", x, y, k=(2,), folds=2, rng=0, **given).table["cv"][0])
        for given in ({}, {"resolution": 0.0})
    }
    assert len(held_out) == 2
    one, two = (moestat.fit("gaussian", x, y, n_experts=k, resolution=0.5, rng=0) for k in (1, 2))
    seen = []

    def spy(small, larger, sets, rng, options):
        seen.extend(data.resolution for data in sets)
        return fit_by_growing(small, larger, sets, rng, options)

    fit_by_growing = order._fit_by_growing
    monkeypatch.setattr(order, "_fit_by_growing", spy)
    moestat.bootstrap_lrt(one, two, 3, rng=0)
    assert set(seen) == {(0.5,)}
