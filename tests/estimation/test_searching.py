"""The search for starts: what it finds, over seeds, and its parts, each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels import datasets

import moestat
from moestat.base.warnings import DisagreementWarning
from moestat.estimation.rules import SAME_HEIGHT, SEARCH
from moestat.estimation.search import agreement as searching
from moestat.estimation.search import modes, neighbours, runs
from moestat.estimation.search.agreement import (
    Agreement,
    Moves,
    Pool,
    Race,
    SpringStarts,
)
from moestat.estimation.search.runs import run_starts
from moestat.estimation.starts import ClusterStarts, GivenStarts, RandomStarts, clusters
from moestat.estimation.starts.scale import into_box
from moestat.solvers import Newton
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.driver import Cores, drive
from moestat.solvers.penalised import PenalisedProblem, Penalty
from moestat.solvers.problem import Objective, Problem, Request, Rows, Run

SEEDS = [
    pytest.param(range(4), id="quick"),
    pytest.param(range(20), marks=pytest.mark.slow, id="slow"),
]


def drawn(likelihood, n, d, k, seed=0, **more):
    """Intercepts normal, slopes twice so: (family, X, y, truth)."""
    rng = np.random.default_rng(seed)
    family = moestat.family(likelihood, gate="softmax", n_experts=k, n_features=d, **more)
    blocks = family.unpack(rng.standard_normal(family.n_params))
    steep = 0.4 if likelihood == "poisson" else 2.0
    blocks |= {"beta1": 2.0 * blocks["beta1"], "a": steep * blocks["a"]}
    if "nu" in blocks:
        blocks["nu"] = 0.2 + np.abs(blocks["nu"])
    truth = family.pin(family.pack(blocks))
    return family, *moestat.sample(family, truth, n, rng, design=moestat.Uniform(-2, 2)), truth


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(
    ("likelihood", "n", "d", "k", "more", "below"),
    [
        ("gaussian", 500, 3, 2, {}, 0.01),
        pytest.param("gaussian", 500, 3, 3, {}, 0.01, marks=pytest.mark.slow),
        ("gaussian", 4010, 3, 2, {}, 0.01),
        pytest.param("gaussian", 2000, 20, 3, {}, 0.01, marks=pytest.mark.slow),
        ("poisson", 1000, 2, 2, {}, 0.01),
        pytest.param("multinomial", 2000, 2, 2, {"n_classes": 4}, 0.01, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.OptimumWarning")
def test_default_calls_end_as_high_as_from_the_truth(likelihood, n, d, k, more, below, seeds):
    """95% of the calls, over seeds of the search."""
    family, X, y, truth = drawn(likelihood, n, d, k, **more)
    best = moestat.fit(family, X, y, starts=[GivenStarts([truth])]).log_likelihood
    ends = [moestat.fit(family, X, y, rng=seed).log_likelihood for seed in seeds]
    assert np.quantile(best - np.array(ends), 0.95) <= below


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.OptimumWarning")
def test_more_starts_are_no_worse():
    family, X, y, _ = drawn("gaussian", 200, 1, 4, 3)
    few, many = (
        [moestat.fit(family, X, y, n_starts=m, rng=s).llf for s in range(5)] for m in (1, 24)
    )
    assert np.mean(many) >= np.mean(few) - 1e-2


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.OptimumWarning")
def test_moves_find_what_all_starts_of_a_pool_miss():
    """One in three rows on a line, exact to .004: every start ends 55 or 89 units lower."""
    for seed, best in ((3, 232.63), (7, 203.64)):
        rng = np.random.default_rng(seed)
        x, which = np.round(rng.uniform(1.3, 3.0, 150), 2), rng.choice(3, 150, p=[0.55, 0.35, 0.1])
        mean = np.array([1.92 + 0.04 * x, x, -0.08 + 0.98 * x])[which, np.arange(150)]
        noise = np.array([rng.normal(size=150) for _ in range(3)])[which, np.arange(150)]
        y = np.round(mean + np.array([0.044, 0.0042, 0.22])[which] * noise, 3)
        how = {"n_experts": 2, "maximum": "highest"}
        ends = [moestat.fit("gaussian", x, y, rng=s, **how).llf for s in range(4)]
        assert np.quantile(ends, 0.25) == pytest.approx(best, abs=0.01)


@pytest.mark.parametrize(
    "rule",
    [
        Pool(6),
        SpringStarts(3),
        Race(Pool(9)),
        Race(RandomStarts(4)),
        Moves(),
        Moves(count=1),
        Moves(count=4, resamples=1, gain=0.5),
        Agreement(),
    ],
)
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.OptimumWarning")
def test_every_part_is_a_start_rule(rule):
    family, X, y, _ = drawn("gaussian", 400, 2, 2)
    result = moestat.fit(family, X, y, starts=[rule], rng=0)
    assert result.certificate.certified
    assert result.certificate.start.startswith(rule.name)
    again = moestat.fit(family, X, y, starts=[rule], rng=0)
    assert np.array_equal(result.params, again.params)


def test_values_of_ones_own_do_not_race():
    """They are in other units than the race."""
    with pytest.raises(ValueError, match=r"starts=\[GivenStarts\(points\), Agreement\(\)\]"):
        Race(GivenStarts([[0.0]]))


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.OptimumWarning")
def test_a_search_beyond_the_budget_has_one_pool_and_rounds_that_gain_enough(monkeypatch):
    family, X, y, _ = drawn("gaussian", 300, 2, 4)
    pools, rounds = list[int](), list[int]()
    start_runs, climb = Race.start_runs, neighbours.climb_on_resamples
    monkeypatch.setattr(Race, "start_runs", lambda *given: pools.append(1) or start_runs(*given))
    monkeypatch.setattr(
        searching, "climb_on_resamples", lambda *given: rounds.append(given[2]) or climb(*given)
    )
    monkeypatch.setattr(searching, "SEARCH", SEARCH._replace(work=1.0))
    for seed in range(5):
        pools.clear(), rounds.clear()
        moestat.fit(family, X, y, maximum="highest", rng=seed)
        # A gain of .01 for each unit of work, 3e5, is out of reach: one round of each kind.
        assert (pools, rounds) == ([1], [family.n_experts])


def test_searches_that_do_not_agree_warn():
    family, X, y, _ = drawn("gaussian", 150, 1, 5, 5)
    once = Agreement(search=Moves(Race(Pool(4)), idle=0), searches=2)
    with pytest.warns(DisagreementWarning, match="only one of 2 runs"):
        moestat.fit(family, X, y, starts=[once], rng=0)


@pytest.mark.parametrize("climb", ["newton", "bfgs"])
def test_compiled_iterations_feel_the_spring(climb, monkeypatch):
    """The same end in one compiled loop and pass by pass, where the pulls are in balance."""
    family, X, y, truth = drawn("gaussian", 300, 2, 2)
    data = Rows(np.ascontiguousarray(X.T), y, np.ones(len(y)))
    unit = 2.0 * Problem(family, data).metric(truth)
    spring = Penalty(unit, np.arange(0), centre=0.5 * truth)
    problem = PenalisedProblem(family, data, penalty=spring)

    def end():
        own = problem.restart()
        if climb == "newton":
            return drive([Newton(1e-10).climb(own, truth)], [own], 1)[0][0].theta
        return drive([bfgs_steps(own, truth, -1, 400, 1e-12)], [own], 1)[0][0]

    compiled = end()
    monkeypatch.setattr(Run, "is_for", staticmethod(lambda problem, request: False))
    assert compiled == pytest.approx(end(), abs=1e-5)
    here = problem.evaluate(Request(Objective.OBSERVED, compiled))
    free = family.lower < family.upper
    assert np.abs(here.gradient[free]).max() < 1e-3
    plain = Problem(family, data).evaluate(Request(Objective.OBSERVED, compiled))
    away = compiled - 0.5 * truth
    assert here.value == pytest.approx(plain.value + 0.5 * away @ unit @ away)
    assert here.hessian == pytest.approx(plain.hessian + unit)


def test_a_spring_that_is_let_go_leads_where_starts_at_random_do_not():
    """Twenty inputs, four experts: every start, where few of those at random arrive."""
    family, X, y, truth = drawn("gaussian", 3000, 20, 4)
    best = moestat.fit(family, X, y, starts=[GivenStarts([truth])]).log_likelihood
    for seed in range(3):
        one = moestat.fit(family, X, y, starts=[SpringStarts(1)], rng=seed)
        assert one.log_likelihood >= best - 0.01
        other = moestat.fit(family, X, y, starts=[RandomStarts(1)], rng=seed)
        assert other.log_likelihood <= one.log_likelihood + 0.01


def test_memberships_are_fitted_alike_with_few_and_many_parameters(monkeypatch):
    """By Newton's steps or BFGS's, as far as the complete data's likelihood goes."""
    family, X, y, _ = drawn("gaussian", 600, 2, 3)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))
    ends = []
    for most in (1000, 0):
        monkeypatch.setattr(clusters, "SEARCH", SEARCH._replace(hessians=most))
        start = ClusterStarts(1, steps=30).draw(problem, np.random.default_rng(0))[0]
        ends.append(problem.evaluate(Request(Objective.VALUE, start)).value)
    assert ends[1] == pytest.approx(ends[0], abs=1.0)


