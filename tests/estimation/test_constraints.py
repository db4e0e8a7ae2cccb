"""Coefficients that are equal between experts, or known, throughout the search."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.estimation.starts import GivenStarts
from moestat.solvers import EM, QuasiNewton


@pytest.fixture(scope="module")
def lines():
    """Three parallel lines over x, and an input z that nothing depends on."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.normal(3, 2, 600), "z": rng.normal(size=600)})
    place = rng.integers(0, 3, 600)
    y = np.array([-4.0, 0.0, 5.0])[place] + 1.5 * frame["x"] + 0.7 * rng.normal(size=600)
    return frame, y


def fit(lines, **options):
    return moestat.fit("gaussian", *lines, n_experts=3, rng=0, **options)


def test_equal_slopes_are_one_estimate_with_one_error(lines):
    result = fit(lines, equal=["a"], gate_inputs=[])
    slopes, errors = result.blocks["a"], result.family.unpack(result.theta_bse)["a"]
    assert np.ptp(slopes, axis=0) == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(errors, axis=0) == pytest.approx(0.0, abs=1e-12)
    assert result.certificate.certified
    assert result.certificate.inertia == (10, 0, 0)
    assert result.family.n_free_params == 10
    assert abs(slopes[0, 0] - 1.5) < 4 * errors[0, 0]


def test_estimates_and_errors_are_those_of_constraints_imposed_afterwards(lines):
    """`fit_constrained` climbs from the free fit, along the same constraints, by other code."""
    free = fit(lines, gate_inputs=[])
    text = "a[1,x] = a[2,x], a[2,x] = a[3,x], a[1,z] = a[2,z], a[2,z] = a[3,z]"
    after = free.fit_constrained(text)
    result = fit(lines, gate_inputs=[], equal="a")
    assert result.llf == pytest.approx(after.llf, abs=1e-7)
    order = np.argsort(result.blocks["b"]), np.argsort(free.family.unpack(after.theta)["b"])
    for name in ("b", "a", "nu"):
        for one, other in (
            (result.theta, after.theta),
            (result.theta_bse, np.sqrt(np.diag(after.covariance))),
        ):
            mine = np.asarray(one)[result.family.blocks[name]][order[0]]
            theirs = np.asarray(other)[result.family.blocks[name]][order[1]]
            assert np.allclose(mine, theirs, rtol=1e-5, atol=1e-7)
    test = moestat.lr_test(result, free)
    assert test.df == 4
    assert test.statistic == pytest.approx(after.lr_test.statistic, abs=1e-5)


@pytest.mark.parametrize("solver", [EM(), QuasiNewton()], ids=lambda s: s.name)
def test_other_solvers_keep_the_constraints(lines, solver):
    options = {"gate_inputs": [], "equal": {"a": [["x"]]}, "fixed": {"a": {"z": 0.0}}}
    result, other = fit(lines, **options), fit(lines, solver=solver, **options)
    assert other.llf == pytest.approx(result.llf, abs=1e-4)
    assert np.ptp(other.blocks["a"][:, 0]) == pytest.approx(0.0, abs=1e-12)
    assert np.all(other.blocks["a"][:, 1] == 0.0)
    assert other.family.n_free_params == 9


def test_labels_are_those_of_the_user(lines):
    """Known intercepts stay with their experts, in units in which the fit does not run."""
    for values in ({1: 5.0, 2: -4.0}, {2: 5.0, 3: -4.0}):
        result = fit(lines, fixed={"b": values}, gate_inputs=[])
        assert result.certificate.certified
        for expert, value in values.items():
            assert result.blocks["b"][expert - 1] == pytest.approx(value, rel=1e-12)
            assert result.params[f"b[{expert}]"] == pytest.approx(value, rel=1e-12)
        assert np.allclose(np.sort(result.blocks["b"]), [-4, 0, 5], atol=0.5)


def test_sets_of_experts_are_nested(lines):
    common = fit(lines, equal=["a"], gate_inputs=[])
    some = fit(lines, equal={"a": [[1, 3]]}, gate_inputs=[])
    free = fit(lines, gate_inputs=[])
    assert common.llf < some.llf < free.llf + 1e-9
    assert np.allclose(some.blocks["a"][0], some.blocks["a"][2])
    assert not np.allclose(some.blocks["a"][0], some.blocks["a"][1])
    assert some.family.n_free_params == free.family.n_free_params - 2


def test_a_gate_of_equal_slopes_is_constant(lines):
    constant = fit(lines, gate_inputs=[])
    equal = fit(lines, equal=["beta1"])
    assert equal.llf == pytest.approx(constant.llf, abs=1e-6)
    assert equal.family.n_free_params == constant.family.n_free_params


@pytest.mark.slow  # the laws ask this, too
def test_fits_do_not_depend_on_units(lines):
    frame, y = lines
    options = {"gate_inputs": [], "equal": {"a": [["x"]]}, "fixed": {"b": {1: 5.0}}}
    one = fit(lines, **options)
    options["fixed"] = {"b": {1: 1005.0}}
    other = fit((frame, y + 1000.0), **options)
    assert other.llf == pytest.approx(one.llf, abs=1e-5)
    options["fixed"] = {"nu": {2: 0.5}}
    one = fit(lines, **options)
    options["fixed"] = {"nu": {2: 0.5e-6}}
    other = fit((frame.assign(x=frame["x"] + 100.0), 1e-3 * y), **options)
    assert other.llf == pytest.approx(one.llf - 600 * np.log(1e-3), abs=1e-5)
    assert other.blocks["nu"][1] == pytest.approx(0.5e-6, rel=1e-12)


