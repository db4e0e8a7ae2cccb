"""Fixtures that every test may use: truths, families and a plain-NumPy oracle."""

from __future__ import annotations

import os
import threading

if "PYTEST_XDIST_WORKER" in os.environ:
    # One thread of BLAS and of PyTorch for each worker: they would wait for each other's threads.
    # Set before NumPy is imported, which reads it once.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

import moestat
from experiments.time_limit import stopped_after
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.results.results import MoEResults

LIMIT = 120
"""Seconds of processor time of a test that is not slow: a search that never ends is a failure."""


@pytest.fixture(autouse=True)
def _end_in_time(request):
    """Fail a test that takes more than `LIMIT` seconds of this process."""
    if request.node.get_closest_marker("slow") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def fail(*_):
        pytest.fail(
            f"the test has used {LIMIT} s of processor time. Of a likelihood of your own look at"
            " the quantiles of its `law`: those of moestat.model.quantiles.OfCounts and OfNumbers"
            " end"
        )

    with stopped_after(LIMIT, fail):
        yield


WELL_CONDITIONED = {
    # Identified and well conditioned on [-4, 4]: the scores are not opposite to each other.
    "sigmoid": {
        "gamma": [0.2, -0.3],
        "alpha": [-2.0, 3.0],
        "beta": [1.5, 1.0],
        "a": [[-2.0, 0.0], [1.5, 0.0]],
        "b": [[1.0, 0.0], [-1.0, 0.0]],
    },
    "softmax": {
        "beta0": [0.2, 0.0],
        "beta1": [-2.0, 0.0],
        "a": [[-2.0, 0.0], [1.5, 0.0]],
        "b": [[1.0, 0.0], [-1.0, 0.0]],
    },
}
WELL_CONDITIONED["sigmoid-inner"] = {**WELL_CONDITIONED["sigmoid"], "tau": 1.0}
WELL_CONDITIONED["sigmoid-euclidean"] = {
    "gamma": [0.5, 0.0],
    "alpha": [-2.0, 2.5],
    "beta": [-3.0, -2.0],
    "tau": 0.7,
    "a": [[-2.0, 0.0], [1.5, 0.0]],
    "b": [[1.0, 0.0], [-1.0, 0.0]],
}
WIDE = moestat.Uniform(-4.0, 4.0)


def compact_fit(family, X, y, rng=0, sample_weight=None, **options):
    """A fit in the family's own coordinates and compact box, as a sweep does it."""
    child = np.random.default_rng(rng).spawn(1)[0]
    (result,) = fit_jobs(
        [FitJob(family, Data.of(family, X, y, sample_weight), rng=child, **options)]
    )
    if isinstance(result, Exception):
        raise result
    return MoEResults.of(result)


# Two lines that cross, as in the experiments on competition.
_LINES = {"a": [[2.0], [-1.5]], "b": [1.0, -1.0], "nu": [0.25, 0.16]}
GAUSSIAN_TRUTHS = {
    "softmax": {"beta0": [0.3, 0.0], "beta1": [[1.0], [0.0]], **_LINES},
    "softmax-top": {"beta0": [0.3, 0.0], "beta1": [[1.0], [0.0]], **_LINES},
    "competition": _LINES,
    "competition-normalised": _LINES,
    "competition-free": {"c": [0.4, 0.0], **_LINES},
    "competition-top": _LINES,
}
MEDIUM = moestat.Uniform(-2.0, 2.0)


@pytest.fixture
def truth():
    """Family and packed truth of a gate, k* = 2, K = 2, d = 1."""

    def build(gate: str):
        family = moestat.family("multinomial", gate=gate, n_experts=2, n_classes=2)
        return family, family.pack(WELL_CONDITIONED[gate])

    return build


@pytest.fixture
def gaussian_truth():
    """Family and packed truth of a gate with two Gaussian linear experts, d = 1."""

    def build(gate: str):
        family = moestat.family("gaussian", gate=gate, n_experts=2)
        return family, family.pack(GAUSSIAN_TRUTHS[gate])

    return build
