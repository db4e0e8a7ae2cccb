"""Public functions and arguments of another kind: one clear error that names the argument."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

import moestat

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
        **{"likelihood": "gaussian", "gate": "softmax", "expert": "linear", "n_experts": 1},
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
