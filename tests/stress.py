"""Fits whose numbers must not depend on threads, processes, BLAS's kernels or warnings.

    python -m tests.stress

prints the numbers; `tests/test_stress.py` compares them.
"""

import json
import warnings

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning


def data(seed=0, n=200):
    """Inputs, and a response that is two lines, whose classes are its signs, whose counts grow."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    first = rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    y = np.where(first, 1.0 + 2.0 * X[:, 0], -1.0 - X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, y


def numbers(seed=0, threads=None):
    """Log-likelihoods, parameters and standard errors of fits to numbers and classes."""
    found = []
    X, y = data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        for likelihood, response in (("gaussian", y), ("multinomial", 1 + (y > 0.0))):
            k = 2 if likelihood == "gaussian" else 1
            fit = moestat.fit(likelihood, X, response, n_experts=k, rng=seed, threads=threads)
            errors = fit.bse, fit.get_prediction(X[:3]).se
            found.append([fit.llf, *fit.theta.tolist(), *np.concatenate([*map(np.ravel, errors)])])
    return [[float(each) for each in one] for one in found]


if __name__ == "__main__":
    print(json.dumps(numbers()))
