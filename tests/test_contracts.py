"""What every member of a registry must satisfy, so that a new one is tested by being registered."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import dump, load
from scipy.special import expit
from scipy.stats import norm

import moestat
from moestat.base.registry import Registry, UnknownNameError
from moestat.estimation.data.data import Data
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.estimation.results.results import MoEResults
from moestat.estimation.starts import TruthStarts
from moestat.metrics.losses import LOSSES
from moestat.model.activations import ACTIVATIONS, REFERENCES
from moestat.model.designs import DESIGNS, make_design
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.solvers import SOLVERS, Certificate, Solution, make_solver
from moestat.sweep.run.executors import EXECUTORS
from tests import oracle
from tests.conftest import MEDIUM, WIDE
from tests.kinds import (
    EACH_REGRESSION,
    GAUSSIAN,
    KINDS,
    MULTINOMIAL,
    NORMAL_ONLY,
    OTHERS,
    REGRESSION,
    each_run,
    kind_id,
    make,
    random_response,
    random_theta,
)

ALL = [GATES, EXPERTS, LIKELIHOODS, LOSSES, SOLVERS, DESIGNS, EXECUTORS]
MIXTURE_SOLVERS = [n for n, maker in SOLVERS.items() if not maker.make.needs.regression]
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(2, 4))


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.kind)
def test_registry_lists_members_under_their_names(registry):
    assert len(registry) > 0
    for name, member in registry.items():
        assert member.name == name
    with pytest.raises(UnknownNameError, match=f"unknown {registry.kind} 'no such'; known: "):
        registry["no such"]


def test_a_name_registers_once():
    registry = Registry("gate")
    registry.register(GATES["softmax"])
    with pytest.raises(ValueError, match="registered already"):
        registry.register(GATES["softmax"])


@pytest.mark.parametrize("gate", GATES)
def test_gate_declares_bounds_mass_and_translations_of_its_blocks(gate):
    member = GATES[gate]
    channels = member.channels(2)
    blocks = {name for c in channels for name in (c.intercept, c.slope, c.products) if name}
    assert set(member.bounds) == blocks
    assert member.mass in blocks if member.mass else member.fixed_mass(4) > 0.0
    assert set(member.translations) <= blocks
    assert member.source


@pytest.mark.parametrize("kind", MULTINOMIAL, ids=kind_id)
@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_class_probabilities_sum_to_one_and_follow_the_oracle(kind, shape, seed):
    k, d, K = shape
    rng = np.random.default_rng(seed)
    family = make(kind, k, d, K)
    theta = random_theta(family, rng, scale=3.0)
    X = rng.normal(size=(40, d))
    p = family.probabilities(theta, X)
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    blocks = oracle.blocks_of(family, theta)
    for s in range(K):
        expected = np.exp(oracle.log_density(family, blocks, X, np.full(40, s + 1)))
        assert np.allclose(p[:, s], expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
@settings(max_examples=30, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_density_keeps_its_symmetries(kind, shape, seed):
    k, d, K = shape
    rng = np.random.default_rng(seed)
    family = make(kind, k, d, K)
    theta = random_theta(family, rng, scale=2.0)
    X, y = rng.normal(size=(40, d)), random_response(family, rng, 40)
    density = family.log_density(theta, X, y)
    shifted = theta.copy()
    for name in family.gate.translations:
        positions = family.blocks[name]
        shifted[positions] += rng.normal(size=positions.shape[1:])
    atoms, shared = family.split(shifted)
    relabelled = family.join(atoms[rng.permutation(k)], shared)
    close = {"rtol": 1e-9, "atol": 1e-9}
    if family.gate.scaling:
        factor = np.exp(rng.normal())
        scaled = theta.copy()
        for name in family.gate.scaling:
            scaled[family.blocks[name]] *= factor
        assert np.allclose(family.log_density(scaled, X, y), density, **close)
    assert np.allclose(family.log_density(relabelled, X, y), density, **close)
    one, other = family.canonical(theta), family.canonical(relabelled)
    assert np.allclose(one, other, atol=1e-12)
    assert np.allclose(family.log_density(one, X, y), density, **close)


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
@settings(max_examples=20, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_packing_and_measures_are_inverse(kind, shape, seed):
    k, d, K = shape
    family = make(kind, k, d, K)
    theta = random_theta(family, np.random.default_rng(seed))
    assert np.allclose(family.pack(family.unpack(theta)), theta, rtol=1e-15, atol=1e-15)
    assert np.allclose(family.from_measure(family.measure(theta)), theta, rtol=1e-12, atol=1e-15)
    used = np.concatenate([positions.ravel() for positions in family.blocks.values()])
    assert sorted(used) == list(range(family.n_params))


def case(kind):
    """Family and typical parameters of a kind with two experts and one input, and a design."""
    family = make(kind, 2, 1, 2)
    return family, family.typical(rng=0), MEDIUM if family.likelihood.support is None else WIDE


@pytest.mark.parametrize("kind", [*KINDS, *REGRESSION], ids=kind_id)
@given(shape=st.tuples(st.integers(2, 4), st.integers(1, 3)), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_typical_parameters_are_inside_the_box_and_apart(kind, shape, seed):
    k, d = shape
    family = make(kind, k, d, 3)
    theta = family.typical(seed)
    free = family.lower < family.upper
    assert np.all((family.lower < theta) & (theta < family.upper) | ~free)
    assert np.array_equal(theta, family.typical(seed))
    coordinates = family.measure(theta).coordinates()
    gaps = coordinates[:, None] - coordinates
    assert np.linalg.norm(gaps, axis=-1)[~np.eye(k, dtype=bool)].min() > 0.2


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_and_its_derivatives_follow_the_reference(name):
    points = np.linspace(-30.0, 30.0, 120)  # 0, where some have a kink, is none of them
    reference = REFERENCES[name]

    def slope(s):
        return reference(s + 1e-30j).imag / 1e-30

    value, first, second = np.array([ACTIVATIONS[name](s) for s in points]).T
    assert np.allclose(value, reference(points), rtol=1e-13, atol=1e-15)
    assert np.allclose(first, slope(points), rtol=1e-12, atol=1e-13)
    h = 1e-5
    numeric = (slope(points + h) - slope(points - h)) / (2 * h)
    assert np.allclose(second, numeric, rtol=1e-7, atol=1e-8)


DISCRETE = [kind for kind in KINDS if LIKELIHOODS[kind[0]].support is not None]
COUNTED = [kind for kind in KINDS if LIKELIHOODS[kind[0]].counts]
CONTINUOUS = [kind for kind in KINDS if kind not in DISCRETE and kind not in COUNTED]


@pytest.mark.parametrize("kind", DISCRETE, ids=kind_id)
def test_sampler_follows_the_density(kind):
    """Chi-square on a grid of intervals of x by classes, with their exact probabilities."""
    from scipy.stats import chi2

    family, theta, _ = case(kind)
    n, intervals = 200_000, 25
    X, y = moestat.sample(family, theta, n, rng=2024, design=WIDE)
    edges = np.linspace(-4, 4, intervals + 1)
    observed = np.stack([np.histogram(X[y == s, 0], edges)[0] for s in (1, 2)])
    expected = np.empty((2, intervals))
    for j in range(intervals):
        nodes, weights = moestat.Uniform(edges[j], edges[j + 1]).quadrature(1, 20)
        expected[:, j] = n / intervals * (weights @ family.probabilities(theta, nodes.T))
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, 2 * intervals - 1) > 1e-3


@pytest.mark.parametrize("kind", CONTINUOUS, ids=kind_id)
def test_sampler_follows_a_density_that_integrates_to_one(kind):
    """The distribution function at the samples, by integrals of the density, is uniform."""
    from scipy.stats import kstest

    family, theta, design = case(kind)
    X, y = moestat.sample(family, theta, 1000, rng=2025, design=design)
    low, high = y.min() - 5 * np.ptp(y), y.max() + 5 * np.ptp(y)
    grid = {
        (-np.inf, np.inf): np.linspace(low, high, 2001),
        (0.0, np.inf): np.geomspace(1e-8, high, 2001),
        (0.0, 1.0): expit(np.linspace(-20.0, 20.0, 2001)),
    }[family.likelihood.ends]
    rows = np.repeat(X, grid.size, axis=0)
    density = np.exp(family.log_density(theta, rows, np.tile(grid, len(y)))).reshape(len(y), -1)
    steps = (density[:, 1:] + density[:, :-1]) / 2 * np.diff(grid)
    below = np.concatenate([np.zeros((len(y), 1)), np.cumsum(steps, axis=1)], axis=1)
    assert np.allclose(below[:, -1], 1.0, atol=1e-3)
    distribution = np.array([np.interp(at, grid, row) for at, row in zip(y, below, strict=True)])
    for part in np.array_split(np.argsort(X[:, 0]), 4):
        assert kstest(distribution[part], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", COUNTED, ids=kind_id)
def test_sampler_follows_probabilities_of_counts_that_sum_to_one(kind):
    """Quantiles at the samples, drawn within the steps of sums of the density, are uniform."""
    from scipy.stats import kstest

    family, theta, _ = case(kind)
    rng = np.random.default_rng(2026)
    X, y = moestat.sample(family, theta, 500, rng=2025, design=MEDIUM)
    least = int(family.likelihood.inside)
    counts = np.arange(least, family.likelihood.options.get("trials", int(y.max()) + 999) + 1)
    rows = np.repeat(X, counts.size, axis=0)
    blocks = oracle.blocks_of(family, theta)
    p = np.exp(oracle.log_density(family, blocks, rows, np.tile(counts, len(y))))
    p = p.reshape(len(y), -1)
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    at = np.arange(len(y))
    below = np.cumsum(p, axis=1)[at, y - least] - rng.random(len(y)) * p[at, y - least]
    for part in np.array_split(np.argsort(X[:, 0]), 4):
        assert kstest(below[part], "uniform").pvalue > 1e-3
    residuals = quantile_residuals(family, theta, X, y, rng=0)
    again = norm.ppf(
        np.cumsum(p, axis=1)[at, y - least]
        - np.random.default_rng(0).random(len(y)) * p[at, y - least]
    )
    assert np.allclose(residuals, again, rtol=1e-8, atol=1e-8)


# One likelihood for each gate, both for softmax, and every further likelihood.
SOLVED = [
    *(kind for kind in MULTINOMIAL if GATES[kind[1]].n_active is None),
    *(
        kind
        for kind in GAUSSIAN
        if GATES[kind[1]].reads_response
        or GATES[kind[1]].n_active
        or kind[1] in {"softmax", *NORMAL_ONLY}
    ),
    *OTHERS,
]


def solved():
    """Every kind by one solver in each run, in turn; kinds with jumps by every solver."""
    for i, kind in enumerate(SOLVED):
        for j, solver in enumerate(MIXTURE_SOLVERS):
            each_run = i % len(MIXTURE_SOLVERS) == j or GATES[kind[1]].n_active
            marks = () if each_run else pytest.mark.slow
            yield pytest.param(kind, solver, id=f"{kind_id(kind)}-{solver}", marks=marks)


@pytest.mark.parametrize(("kind", "solver"), list(solved()))
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.LimitWarning")
def test_solver_returns_a_point_of_the_box_with_an_honest_certificate(kind, solver):
    family, theta, design = case(kind)
    X, y = moestat.sample(family, theta, 3000, rng=1, design=design)
    starts = [TruthStarts(family, theta, 2, 0.05)]
    result = moestat.fit(family, X, y, solver=make_solver(solver), starts=starts, rng=0)
    assert np.all(result.params >= result.bounds[:, 0])
    assert np.all(result.params <= result.bounds[:, 1])
    density = family.log_density(result.params, X, y)
    assert result.log_likelihood == pytest.approx(density.sum(), rel=1e-12)
    certificate = result.certificate
    assert certificate.status in {"converged", "iteration limit", "stalled", "searched"}
    assert certificate.n_starts == 2
    assert certificate.collapsed == ()
    assert sum(certificate.inertia) <= family.n_free_params
    if certificate.certified:
        assert certificate.inertia[2] == 0
        assert certificate.gain <= 1e-4
    if family.has_jumps:
        # Derivatives see only the smooth piece of the start.
        assert certificate.certified == (solver == "search")
        if solver != "search":
            return
    assert result.log_likelihood > family.log_density(theta, X, y).sum()


@pytest.mark.parametrize("solver", SOLVERS)
def test_solver_rejects_options_it_does_not_have(solver):
    with pytest.raises(ValueError, match="does not take these options: wrong"):
        make_solver({"name": solver, "wrong": 1})


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "sgd"])
def test_solver_rejects_options_out_of_range(solver):
    with pytest.raises(ValueError, match="max_iterations must be an integer >= 1, got 0"):
        make_solver({"name": solver, "max_iterations": 0})
    with pytest.raises(ValueError, match="tolerance must be a number"):
        make_solver({"name": solver, "tolerance": -1.0})


@pytest.mark.parametrize("name", DESIGNS)
def test_design_draws_what_it_integrates(name):
    own = {"given": {"points": [[0.0, 1.0], [0.5, -2.0], [2.0, 0.0], [1.0, 1.0]]}}
    d = 1 if name == "equispaced" else 2
    design = make_design({"law": name, **own.get(name, {})})
    X = design.draw(100_000, d, np.random.default_rng(0))
    nodes, weights = design.quadrature(d, 12)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    for power in (1, 2, 3):
        exact = (nodes**power) @ weights
        error = (X**power).std(axis=1) / np.sqrt(X.shape[1])
        assert np.all(np.abs((X**power).mean(axis=1) - exact) < 5 * error)


def same(one, other):
    """Equality of records, field by field, where fields may be arrays or NaN."""
    assert type(one) is type(other)
    for f in fields(one):
        a, b = getattr(one, f.name), getattr(other, f.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
        elif isinstance(a, (Solution, Certificate, Data)):
            same(a, b)
        elif isinstance(a, moestat.Family):
            assert a.table == b.table
            assert a.loops is b.loops
        else:
            assert a == b or (a != a and b != b)


STORED = [*KINDS, *EACH_REGRESSION]


@pytest.mark.parametrize(
    "kind",
    each_run([*KINDS, *REGRESSION], STORED, kind_id, [kind_id(kind) for kind in STORED[::6]]),
)
def test_families_and_results_survive_every_way_to_store_them(kind, tmp_path):
    rng = np.random.default_rng(0)
    family = make(kind, 3, 2, 3)
    n_params = family.n_params
    certificate = Certificate(
        "converged", True, 1e-9, 1e-8, (3, 0, 0), np.inf, ("a[1,1]",), 7, 9.5, 0.1, "split 0",
        2, 1, 0.5, (1,), 1,
    )  # fmt: skip
    information = rng.normal(size=(n_params, n_params))
    theta = random_theta(family, rng)
    y = random_response(family, rng, 40)
    words = None if family.likelihood.support is None else np.array(["x", "y", "z"])
    result = MoEResults(
        family,
        Solution(theta, -12.5, information @ information.T, certificate, (-20.0, -12.5)),
        "newton",
        np.ones(40),
        2.0,
        data=Data(rng.normal(size=(40, 2)), y, np.ones(40), ("age", "height"), None, words),
    )
    dump(result, tmp_path / "joblib")
    result.save(tmp_path / "fit.npz")
    for again in (
        pickle.loads(pickle.dumps(result)),
        copy.deepcopy(result),
        load(tmp_path / "joblib"),
        moestat.load(tmp_path / "fit.npz"),
    ):
        same(again, result)
        assert again.params.equals(result.params)
    assert repr(pickle.loads(pickle.dumps(family))) == repr(family)
    assert "\n" not in repr(result)
    assert len(repr(result)) < 160
    assert len(str(result.summary()).splitlines()) > n_params
