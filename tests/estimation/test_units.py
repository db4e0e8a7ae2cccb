"""Fits do not depend on units, and say when they are not the maximum that they seem."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

import moestat
from moestat.base.warnings import (
    AliasedWarning,
    BoundWarning,
    ConstantColumnWarning,
    DisagreementWarning,
    InterruptedWarning,
    OptimumWarning,
    SeparationWarning,
    UnitsWarning,
)
from moestat.estimation.fit.standardise import _residual_share
from moestat.estimation.search.agreement import search_of
from moestat.estimation.starts import GivenStarts, RandomStarts, SoftClusterStarts
from moestat.model.designs import Uniform
from moestat.model.units import Coordinates, DataUnits, closed_part
from moestat.solvers.problem import Rows
from tests.kinds import GAUSSIAN, MULTINOMIAL, REGRESSION, kind_id, make, random_theta

MAPS = st.tuples(st.floats(-6.0, 6.0), st.floats(-6.0, 6.0), st.floats(-1e6, 1e6))
KINDS = [*MULTINOMIAL, *GAUSSIAN, *REGRESSION]


def data_units(family, log_scale, log_unit, shift):
    """A map of the data, restricted to what the family is closed under."""
    spread = np.linspace(1.0, 2.0, family.n_features)
    scale = 10.0**log_scale * spread
    return closed_part(
        family, DataUnits(shift * scale, scale, shift * 10.0**log_unit, 10.0**log_unit)
    )


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
@settings(max_examples=15, deadline=None)
@given(units=MAPS, seed=st.integers(0, 2**32 - 1))
def test_parameters_follow_the_units_of_the_data(kind, units, seed):
    """The density of y at mapped parameters is that of w over the unit of y."""
    rng = np.random.default_rng(seed)
    family = make(kind, 3, 2, 3)
    # Shifts of a million scales leave ten digits of x; quadratic scores square what is left.
    log_scale, log_unit, shift = units
    shift = shift * 1e-4 if any(c.products for c in family.channels) else shift
    map_ = data_units(family, log_scale, log_unit, shift)
    coordinates = Coordinates(family, map_)
    phi = random_theta(family, rng)
    theta = coordinates.outward(phi)
    assert np.allclose(coordinates.inward(theta), phi, rtol=1e-6, atol=1e-6)
    Z = rng.normal(size=(30, 2))
    X = map_.centre + map_.scale * Z
    if family.is_regression:
        value, other = family.mean(theta, X), family.mean(phi, Z)
        assert np.allclose((value - map_.level) / map_.unit, other, rtol=1e-6, atol=1e-5)
        return
    w = rng.normal(size=30) if family.likelihood.support is None else rng.integers(1, 4, 30)
    y = w if family.likelihood.support is not None else map_.level + map_.unit * w
    moved = family.log_density(theta, X, y) + np.log(map_.unit)
    assert np.allclose(moved, family.log_density(phi, Z, w), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def lines():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(600, 2))
    gate = 1 / (1 + np.exp(-2 * X[:, 0]))
    first = rng.random(600) < gate
    y = np.where(first, 1 + 2 * X[:, 1], -1 - X[:, 0]) + 0.4 * rng.normal(size=600)
    return X, y, first + 1 + (rng.random(600) < 0.1)


def test_prices_are_fitted_by_least_squares():
    rng = np.random.default_rng(0)
    x = rng.uniform(500, 4000, 300)
    y = 50_000 + 150 * x + 20_000 * rng.normal(size=300)
    result = moestat.fit("gaussian", x, y, n_experts=1, rng=0)
    slope, level = np.polyfit(x, y, 1)
    assert result.blocks["a"].item() == pytest.approx(slope, rel=1e-6)
    assert result.blocks["b"].item() == pytest.approx(level, rel=1e-6)
    assert result.blocks["nu"].item() == pytest.approx(np.mean((y - level - slope * x) ** 2))
    assert np.all(result.bounds[:, 0] <= result.theta)
    assert np.all(result.theta <= result.bounds[:, 1])


def test_bounds_of_the_user_bind_in_the_units_of_the_user(lines):
    X, y, _ = lines
    family = moestat.family(
        "gaussian", n_experts=1, gate="softmax", n_features=2, bounds={"a": (-0.5, 2.0)}
    )
    result = moestat.fit(family, 100 + X, y, rng=0)
    assert result.blocks["a"].min() >= -0.5
    assert result.blocks["a"].max() <= 2.0
    free = moestat.fit("gaussian", 100 + X, y, n_experts=1, rng=0)
    assert free.log_likelihood >= result.log_likelihood - 1e-9
    tight = moestat.family(
        "gaussian", n_experts=1, gate="softmax", n_features=2, bounds={"a": (0.0, 0.1)}
    )
    bound = moestat.fit(tight, 100 + X, y, rng=0)
    at = [bound.param_names.index(name) for name in bound.certificate.active]
    assert at
    assert np.isnan(bound.bse[at]).all()
    assert bound.notes == ()


def test_multiples_of_an_input_have_no_standard_errors(lines):
    X, y, _ = lines
    aliased = np.column_stack([X, 1e6 + 2 * X[:, 0]])
    with pytest.warns(AliasedWarning, match="columns 0, 2 are linear functions"):
        result = moestat.fit("gaussian", aliased, y, n_experts=1, rng=0)
    assert "columns 0, 2" in str(result.summary())
    errors = dict(zip(result.param_names, result.bse, strict=True))
    assert np.isnan(errors["a[1,0]"])
    assert np.isnan(errors["a[1,2]"])
    assert errors["a[1,1]"] > 0


def test_inputs_that_are_nearly_linear_functions_of_each_other_do_not_warn(lines):
    X, y, _ = lines
    near = X[:, 0] + 1e-4 * X[:, 1] ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", AliasedWarning)
        result = moestat.fit("gaussian", np.column_stack([X, near]), y, n_experts=1, rng=0)
    assert np.all(np.isfinite(result.bse))


def test_warnings_name_the_line_of_the_caller(lines):
    X, y, _ = lines
    aliased = np.column_stack([X, 2 * X[:, 0]])
    family = moestat.family("gaussian", gate="softmax", n_experts=1, n_features=3)
    calls = [
        lambda: moestat.fit("gaussian", aliased, y, n_experts=1, rng=0),
        lambda: moestat.fit_many(family, [(aliased, y)], rng=0),
        lambda: moestat.MoERegressor(n_experts=1, prior=None, random_state=0).fit(aliased, y),
    ]
    for call in calls:
        with pytest.warns(AliasedWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(ConstantColumnWarning) as caught:
        moestat.MoERegressor(n_experts=1, random_state=0).fit(np.column_stack([X, X[:, 0] * 0]), y)
    assert {warning.filename for warning in caught} == {__file__}


def test_separated_classes_are_said_to_be_so():
    x = np.linspace(-1, 1, 60)
    with pytest.warns(SeparationWarning, match="no finite maximum"):
        result = moestat.fit("multinomial", x, x > 0.1, n_experts=1, rng=0)
    text = str(result.summary())
    assert "no finite maximum, see notes" in text
    assert "a local maximum" not in text
    assert "it is not a local maximum" in " ".join(str(result.explain()).split())
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moestat.fit("multinomial", x, rng.random(60) < 0.5, n_experts=1, rng=0)


def test_a_default_bound_is_reported():
    x = np.linspace(-1, 1, 60)
    with pytest.warns(BoundWarning, match="default bound: log nu"):
        result = moestat.fit("gaussian", x, 2 * x + np.where(x > 0, 1, 0), n_experts=2, rng=0)
    assert "see notes" in str(result.summary()) or not result.certificate.certified


def test_disagreement_is_reported(lines):
    X, y, _ = lines
    with pytest.warns(DisagreementWarning, match="only one of 4 runs"):
        moestat.fit("gaussian", X, y, n_experts=4, starts=[RandomStarts(4)], rng=0)


def test_units_that_a_family_does_not_follow_are_reported(lines):
    X, y, _ = lines
    family = moestat.family("gaussian", gate="competition", n_experts=2, n_features=2)
    with pytest.warns(UnitsWarning, match="a response of standard deviation"):
        moestat.fit(family, X, 1000 * y, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitsWarning)
        moestat.fit(family, 1000 * X, y, rng=0)


def test_searches_beat_starts_at_random(lines):
    """Three experts on data of two classes of curves: the search finds the higher maximum."""
    X, y, _ = lines
    family = moestat.family("gaussian", gate="softmax", n_experts=3, n_features=2)
    best = moestat.fit(family, X, y, starts=[RandomStarts(60)], rng=1)
    found = moestat.fit(family, X, y, maximum="highest", rng=0)
    assert found.log_likelihood >= best.log_likelihood - 0.01
    again = moestat.fit(family, X, y, starts=[GivenStarts([found.theta])])
    assert again.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-4)


def test_n_starts_and_time_limit_belong_to_the_default_starts(lines):
    X, y, _ = lines
    with pytest.warns(InterruptedWarning, match="reached its time_limit"):
        few = moestat.fit("gaussian", X, y, n_experts=3, n_starts=4, time_limit=0.0, rng=0)
    assert few.certificate.status == "time limit"
    with pytest.raises(ValueError, match="leave them out if you give starts"):
        moestat.fit("gaussian", X, y, n_starts=4, starts=[search_of()])
    with pytest.raises(ValueError, match="n_starts must be an integer >= 1, got 0"):
        moestat.fit("gaussian", X, y, n_starts=0)
    with pytest.raises(ValueError, match="time_limit must be a number"):
        moestat.fit("gaussian", X, y, time_limit=-1.0)
    assert issubclass(DisagreementWarning, OptimumWarning)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seed"), [(2000, 11), (10_000, 14)])
def test_default_starts_find_the_optimum_near_the_truth_of_classes(n, seed):
    """Three experts on five classes: starts at random, or a search on 4000 rows, seldom find it."""
    family = moestat.family("multinomial", gate="softmax", n_experts=3, n_features=2, n_classes=5)
    rng = np.random.default_rng(seed)
    truth = 2.0 * rng.standard_normal(family.n_params)
    X, y = moestat.sample(family, truth, n, rng, design=Uniform(-2.0, 2.0))
    near = moestat.fit(family, X, y, starts=[GivenStarts([truth])])
    found = [moestat.fit(family, X, y, rng=seed).log_likelihood for seed in range(4)]
    assert np.quantile(found, 0.3) >= near.log_likelihood - 0.01


def test_soft_clusters_share_every_sample():
    points = np.random.default_rng(0).normal(size=(2, 50))
    share = SoftClusterStarts(1).memberships(
        points, moestat.family("gaussian", n_experts=3), np.random.default_rng(1)
    )
    assert np.allclose(share.sum(axis=0), 1.0)
    assert np.all(share > 0.0)


def test_default_bounds_of_many_rows_are_those_of_a_regression_on_all_of_them():
    """Rows are read some at a time; an input that repeats another one changes nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 70_000))
    y = X.sum(axis=0) + 1e-3 * rng.normal(size=X.shape[1])
    weight = rng.uniform(0.5, 2.0, X.shape[1])
    line = sm.WLS(y, sm.add_constant(X.T), weight).fit()
    around = weight @ (y - weight @ y / weight.sum()) ** 2
    data = Rows(np.vstack([X, 2 * X[:1]]), y, weight)
    assert _residual_share(data) == pytest.approx(line.ssr / around, rel=1e-10)