def test_a_narrow_line_among_others_is_found():
    """A third of the rows lies within .004 of a line; the next maximum is 14 to 41 lower."""
    found = []
    for seed in (1, 2, 4):
        rng = np.random.default_rng(seed)
        x = np.round(rng.uniform(1.3, 3.0, 150), 2)
        kind = rng.choice(3, 150, p=[0.55, 0.35, 0.10])
        flat, steep = 1.92 + 0.04 * x, x + 0.0042 * rng.normal(size=150)
        y = np.where(kind == 0, flat + 0.044 * rng.normal(size=150), steep)
        wide = -0.08 + 0.98 * x + 0.22 * rng.normal(size=150)
        y = np.round(np.where(kind == 2, wide, y), 3)
        how = {"n_experts": 2, "maximum": "highest"}
        fits = [moestat.fit("gaussian", x, y, rng=j, **how) for j in range(6)]
        found += [fit.blocks["nu"].min() < 0.006**2 for fit in fits]
        # Under the weak prior this line is improbable, beside wide ones: it is an end with a note.
        default = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
        assert default.ends.log_likelihood.max() == pytest.approx(max(f.llf for f in fits), abs=0.1)
        assert "also saw an end whose log-likelihood is higher" in str(default.summary())
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("noise", [0.04, 0.004])
def test_a_narrow_line_beside_a_wide_one_is_the_estimate(noise):
    """The model is right here, and a line that is a hundred times as narrow is the highest mode."""
    rng = np.random.default_rng(0)
    x, which = rng.uniform(-1.0, 1.0, 150), rng.random(150) < 1 / 3
    wide = 0.1 - 0.2 * x + 0.4 * rng.normal(size=150)
    y = np.where(which, 0.5 * x + noise * rng.normal(size=150), wide)
    assert moestat.fit("gaussian", x, y, n_experts=2, rng=0).blocks["nu"].min() < (2 * noise) ** 2


