"""A tree of softmax gates: probabilities, derivatives, fits and what experts have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import moestat
from moestat.model.constraints import along, averaged
from moestat.model.gates import GATES
from tests import oracle

TREES = [[[0, 1], [2, 3, 4]], [0, [1, 2, 3]], [[3, 1, 0], 2], [[0, 1], 2, [4, 3]]]


def family_of(tree, k=None, d=2, **options):
    gate = {"name": "hierarchical", "tree": tree}
    n = 1 + max(np.hstack([np.ravel(part) for part in tree])) if k is None else k
    return moestat.family("gaussian", gate=gate, n_experts=int(n), n_features=d, **options)


def random_of(family, seed=0):
    noise = np.random.default_rng(seed).normal(size=family.n_params)
    return family.feasible(family.typical(rng=seed) + noise)


def path_products(tree, blocks, X, level=1, weight=1.0):
    """Probability of each expert: that of every child on the way, node by node."""
    if not isinstance(tree, list):
        return {tree: weight}
    some = int(np.ravel(tree[0])[0])
    m, found = len(tree), {}
    names = [f"{level}_{j}" for j in range(1, m)]
    s = [X @ blocks[f"v{name}"][some] + blocks[f"c{name}"][some] for name in names]
    chance = softmax(np.array([*s, np.zeros(len(X))]), axis=0)
    for part, own in zip(tree, chance, strict=True):
        found |= path_products(part, blocks, X, level + 1, weight * own)
    return found


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_probabilities_are_products_along_the_tree(tree):
    family = family_of(tree)
    theta, X = random_of(family), np.random.default_rng(1).normal(size=(50, 2))
    products = path_products(tree, family.unpack(theta), X)
    expected = np.array([products[i] for i in range(family.n_experts)])
    found = moestat.gate_probabilities(family, theta, X)
    assert np.allclose(found, expected.T, rtol=1e-12, atol=1e-15)
    nodes = sum(str(tree).count(word) for word in "[,") - str(tree).count("[")
    assert family.n_free_params == 3 * nodes + 4 * family.n_experts


def test_derivatives_are_those_of_the_reference():
    family = family_of(TREES[0])
    rng, theta = np.random.default_rng(0), random_of(family, 3)
    X, y, one = rng.normal(size=(80, 2)), rng.normal(size=80), np.eye(family.n_params)

    def height(t):
        return oracle.log_density(family, oracle.blocks_of(family, t), X, y)

    assert np.allclose(family.log_density(theta, X, y), height(theta), rtol=1e-12, atol=1e-12)
    slope = [height(theta + 1e-30j * e).imag.sum() / 1e-30 for e in one]
    score = moestat.score(family, theta, X, y)
    assert np.allclose(averaged(score, family.ties), averaged(np.array(slope), family.ties))
    free = family.lower < family.upper
    hessian = along(moestat.hessian(family, theta, X, y), family.ties)
    for move, row in zip(averaged(one, family.ties)[free], hessian[free], strict=True):
        up, down = (moestat.score(family, theta + h * move, X, y) for h in (1e-5, -1e-5))
        bent = averaged((up - down) / 2e-5, family.ties)
        assert np.allclose(row[free], bent[free], rtol=1e-6, atol=1e-4)


@pytest.fixture(scope="module")
def data():
    """Three lines: one on the left, and on the right two, one of them more often."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 600)
    half = rng.random(600) < 1 / (1 + np.exp(2 * x))
    z = np.where(half, 0, 1 + (rng.random(600) < 0.4))
    return x, np.array([1.0, -1.0, 3.0])[z] * x + 0.3 * rng.normal(size=600)


def test_fits_keep_the_tree_and_find_the_halves(data, tmp_path):
    x, y = data
    family = family_of([0, [1, 2]], d=1)
    result = moestat.fit(family, x, y, rng=0)
    assert result.certificate.certified
    assert family.n_free_params == 2 * 2 + 3 * 3
    share = moestat.gate_probabilities(family, result.theta, [-2.0, 2.0])
    assert share[0].max() > 0.95
    b = result.blocks
    assert np.allclose(b["c1"], b["c1"][0], rtol=1e-12, atol=0)
    assert np.array_equal(b["side2"], [-1.0, 0.0, 1.0])
    other = moestat.fit(family, 1e4 + 50 * x, 7 * y, rng=0)
    assert other.llf + 600 * np.log(7) == pytest.approx(result.llf, abs=1e-6)
    result.save(tmp_path / "fit.npz")
    loaded = moestat.load(tmp_path / "fit.npz")
    assert loaded.llf == result.llf
    rows = [row.cells[:2] for row in loaded.summary().rows][:6]
    nodes = ["Gate: expert 1 against experts 2, 3", "Gate: expert 2 against expert 3"]
    assert [row[0] for row in rows if len(row) == 1] == nodes  # and each coefficient once
    assert [row[1] for row in rows if len(row) == 2] == ["c1", "v1", "c2", "v2"]
    assert np.all(np.isfinite(result.get_prediction([0.0]).conf_int()))


def test_two_experts_are_those_of_a_softmax_gate(data):
    x, y = data
    one = moestat.fit("gaussian", x, y, gate="hierarchical", n_experts=2, rng=0)
    other = moestat.fit("gaussian", x, y, gate="softmax", n_experts=2, rng=0)
    assert one.llf == pytest.approx(other.llf, abs=1e-6)
    assert one.df_model == other.df_model


def test_a_shared_expert_beside_routed_ones(data):
    x, y = data
    model = family_of([0, [1, 2]], d=1, fixed={"v1": 0})
    result = moestat.fit(model, x, y, rng=0)
    share = moestat.gate_probabilities(model, result.theta, [-3.0, 0.0, 2.0])
    assert np.ptp(share[:, 0]) < 1e-12
    assert np.ptp(share[:, 1]) > 0.1


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ([[0, 1], [2]], "two or more children"),
        ([[0, 1], [1, 2]], "each once"),
        ([0, "b"], "lists within a list"),
        (3, "lists within a list"),
    ],
)
def test_what_is_no_tree_is_refused(tree, words):
    with pytest.raises(ValueError, match=words):
        GATES["hierarchical"].configure(tree=tree)


def test_more_experts_than_leaves_are_refused():
    with pytest.raises(ValueError, match="4 leaves, fewer than 5 experts"):
        moestat.family("gaussian", gate="hierarchical", n_experts=5)
    with pytest.raises(ValueError, match="has equal coefficients"):
        moestat.family("least-squares", gate="hierarchical", n_experts=4)
