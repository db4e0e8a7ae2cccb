"""Statistics of rows in memory do not depend on the parts in which these are summed."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.solvers import rows
from moestat.solvers.rules import WORK

X = np.random.default_rng(3).normal(size=(400, 2))
Y = np.where(X[:, 0] > 0.0, 1.0 + X[:, 1], -X[:, 1])
Y = Y + 0.3 * np.random.default_rng(4).normal(size=400)
WEIGHT = np.random.default_rng(5).integers(0, 3, 400).astype(float)
SUBJECT, REGION = np.arange(400) // 4, np.arange(400) // 4 % 3

FITS = {
    "density": lambda: moestat.fit("gaussian", X, Y, rng=0),
    "weights": lambda: moestat.fit("gaussian", X, Y, sample_weight=WEIGHT, rng=0),
    "mode": lambda: moestat.fit("gaussian", X, Y, prior="weak", rng=0),
    "regression": lambda: moestat.fit("least-squares", X, Y, n_experts=2, rng=0),
    "one": lambda: moestat.fit("poisson", X, np.rint(np.abs(3.0 * Y)), n_experts=1, rng=0),
}


def asked(result):
    """Covariances of every kind, and numbers that are sums over rows."""
    robust = result.get_robustcov_results
    found = {kind: robust(kind).cov_params() for kind in ("expected", "HC0", "HC1", "survey")}
    found["cluster"] = robust("cluster", SUBJECT).cov_params()
    found["strata"] = robust("survey", strata=REGION).cov_params()
    found["clusters in strata"] = robust("survey", SUBJECT, strata=REGION).cov_params()
    if not result.family.is_regression:
        found["entropy"], found["icl"] = result.entropy, result.icl_map
    if result.prior is None and not result.family.is_regression:
        away = result.theta + 0.01
        found["score"] = moestat.score_test(result, away, 2).statistic
    return {name: np.asarray(value) for name, value in found.items()}


@pytest.mark.parametrize("name", sorted(FITS))
def test_statistics_do_not_depend_on_parts(name, monkeypatch):
    result = FITS[name]()
    whole = asked(result)
    monkeypatch.setattr(rows, "WORK", WORK._replace(part=60))
    rows._parts.cache_clear()
    assert len(rows._parts(400, 0, preview=False)) > 1
    try:
        in_parts = asked(result)
    finally:
        rows._parts.cache_clear()
    for what, value in whole.items():
        scale = np.nanmax(np.abs(value), initial=1e-300)
        np.testing.assert_allclose(in_parts[what], value, rtol=1e-9, atol=1e-10 * scale)
