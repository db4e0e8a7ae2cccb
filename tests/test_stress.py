"""The same numbers to 1e-10 under threads, forks, other processes and other BLAS, or a refusal."""

import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.stress import __name__ as stress
from tests.stress import numbers


@pytest.fixture(scope="module")
def expected():
    return numbers()


def assert_same(found, expected, rest=1e-10):
    """Log-likelihoods to 1e-10, and the `rest`."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-10)
        np.testing.assert_allclose(one[1:], other[1:], rtol=rest, atol=rest)


@pytest.mark.thorough
def test_eight_threads_at_once(expected):
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: numbers(), range(8)):
            assert_same(found, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_within_a_fit(expected, threads):
    assert_same(numbers(threads=threads), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_after_a_fit(expected):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map(numbers, [0, 0]):
            assert_same(found, expected)


@pytest.mark.thorough
def test_workers_of_loky(expected):
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(numbers)() for _ in range(2))
    for each in found:
        assert_same(each, expected)


@pytest.mark.parametrize("kernels", [pytest.param("Nehalem", marks=pytest.mark.slow), "Haswell"])
def test_other_kernels_of_blas_and_warnings_that_are_errors(expected, kernels):
    environment = os.environ | {"OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "error", "-m", stress]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Newton's path ends at another point with nothing to gain: 1e-9 in the log-likelihood.
    assert_same(json.loads(done.stdout), expected, 1e-7)


def test_code_that_is_not_compiled_is_refused():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", "import moestat; moestat.fit"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "NUMBA_DISABLE_JIT is set" in done.stderr.splitlines()[-1]