def test_results_are_whole(lines):
    frame, y = lines
    options = {"gate_inputs": [], "equal": {"a": [[1, 2, 3]]}, "fixed": {"a": {"z": 0.0}}}
    result = fit(lines, **options)
    resampled = result.bootstrap(40, rng=0)
    at = result.family.blocks["a"]
    assert np.ptp(resampled.replicates[:, at[:, 0]], axis=1).max() < 1e-9
    assert np.all(resampled.replicates[:, at[:, 1]] == 0.0)
    free = result.free
    assert np.all(np.abs(np.log(resampled.theta_bse[free] / result.theta_bse[free])) < 0.6)
    robust = result.get_robustcov_results("HC0").theta_bse
    assert np.all(np.abs(np.log(robust[free] / result.theta_bse[free])) < 0.4)
    chosen = moestat.select("gaussian", frame, y, k=(2, 3), equal=["a"], gate_inputs=[], rng=0)
    assert chosen.chosen("bic") == 3
    assert np.isfinite(result.predict(frame)).all()
    assert str(result.summary()).count("1.5") >= 3


def test_constraints_that_cannot_be_are_one_clear_error(lines):
    for options, match in (
        ({"equal": ["c"]}, "equal: unknown block 'c'; known: beta0, beta1, b, a, nu"),
        ({"equal": {"a": [[1]]}}, "cannot be equal to another"),
        ({"equal": {"a": [[1, 4]]}}, "experts of 'a' must be in 1..3"),
        ({"equal": {"a": [["x", "w"]]}}, "unknown input 'w'; the inputs are x, z"),
        ({"equal": {"a": 3}}, "takes True or a list of sets"),
        ({"equal": {"b": [{"inputs": [0]}]}}, "'b' has one coefficient per expert"),
        ({"fixed": {"nu": -1.0}}, "values of 'nu' must be positive"),
        ({"fixed": {"b": {1: "x"}}}, "values of 'b' must be numbers"),
        ({"fixed": {"beta0": {3: 1.0}}}, "the last expert, the gate's reference, is 0"),
        ({"equal": ["b"], "fixed": {"b": {1: 1.0, 2: 2.0}}}, "have several values: 1, 2"),
    ):
        with pytest.raises(ValueError, match=match):
            fit(lines, **options)


def test_a_known_wide_expert_takes_the_noise():
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=600), rng.random(600)
    y = np.where(u < 0.45, 2 + x, -2 - x) + 0.3 * rng.normal(size=600)
    y[u > 0.9] = rng.uniform(-20, 20, np.sum(u > 0.9))
    known = {"a": {(1, 0): 0.0}, "b": {1: 0.0}, "nu": {1: 100.0}}
    result = moestat.fit(
        "gaussian", x, y, n_experts=3, gate_inputs=[], fixed=known, n_starts=8, rng=0
    )
    assert result.certificate.certified
    assert result.certificate.collapsed == ()
    order = 1 + np.argsort(result.blocks["b"][1:])
    assert np.allclose(result.blocks["b"][order], [-2.0, 2.0], atol=0.1)
    assert np.allclose(result.blocks["a"][order, 0], [-1.0, 1.0], atol=0.1)
    assert result.blocks["nu"][0] == pytest.approx(100.0)
    assert abs(result.responsibilities[:, 0].mean() - 0.1) < 0.04


@pytest.mark.thorough
def test_equal_coefficients_are_one_parameter_of_informations():
    """Score tests, sample sizes and spectra, as the errors of the fit; also of a shared gate."""
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "z"])
    level = np.where(rng.random(n) < 0.5, 1 + frame.x, -1 - frame.x)
    frame["y"] = level + 0.1 * frame.z + 0.5 * rng.normal(size=n)
    fit = moestat.fit_formula("y ~ x + z | 1", frame, equal={"a": [["z"]]}, rng=0)
    name, error = "a[1,z]", fit.get_robustcov_results("expected").bse["a[1,z]"]
    assert moestat.required_n(fit, error=0.01, what=name).error_at(n) == pytest.approx(error)
    spectrum = moestat.information_spectrum(fit.family, fit.theta)
    assert spectrum.eigenvalues.size == fit.family.n_free_params == 8
    known = fit.fit_constrained("a[1,z] = 0")
    score = moestat.score_test(fit, known.theta, 1).statistic
    assert score == pytest.approx(known.lr_test.statistic, rel=0.1)

    gate = {"name": "hierarchical", "tree": [0, 1]}
    family = moestat.family("gaussian", gate=gate, n_experts=2)
    truth = family.typical(3)
    X, y = moestat.sample(family, truth, 4000, rng=0, design=moestat.Uniform(-1, 1))
    result = moestat.fit(family, X, y, starts=[GivenStarts(truth[None])], rng=0)
    ratio = 2.0 * (result.llf - moestat.log_likelihood(family, truth, X, y))
    assert moestat.score_test(result, truth, 8).statistic == pytest.approx(ratio, rel=0.1)
