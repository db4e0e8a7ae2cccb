"""Lattice designs: the counts are exact, the law is the model's, and fits hold at n = 1e14."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.metrics.distances import regression_error
from moestat.model.designs import make_design
from moestat.model.generate import check_size
from moestat.model.lattice import check_step, lattice_law, multinomial
from moestat.solvers.problem import Objective, Problem, Request, Rows

WIDE = moestat.Lattice(-4.0, 4.0)
MEDIUM = moestat.Lattice(-2.0, 2.0, nodes=32)


def near(family, theta, **options):
    """Truth-centred starts."""
    return [TruthStarts(family, theta, **{"count": 3, "noise": 0.1, **options})]


def fitted(family, theta, n, design, k, seed=0):
    X, y, weight = moestat.sample_weighted(family, theta, n, rng=seed, design=design)
    return moestat.fit(
        family.with_experts(k), X, y, sample_weight=weight, starts=near(family, theta), rng=seed
    )


# --- counts ---------------------------------------------------------------------------------------


def test_counts_follow_the_multinomial_law():
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(37))
    counts = np.array([multinomial(50, mass, rng) for _ in range(4000)])
    assert np.all(counts.sum(axis=1) == 50)
    assert stats.chisquare(counts.sum(axis=0), 200_000 * mass).pvalue > 1e-3
    # Variances and covariances of the multinomial, not of independent counts.
    covariance = 50 * (np.diag(mass) - np.outer(mass, mass))
    assert np.cov(counts.T) == pytest.approx(covariance, abs=0.25)


@pytest.mark.parametrize("n", [10**9, 10**14, 10**15])
def test_large_counts_are_normal_to_first_order(n):
    rng = np.random.default_rng(1)
    mass = rng.dirichlet(np.ones(300))
    scores = []
    for _ in range(20):
        counts = multinomial(n, mass, rng)
        assert counts.sum() == n
        scores.append(np.sum((counts - n * mass) ** 2 / (n * mass)))
    assert stats.kstest(scores, stats.chi2(299).cdf).pvalue > 1e-3


def test_small_probabilities_keep_their_size():
    """n p of order one at n = 1e14: the binomial must not round 1 - p."""
    rng = np.random.default_rng(2)
    p = np.array([3.3e-14, 1.7e-14, 4.1e-13])
    counts = np.array([multinomial(10**14, np.append(p, 1 - p.sum()), rng) for _ in range(4000)])
    expected = 1e14 * p
    error = (counts[:, :3].mean(axis=0) - expected) / np.sqrt(expected / 4000)
    assert np.all(np.abs(error) < 4)
    observed = np.bincount(np.minimum(counts[:, 0], 8), minlength=9)
    law = stats.poisson(3.3)
    assert stats.chisquare(observed, 4000 * np.append(law.pmf(range(8)), law.sf(7))).pvalue > 1e-3


def test_a_sample_of_counts_is_whole_positive_and_complete(gaussian_truth):
    family, theta = gaussian_truth("softmax")
    for n in (1, 1000, 1e9, 1e15):
        X, y, weight = moestat.sample_weighted(family, theta, n, rng=0, design=MEDIUM)
        assert weight.sum() == n
        assert np.all(weight >= 1)
        assert np.all(weight == np.round(weight))
        assert X.shape == (y.size, 1)


def test_a_seed_gives_one_sample(truth):
    family, theta = truth("sigmoid")
    first, second = (
        moestat.sample_weighted(family, theta, 1e12, rng=3, design=WIDE) for _ in range(2)
    )
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_nodes_rows_have_weight_one(truth):
    family, theta = truth("sigmoid")
    X, y, weight = moestat.sample_weighted(family, theta, 50, rng=3)
    rows, labels = moestat.sample(family, theta, 50, rng=3)
    np.testing.assert_array_equal(X, rows)
    np.testing.assert_array_equal(y, labels)
    assert np.all(weight == 1.0)


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", ["softmax", "competition", "competition-free", "softmax-top"])
def test_the_lattice_of_a_gaussian_response_is_normalised_at_every_node(gate, gaussian_truth):
    family, theta = gaussian_truth(gate)
    X, y, mass = lattice_law(family, theta, MEDIUM)
    nodes, weight = MEDIUM.quadrature(1)
    at = np.searchsorted(nodes[0], X[0])
    assert np.bincount(at, weights=mass) == pytest.approx(weight, rel=1e-13)
    # Its mean and variance are those of the continuous law.
    mean = np.bincount(at, weights=mass * y) / weight
    assert mean == pytest.approx(family.mean(theta, nodes[0]), abs=1e-12)


def test_a_model_beside_the_truth_is_normalised_too(gaussian_truth):
    family, theta = gaussian_truth("softmax")
    X, y, _ = lattice_law(family, theta, MEDIUM)
    other = theta.copy()
    other[family.blocks["nu"]] += np.log(0.6)  # narrower atoms: 1.9 steps per deviation
    step = np.diff(np.unique(y)).min()
    nodes, _ = MEDIUM.quadrature(1)
    at = np.searchsorted(nodes[0], X[0])
    density = np.exp(family.rowwise(other, X, y)[2])
    assert step * np.bincount(at, weights=density) == pytest.approx(1.0, abs=1e-13)


def test_information_is_close_to_that_of_the_continuous_design(truth, gaussian_truth):
    for (family, theta), design, line in (
        (truth("softmax"), WIDE, moestat.Uniform(-4.0, 4.0)),
        (gaussian_truth("softmax"), MEDIUM, moestat.Uniform(-2.0, 2.0)),
    ):
        lattice = moestat.expected_information(family, theta, design)
        continuous = moestat.expected_information(family, theta, line)
        assert lattice == pytest.approx(continuous, abs=3e-3 * continuous.max())


@pytest.mark.parametrize("rule", ["gauss", "uniform"])
def test_nodes_integrate(rule):
    design = make_design({"law": "lattice", "low": 1, "high": 3, "nodes": 40, "rule": rule})
    nodes, mass = design.quadrature(2)
    assert mass.sum() == pytest.approx(1.0, abs=1e-14)
    assert nodes.shape == (2, 1600)
    assert mass @ nodes[0] ** 2 == pytest.approx(13 / 3, rel=1e-3 if rule == "uniform" else 1e-12)
    drawn = design.draw(500, 2, np.random.default_rng(0))
    assert np.isin(drawn, nodes).all()


def test_many_inputs_have_halton_nodes():
    nodes, mass = moestat.Lattice(0, 1, nodes=200).quadrature(4)
    assert nodes.shape == (4, 200)
    assert np.unique(nodes[0]).size == 200
    assert nodes.mean(axis=1) == pytest.approx(0.5, abs=0.02)
    assert np.all(mass == 1 / 200)


def attention_of(n_experts):
    """A row of sigmoid self-attention: regression functions with quadratic gates."""
    return moestat.family(
        "least-squares",
        gate="sigmoid-quadratic",
        expert={"name": "activation", "activation": "gelu", "weighted": False},
        n_experts=n_experts,
        n_features=2,
    )


@pytest.fixture
def attention():
    """Such a family with two experts, and a truth."""
    family = attention_of(2)
    return family, np.random.default_rng(3).normal(size=family.n_params)


SQUARE = moestat.Lattice(-1.0, 1.0, nodes=8)


def test_nodes_of_a_regression_function_have_the_mean_and_the_variance_of_their_draws(attention):
    family, theta = attention
    nodes, _ = SQUARE.quadrature(2)
    f = family.regression(theta, nodes)[0]
    means, squares = [], []
    for seed in range(400):
        X, y, weight = moestat.sample_weighted(
            family, theta, 6400, rng=seed, design=SQUARE, noise=0.5
        )
        assert weight.sum() == pytest.approx(6400, abs=1e-9)
        at = np.argmin(np.abs(X[:, None, :] - nodes.T).sum(axis=2), axis=1)
        count = np.bincount(at, weights=weight, minlength=64)
        mean = np.bincount(at, weights=weight * y, minlength=64) / count
        means.append(np.sqrt(count / 0.5) * (mean - f))
        within = np.bincount(at, weights=weight * (y - mean[at]) ** 2, minlength=64)
        squares.append((within / 0.5 - (count - 1)) / np.sqrt(2 * (count - 1)))
    assert stats.kstest(np.ravel(means), "norm").pvalue > 1e-3
    assert abs(np.mean(squares)) < 4 / np.sqrt(np.size(squares))
    assert np.var(squares) == pytest.approx(1.0, abs=0.05)


def test_two_responses_per_node_are_all_that_least_squares_sees(attention):
    family, theta = attention
    rng = np.random.default_rng(0)
    X = SQUARE.draw(3000, 2, rng)
    y = family.regression(theta, X)[0] + 0.1 * rng.standard_normal(3000)
    _, at, count = np.unique(X, axis=1, return_inverse=True, return_counts=True)
    at = at.ravel()
    nodes = np.array([X[:, at == j][:, 0] for j in range(count.size)])
    mean = np.bincount(at, weights=y) / count
    spread = np.sqrt(np.bincount(at, weights=(y - mean[at]) ** 2) / count)
    starts = [TruthStarts(family, theta, 1, 0.05)]
    plain = moestat.fit(family, X.T, y, starts=starts, rng=0)
    short = moestat.fit(
        family,
        np.vstack([nodes, nodes]),
        np.concatenate([mean - spread, mean + spread]),
        sample_weight=np.tile(count / 2, 2),
        starts=starts,
        rng=0,
    )
    assert short.certificate.certified
    assert short.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-10)
    assert short.params == pytest.approx(plain.params, abs=1e-4)


def test_least_squares_at_1e14_has_the_error_that_its_degrees_of_freedom_predict(attention):
    family, theta = attention
    errors = []
    for seed in range(6):
        X, y, weight = moestat.sample_weighted(
            family, theta, 1e14, rng=seed, design=SQUARE, noise=0.01
        )
        result = moestat.fit(
            family,
            X,
            y,
            sample_weight=weight,
            starts=[TruthStarts(family, theta, 2, 0.1)],
            rng=seed,
        )
        assert result.certificate.certified
        assert result.residual_variance == pytest.approx(0.01, rel=1e-6)
        error = regression_error(family, result.params, family, theta, SQUARE).value
        errors.append(1e14 * error**2 / 0.01)
    total = stats.chi2(6 * family.n_free_params)
    assert 1e-3 < total.cdf(np.sum(errors)) < 1 - 1e-3


# --- bad input ------------------------------------------------------------------------------------


def test_bad_sizes_are_refused(truth):
    family, theta = truth("sigmoid")
    with pytest.raises(ValueError, match=r"at most 1e\+15 counts.*got 2000000000000000"):
        moestat.sample_weighted(family, theta, 2e15, design=WIDE)
    with pytest.raises(ValueError, match=r"at most 1e\+09 rows.*lattice"):
        moestat.sample(family, theta, 10**10)
    for n in (0, -3, 10.5, float("nan"), "10", True):
        with pytest.raises(ValueError, match=r"n must be"):
            moestat.sample_weighted(family, theta, n, design=WIDE)


def test_bad_lattices_are_refused(truth, gaussian_truth):
    with pytest.raises(ValueError, match=r"step must be above 0 and below 0\.5"):
        moestat.Lattice(0, 1, step=0.7)
    with pytest.raises(ValueError, match=r"nodes must be an integer >= 2"):
        moestat.Lattice(0, 1, nodes=1)
    with pytest.raises(ValueError, match=r"rule must be one of gauss, uniform"):
        moestat.Lattice(0, 1, rule="lobatto")
    with pytest.raises(ValueError, match=r"low must be below high"):
        moestat.Lattice(1, 0)
    family, theta = truth("sigmoid")
    with pytest.raises(ValueError, match=r"8 nodes.*cannot determine 9 free parameters"):
        moestat.sample_weighted(family, theta, 100, design=moestat.Lattice(0, 1, nodes=8))
    with pytest.raises(ValueError, match=r"cannot determine"):
        check_size(moestat.Lattice(0, 1, nodes=8), 100, family)
    family = attention_of(5)
    with pytest.raises(ValueError, match=r"on 16 nodes cannot determine"):
        check_size(moestat.Lattice(0, 1, nodes=4), 100, family)
    family, theta = gaussian_truth("softmax")
    with pytest.raises(ValueError, match=r"nu may be as small as 1e-06.*holds normal densities"):
        check_step(MEDIUM, family, theta, family.with_experts(3))
    theta[family.blocks["nu"]] = np.log([1e-11, 1.0])
    with pytest.raises(ValueError, match=r"points, more than 5,000,000"):
        moestat.sample_weighted(family, theta, 100, design=MEDIUM)


# --- fits -----------------------------------------------------------------------------------------


def test_more_nodes_change_nothing(truth):
    """The same law of Y given X on twice the nodes has the same asymptotic errors."""
    family, theta = truth("softmax")
    errors = []
    for nodes in (64, 128):
        design = moestat.Lattice(-4.0, 4.0, nodes=nodes)
        losses = [
            moestat.voronoi_loss(
                fitted(family, theta, 1e8, design, 2, seed).measure,
                family.measure(theta),
                "softmax-D1",
            )
            for seed in range(20)
        ]
        errors.append(np.log(losses))
    spread = np.sqrt(np.var(errors[0]) / 20 + np.var(errors[1]) / 20)
    assert abs(np.mean(errors[0]) - np.mean(errors[1])) < 4 * spread


@pytest.mark.parametrize("replicates", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_lattice_and_random_designs_agree(replicates, truth, gaussian_truth):
    """Mean losses at n = 1e5 within Monte Carlo error."""
    cases = [
        (truth("softmax"), WIDE, moestat.Uniform(-4.0, 4.0), "softmax-D1"),
        (gaussian_truth("softmax"), MEDIUM, moestat.Uniform(-2.0, 2.0), "gaussian-softmax-D"),
    ]
    n = 100_000 if replicates > 12 else 20_000
    for (family, theta), *designs, loss in cases:
        logs = []
        for design in designs:
            logs.append([])
            for seed in range(replicates):
                X, y, weight = moestat.sample_weighted(family, theta, n, rng=seed, design=design)
                result = moestat.fit(
                    family,
                    X,
                    y,
                    sample_weight=weight,
                    starts=near(family, theta, count=1),
                    rng=seed,
                )
                assert result.certificate.certified
                value = moestat.voronoi_loss(result.measure, family.measure(theta), loss)
                logs[-1].append(np.log(value))
        spread = np.sqrt(sum(np.var(part, ddof=1) for part in logs) / replicates)
        assert abs(np.mean(logs[0]) - np.mean(logs[1])) < 3.5 * spread


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
def test_estimates_at_1e14_have_the_errors_that_the_information_predicts(gate, truth):
    family, theta = truth(gate)
    theta = family.canonical(theta)
    free = np.flatnonzero(family.lower < family.upper)
    information = moestat.expected_information(family, theta, WIDE)[np.ix_(free, free)]
    deviations = []
    for seed in range(8):
        result = fitted(family, theta, 1e14, WIDE, 2, seed)
        assert result.certificate.certified
        error = (family.canonical(result.params) - theta)[free]
        deviations.append(1e14 * error @ information @ error)
    total = stats.chi2(8 * free.size)
    assert 1e-3 < total.cdf(np.sum(deviations)) < 1 - 1e-3


@pytest.mark.parametrize("kind", ["classes", "normal"])
def test_over_specified_likelihood_ratios_stay_bounded_at_1e14(kind, truth, gaussian_truth):
    """Newton goes on where values are rounded to more than what is left to gain."""
    family, theta = truth("sigmoid") if kind == "classes" else gaussian_truth("softmax")
    design = WIDE if kind == "classes" else MEDIUM
    X, y, weight = moestat.sample_weighted(family, theta, 1e14, rng=0, design=design)
    result = moestat.fit(
        family.with_experts(3),
        X,
        y,
        sample_weight=weight,
        starts=near(family, theta, count=5),
        rng=0,
    )
    density = result.family.log_density(result.params, X, y)
    ratio = weight @ (density - family.log_density(theta, X, y))
    assert 0.0 < ratio < 30.0


def test_cost_does_not_grow_with_n(gaussian_truth):
    """Rows at n = 1e14 are a small multiple of those at 1e5, whatever n is."""
    family, theta = gaussian_truth("softmax")
    rows = [
        moestat.sample_weighted(family, theta, n, rng=0, design=MEDIUM)[1].size
        for n in (1e5, 1e14, 1e15)
    ]
    assert rows[1] < 2.5 * rows[0]
    assert rows[2] < 1.1 * rows[1]


# --- derivatives ----------------------------------------------------------------------------------


def test_value_and_score_at_1e14_are_far_below_the_noise(truth):
    mp = pytest.importorskip("mpmath")
    family, theta = truth("sigmoid")
    X, y, weight = moestat.sample_weighted(family, theta, 1e14, rng=0, design=WIDE)
    point = theta + 1e-7
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, weight))
    found = problem.evaluate(Request(Objective.OBSERVED, point))
    with mp.workdps(60):
        exact = _exact_log_likelihood(mp, family, X[:, 0], y, weight)
        packed = [mp.mpf(float(value)) for value in point]
        assert abs(float(mp.mpf(-found.value) - exact(packed))) < 0.05
        step = mp.mpf(10) ** -20
        for j in range(family.n_params):
            moved = [list(packed), list(packed)]
            moved[0][j] += step
            moved[1][j] -= step
            slope = (exact(moved[0]) - exact(moved[1])) / (2 * step)
            # The score's own standard deviation is about 1e6.
            assert abs(float(mp.mpf(-found.gradient[j]) - slope)) < 0.02


def _exact_log_likelihood(mp, family, x, y, weight):
    """The sigmoid gate's log-likelihood of two classes in arbitrary precision."""
    at = family.blocks

    def value(theta):
        total = mp.mpf(0)
        for xx, label, w in zip(x, y, weight, strict=True):
            xx = mp.mpf(float(xx))
            score, joint = mp.mpf(0), mp.mpf(0)
            for i in range(family.n_experts):
                s = theta[at["alpha"][i, 0]] * xx + theta[at["beta"][i]]
                gate = mp.exp(theta[at["gamma"][i]]) / (1 + mp.exp(-s))
                eta = theta[at["a"][i, 0, 0]] * xx + theta[at["b"][i, 0]]
                first = 1 / (1 + mp.exp(-eta))
                score += gate
                joint += gate * (first if label == 1 else 1 - first)
            total += mp.mpf(float(w)) * mp.log(joint / score)
        return total

    return value
