"""Every start rule for every family: it draws, or is refused when a spec is read."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from moestat import starts
from moestat.estimation.data.data import Data
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.search.maximum import MaximumStarts
from moestat.solvers.driver import Cores
from tests.kinds import (
    EACH_REGRESSION,
    KINDS,
    REGRESSION,
    each_run,
    kind_id,
    make,
    random_response,
    random_theta,
)

RULES = {
    name: rule
    for name in starts.__all__
    if inspect.isclass(rule := getattr(starts, name)) and name != "StartRule"
}
IN_SPECS = ("truth", "measure", "split", "cluster", "random")
FIRST = [kind_id(kind) for kind in [*KINDS, *REGRESSION][::24]]
CASES = each_run([*KINDS, *REGRESSION], [*KINDS, *EACH_REGRESSION], kind_id, FIRST)


def made(rule: Any, truth, theta) -> Any:
    """A rule that draws two starts."""
    if rule is starts.GivenStarts:
        return rule(np.vstack([theta, theta]))
    if issubclass(rule, (starts.TruthStarts, starts.CopyStarts, starts.ScoreStarts)):
        return rule(truth, theta[: truth.n_params], 2)
    return rule(2)


def drawn(rule, family, X, y, in_data_box):
    job = FitJob(family, Data.of(family, X, y), rng=0)
    rng = np.random.default_rng(0)
    if in_data_box:
        standard = RunningFit.in_data_box(job, Cores(1)).standard
        assert standard is not None
        return standard.draw(rule, rng)
    return starts.draw_starts(rule, RunningFit.in_own_box(job, Cores(1)).original, rng)


def drawn_or_refused(*args):
    """The points, or the sentence of a refusal."""
    try:
        return drawn(*args), None
    except ValueError as error:
        return np.empty((0, 0)), str(error)


@pytest.mark.parametrize("kind", CASES)
def test_every_start_rule_draws_or_is_refused_by_its_name(kind):
    rng = np.random.default_rng(0)
    family = make(kind, 2, 2, 3)
    truth, theta = family.with_experts(1), random_theta(family, rng)
    X, y = rng.normal(size=(200, 2)), random_response(family, rng, 200)
    if family.likelihood.support is not None:
        y[:3] = [1, 2, 3]
    refused = set()
    for rule in (made(rule, truth, theta) for rule in RULES.values()):
        for unit, in_data_box in ((1.0, False), (1e4, True)):
            points, refusal = drawn_or_refused(rule, family, 3.0 + unit * X, y, in_data_box)
            if refusal is not None:
                refused.add(rule.name)
                assert refusal.startswith(f"starts: rule {rule.name!r}")
                assert "least squares" in refusal
                assert "'random'" in refusal
            else:
                assert points.shape == (2, family.n_params)
                assert np.all(np.isfinite(points))
    for name in IN_SPECS:
        if name in refused:
            with pytest.raises(ValueError, match=f"starts: rule '{name}'"):
                starts.make_starts({name: 2}, truth, theta[: truth.n_params], family)
        else:
            starts.make_starts({name: 2}, truth, theta[: truth.n_params], family)
    assert bool(refused) == family.is_regression


@pytest.mark.parametrize("kind", CASES)
def test_the_search_for_the_maximum_is_run_for_every_family(kind):
    rng = np.random.default_rng(1)
    family = make(kind, 3, 1, 3)
    truth = family.with_experts(2)
    theta = truth.feasible(truth.pin(random_theta(truth, rng)))
    X, y = rng.normal(size=(120, 1)), random_response(family, rng, 120)
    if family.likelihood.support is not None:
        y[:3] = [1, 2, 3]
    job = FitJob(family, Data.of(family, X, y), rng=0)
    problem = RunningFit.in_own_box(job, Cores(1)).original
    found = MaximumStarts(truth, theta, count=5, near=2).search(problem, rng)
    assert found.points.shape == (len(found.counts), family.n_params)
    assert np.all(np.isfinite(found.points))
    assert np.all((found.points >= family.lower) & (found.points <= family.upper))
    beyond = max(found.ends[:7]) < found.truth  # two more runs begin at the truth then
    assert sum(found.counts) + found.lower == len(found.ends) == 7 + 2 * beyond
    assert not np.isnan(found.ends).any()