def test_a_search_where_one_run_takes_long(monkeypatch):
    """It makes few batches, of which the best runs go on, and comes to the same maximum."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    y = np.where(rng.random(500) < 0.5, 1.0 + x, -1.0 - x) + 0.3 * rng.normal(size=500)
    known = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    monkeypatch.setattr(modes, "MODES", modes.MODES._replace(work=1.0))
    monkeypatch.setattr(modes, "SEARCH", SEARCH._replace(work=1.0))
    short = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    assert short.llf == pytest.approx(known.llf, abs=0.01)
    assert short.certificate.n_starts == 4 < known.certificate.n_starts


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
@pytest.mark.parametrize(
    ("name", "inputs", "response", "best"),
    [
        ("grunfeld", ["value", "capital"], "invest", -1041.25),
        ("nile", ["year"], "volume", -625.18),
    ],
)
def test_real_data_are_fitted_to_the_best_maximum_known(name, inputs, response, best):
    """In most calls; without clusters in the pool, and resamples, in none of twelve."""
    table = getattr(datasets, name).load_pandas().data
    fits = [
        moestat.fit(
            "gaussian",
            table[inputs],
            table[response],
            n_experts=2,
            maximum="highest",
            rng=seed,
        )
        for seed in range(12)
    ]
    assert np.mean([fit.log_likelihood > best - 0.01 for fit in fits]) >= 0.6


def test_resamples_are_of_rows_or_groups_and_weigh_as_much(monkeypatch):
    """Of each a third of the groups is left out, and the total weight is that of all rows."""
    family, X, y, truth = drawn("gaussian", 600, 1, 2)
    begin = np.arange(0, 600, 3)
    weight = np.repeat(np.random.default_rng(1).integers(0, 4, 200), 3).astype(float)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, weight, begin=begin))
    seen = []
    climbed = neighbours.climb_all

    def watched(problems, *others):
        seen.extend(problems)
        return climbed(problems, *others)

    monkeypatch.setattr(neighbours, "climb_all", watched)
    rng = np.random.default_rng(0)
    ends = neighbours.climb_on_resamples(problem, truth, 3, rng, 5)
    assert np.unique(ends.round(6), axis=0).shape == (3, family.n_params)
    for other in seen:
        data = other.data
        assert data.weight.sum() == pytest.approx(weight.sum(), rel=1e-12)
        assert np.ptp(data.weight.reshape(-1, 3), axis=1).max() == 0.0
        assert data.size < np.count_nonzero(weight)


def test_starts_are_contiguous_however_they_were_drawn():
    """A strided vector is another type to the compiler: every loop would be compiled again."""
    family = moestat.family("gaussian", gate="softmax", n_experts=2)
    points = np.asfortranarray(np.ones((5, family.n_params)))
    assert all(start.flags.c_contiguous for start in into_box(family, points))


def test_ends_at_one_height_are_in_the_order_of_their_starts():
    """Experts are numbered as in the first start that leads to the estimate, on any processor."""
    family, X, y, truth = drawn("gaussian", 300, 1, 2)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))
    atoms, shared = family.split(truth)
    far = truth + 0.1 * np.random.default_rng(1).standard_normal(truth.size)
    points = family.pin(np.array([far, family.join(atoms[::-1], shared)]))
    for order in ([0, 1], [1, 0], [0, 1, 1, 0]):
        ends = run_starts(problem, points[order], 50)
        assert ends[0].height == pytest.approx(ends[-1].height, abs=SAME_HEIGHT)
        for end, start in zip(ends, points[order], strict=True):
            near = [np.linalg.norm(end.theta - point) for point in points]
            assert np.argmin(near) == np.argmin(np.linalg.norm(start - points, axis=1))


def test_a_search_runs_on_the_threads_of_its_fit(monkeypatch):
    """All its runs, of starts, neighbours and springs; runs outside of a fit have one thread."""
    seen = []
    monkeypatch.setattr(runs, "Cores", lambda threads: seen.append(threads) or Cores(threads))
    family, X, y, truth = drawn("gaussian", 300, 1, 2)
    for maximum in ("regular", "highest"):
        moestat.fit(family, X, y, rng=0, threads=2, maximum=maximum)
    assert len(seen) > 4
    assert set(seen) == {2}
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))
    run_starts(problem, truth[None], 2)
    assert seen[-1] == 1
