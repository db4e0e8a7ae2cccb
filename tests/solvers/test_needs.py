"""Solvers say what they ask of a family, and refuse another in one way."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.solvers import SOLVERS, make_solver

X = np.linspace(-1.0, 1.0, 60)


@pytest.mark.parametrize("name", list(SOLVERS))
@pytest.mark.parametrize("likelihood", ["gaussian", "least-squares"])
def test_a_family_of_the_other_kind_is_refused(name, likelihood):
    solver = make_solver(name)
    family = moestat.family(likelihood, gate="softmax")
    if solver.needs.regression == family.is_regression:
        solver.needs.check(solver.name, family)
        return
    with pytest.raises(ValueError, match=f"solver '{name}' is for"):
        moestat.fit(family, X, X**2, solver=solver, rng=0)
