"""Public functions and arguments of another kind: one clear error that names the argument."""

from __future__ import annotations

import time
import warnings
from datetime import datetime

import numpy as np
import pytest

import moestat
from moestat.rates.local_slopes import local_slopes
from moestat.solvers import make_solver
from moestat.sweep import load_spec, open_store

FAMILY = moestat.family("gaussian", gate="softmax", n_experts=1)
THETA = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
X = np.linspace(-1.0, 1.0, 30)
Y = X + 0.1 * np.sin(9.0 * X)
AT = {"family": FAMILY, "theta": THETA}
DATA = {"family": FAMILY, "params": THETA, "X": X, "y": Y}
TWO = {**AT, "truth_family": FAMILY, "truth_theta": THETA}
MEASURE = FAMILY.measure(THETA)

# Arguments with values that are right; None leaves an optional one out.
CALLS = {
    moestat.family: {
        **{"likelihood": "gaussian", "gate": "softmax", "expert": "linear", "n_experts": None},
        **{"n_features": 1, "n_classes": None, "bounds": None},
    },
    moestat.fit: {
        **{"family": FAMILY, "X": X, "y": Y, "solver": None, "starts": None},
        **{"sample_weight": None, "threads": None, "target": None},
    },
    moestat.fit_many: {
        **{"family": FAMILY, "data": [(X, Y)], "solver": None, "starts": None},
        **{"sample_weights": None, "threads": None, "target": None},
    },
    moestat.sample: {**AT, "n": 5, "design": None},
    moestat.sample_weighted: {**AT, "n": 5, "design": moestat.Uniform()},
    moestat.compress: {"X": X, "y": Y, "sample_weight": None},
    moestat.hellinger: {**TWO, "design": None},
    moestat.total_variation: {**TWO, "design": None},
    moestat.regression_error: {**TWO, "design": None},
    moestat.log_likelihood: {**DATA, "sample_weight": None},
    moestat.score: {**DATA, "sample_weight": None},
    moestat.hessian: {**DATA, "sample_weight": None},
    moestat.responsibilities: DATA,
    moestat.gate_probabilities: {"family": FAMILY, "params": THETA, "X": X},
    moestat.expected_information: {**AT, "design": None},
    moestat.information_spectrum: {**AT, "design": None},
    moestat.MixingMeasure: {"masses": np.ones(1), "atoms": {}},
    moestat.fit_rate: {"n": [10, 10, 100, 100], "loss": [1, 1.1, 0.1, 0.11]},
}
WRONG = {
    "None": None,
    "a word": "word",
    "a date": datetime(2020, 1, 1),
    "a day": np.datetime64("2020-01-01"),
    "an object": object(),
    "complex": 1j,
    "masked": np.ma.array([1.0, 2.0], mask=[True, False]),
    "a fraction": 2.5,
}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("wrong", WRONG)
def test_arguments_of_another_kind_are_refused_by_name(function, wrong):
    for name, right in CALLS[function].items():
        optional = wrong == "None" and (right is None or name == "design")
        if optional:
            continue
        with pytest.raises(ValueError, match=rf"(?i)\b{name}\b|^unknown likelihood"):
            function(**{**CALLS[function], name: WRONG[wrong]})


HUGE = {"theta": np.subtract(THETA, [0, 0, 0, 0, 2e3])}


@pytest.mark.parametrize(
    ("function", "changed", "message"),
    [
        (moestat.expected_information, {"n_nodes": 10**30}, "n_nodes must be at most"),
        (moestat.expected_information, {"n_nodes": 2**31}, "n_nodes must be at most"),
        (moestat.hellinger, {"n_nodes": 10**30}, "n_nodes must be at most 1,000,000"),
        (moestat.information_spectrum, HUGE, "theta: .* beyond the range of float64"),
        (moestat.expected_information, HUGE, "theta: .* beyond the range of float64"),
        (moestat.sample, {"theta": THETA + 2e3}, "theta: .* beyond the range of float64"),
        (moestat.hellinger, {"theta": THETA * 1e300}, "theta, truth_theta: .* beyond the range"),
        (moestat.sample, {"n": 10**400}, "n must be at most 1e"),
        (moestat.fit, {"X": X * 1e300}, "X holds values above 1e"),
        (moestat.fit, {"y": Y * 1e300}, "y holds values above 1e"),
        (moestat.fit, {"compress": np.zeros((0, 1))}, "compress must be"),
        (moestat.fit, {"time_limit": np.zeros(3)}, "time_limit must be"),
        (moestat.fit, {"n_starts": 10**30}, "n_starts must be at most"),
        (moestat.fit, {"n_starts": 1_000_000}, "n_starts must be at most 100,000"),
        (moestat.fit_rate, {"n_bootstrap": 2**64}, "n_bootstrap must be at most"),
        (moestat.fit_rate, {"n_bootstrap": np.zeros((0, 1))}, "n_bootstrap must be"),
        (moestat.compress, {"X": X[:0]}, "one entry for each row of X"),
        (moestat.MixingMeasure, {"atoms": {"name": "nope"}}, "atoms: block 'name'"),
        (moestat.log_likelihood, {"params": THETA * np.nan}, "params holds"),
        (moestat.score, {"params": THETA - [0, 0, 0, 1e300, 0]}, "beyond the range of float64"),
    ],
)
def test_arguments_out_of_range_are_refused_in_one_line(function, changed, message):
    with pytest.raises(ValueError, match=message) as raised:
        function(**{**CALLS[function], **changed})
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("path", [3, None, b"name", "nul\0", object()])
def test_paths_of_another_kind_are_refused_by_name(path):
    for read in (moestat.load, load_spec, lambda path: open_store(path).__enter__()):
        with pytest.raises(ValueError, match=r"path must be a str or a pathlib\.Path, got"):
            read(path)


def test_losses_of_the_second_curve_are_called_so():
    with pytest.raises(ValueError, match="other_loss"):
        moestat.compare_rates([10, 100], [1, 0.1], [10, 100], False)
    with pytest.raises(ValueError, match="paired must be True or False"):
        moestat.compare_rates([10, 100], [1, 0.1], [10, 100], [1, 0.2], paired=np.zeros((0, 1)))


def test_a_table_of_a_solver_is_a_name_or_a_table():
    for wrong in (None, 3, [1, 2], len):
        with pytest.raises(ValueError, match="options must be a name or a table"):
            make_solver(wrong)


def test_objects_that_are_numbers_are_compressed_as_numbers():
    short = moestat.compress(X, np.ones(30, dtype=object))
    assert short.y.dtype == np.int64


def test_slopes_over_more_than_the_range_of_float64():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(local_slopes([1e-320, 1, 1e300], [1, 0.5, 0.1]).slope).all()


@pytest.mark.parametrize(
    "rule", ["RandomStarts", "SplitStarts", "ClusterStarts", "SoftClusterStarts"]
)
def test_starts_beyond_a_day_of_work_are_refused(rule):
    with pytest.raises(ValueError, match="must be at most 100,000, got 1000000"):
        getattr(moestat.starts, rule)(count=1_000_000)


def test_a_fit_beyond_memory_is_refused_with_the_estimate(monkeypatch):
    monkeypatch.setattr("moestat.base.memory.available_memory", lambda: 2**30)
    wide = np.random.default_rng(0).normal(size=(3000, 60))
    with pytest.raises(ValueError, match=r"2,460 parameters .* about 2\.17 GiB of memory"):
        moestat.fit("gaussian", wide, wide[:, 0], n_experts=20)


def test_a_fit_ends_when_its_time_is_over():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20_000, 8))
    y = wide[:, 0] * np.sign(wide[:, 1])
    options = {"n_experts": 6, "time_limit": 0.0, "threads": 1}
    moestat.fit("gaussian", wide[:500], y[:500], n_experts=6, n_starts=1, rng=0)  # compiles
    began = time.process_time()
    with pytest.warns(moestat.base.warnings.InterruptedWarning, match="reached its time_limit"):
        result = moestat.fit("gaussian", wide, y, **options)
    assert time.process_time() - began < 2.0
    assert result.certificate.status == "time limit"
    assert np.isfinite(result.llf)
