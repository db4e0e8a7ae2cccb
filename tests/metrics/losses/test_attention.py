"""Losses of regression mixtures, from their formulas, and the set of best approximations."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.base.symmetric import unpack_symmetric
from moestat.metrics.losses import LOSSES

LINEAR = {"name": "polynomial", "degree": 1}
RELU = {"name": "activation", "activation": "relu", "weighted": False}
WEIGHTED = {"name": "activation", "activation": "gelu"}


def family_of(gate, expert, k, d=2):
    return moestat.family("least-squares", gate=gate, expert=expert, n_experts=k, n_features=d)


def random_pair(gate, expert, k, true_k, seed, spread=0.3, d=2):
    """An estimate whose atoms scatter around random atoms of a truth, and that truth."""
    rng = np.random.default_rng(seed)
    family = family_of(gate, expert, k, d)
    true_family = family.with_experts(true_k)
    truth = rng.normal(size=true_family.n_params)
    atoms, shared = true_family.split(truth)
    cells = np.concatenate([np.arange(true_k), rng.integers(0, true_k, size=k - true_k)])
    theta = family.join(atoms[cells], shared)
    theta += spread * rng.normal(size=theta.size)
    return family.measure(theta), true_family.measure(truth)


def plain(estimate, truth, partial, kind, r=None):
    """L1, L2r or L3 (L4, L5 when partial), written out with full matrices."""

    def parts(measure):
        m = measure.atoms
        A = unpack_symmetric(m["A"])
        b = np.zeros((len(A), 1)) if partial else m["b"]
        return A, b, m["c"], m["alpha"], m["beta"], m.get("lambda", np.zeros(len(A)))

    fit, true = parts(estimate), parts(truth)
    k, true_k = len(fit[0]), len(true[0])
    distance = np.zeros((k, true_k))
    for i in range(k):
        for j in range(true_k):
            gaps = [fit[q][i] - true[q][j] for q in (0, 1, 3, 4, 5)]
            distance[i, j] = np.sqrt(sum(np.sum(g**2) for g in gaps))
    cells = distance.argmin(axis=1)
    value = 0.0
    for j in range(true_k):
        mine = np.flatnonzero(cells == j)
        over = len(mine) > 1
        power = {"L1": 2.0 if over else 1.0, "L2r": r, "L3": 1.0}[kind]
        if over and kind != "L3":
            sigma = 1 / (1 + np.exp(-fit[2][mine]))
            value += abs(sigma.sum() - 1 / (1 + np.exp(-true[2][j])))
        for i in mine:
            gaps = [np.linalg.norm(fit[q][i] - true[q][j]) for q in (0, 1)]
            if not over or kind == "L3":
                gaps.append(abs(fit[2][i] - true[2][j]))
            eta = [np.atleast_1d(fit[q][i] - true[q][j]) for q in (3, 4, 5)]
            if kind == "L2r":
                gaps += [np.linalg.norm(eta[0]), abs(eta[1][0])]
            else:
                gaps.append(np.linalg.norm(np.concatenate(eta)))
            value += sum(g**power for g in gaps)
    return value


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("loss", "gate", "expert", "kind"),
    [
        ("L1", "sigmoid-quadratic", RELU, "L1"),
        ("L1", "sigmoid-quadratic", WEIGHTED, "L1"),
        ("L2r", "sigmoid-quadratic", LINEAR, "L2r"),
        ("L3", "sigmoid-quadratic", RELU, "L3"),
        ("L4", "sigmoid-partial", WEIGHTED, "L1"),
        ("L5", "sigmoid-partial", LINEAR, "L3"),
    ],
)
def test_losses_follow_their_formulas(loss, gate, expert, kind, seed):
    for spread in (0.1, 1.5):
        estimate, truth = random_pair(gate, expert, 5, 3, seed, spread)
        options = {"r": 3} if kind == "L2r" else {}
        terms = moestat.voronoi_terms(estimate, truth, loss, **options)
        assert terms.value == pytest.approx(
            plain(estimate, truth, gate.endswith("partial"), kind, 3.0), rel=1e-10
        )
        total = terms.mass_errors.sum() + sum(e.sum() for e in terms.block_errors.values())
        assert terms.value == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name.startswith("softmax-L")])
def test_softmax_losses_do_not_see_a_common_translation(loss):
    gate = "softmax-partial" if loss[-1] in "45" else "softmax-quadratic"
    family, rng = family_of(gate, LINEAR, 3), np.random.default_rng(3)
    truth = rng.normal(size=family.n_params)
    moved = truth + 0.05 * rng.normal(size=truth.size)
    shifted, translated = moved.copy(), truth.copy()
    for name in family.gate.translations:
        shift = rng.normal(size=family.blocks[name].shape[1:])
        shifted[family.blocks[name]] += shift
        translated[family.blocks[name]] += shift
    G, own = family.measure(truth), moestat.voronoi_loss
    assert own(family.measure(translated), G, loss) == pytest.approx(0.0, abs=1e-7)
    value = own(family.measure(moved), G, loss)
    assert value > 0.0
    assert own(family.measure(shifted), G, loss) == pytest.approx(value, rel=1e-4)
    with pytest.raises(ValueError, match="was made for"):
        LOSSES[loss].check_gate(family_of("sigmoid-quadratic", LINEAR, 2).gate)


def test_softmax_loss_at_eight_inputs_is_zero_at_a_translated_truth():
    family, rng = family_of("softmax-quadratic", RELU, 8, d=8), np.random.default_rng(0)
    truth = rng.normal(size=family.n_params)
    translated = truth.copy()
    for name in family.gate.translations:
        translated[family.blocks[name]] += rng.normal(size=family.blocks[name].shape[1:])
    own, G = moestat.voronoi_loss, family.measure(truth)
    assert own(family.measure(translated), G, "softmax-L1") == pytest.approx(0.0, abs=1e-6)
    moved = family.measure(translated + 0.1 * rng.normal(size=truth.size))
    assert 0.01 < own(moved, G, "softmax-L1") < np.inf


def test_l1_does_not_see_empty_cells():
    """All atoms on one true atom, masses adding up: a loss of 0 beside three empty cells."""
    family = family_of("sigmoid-quadratic", LINEAR, 3)
    truth = np.random.default_rng(0).normal(size=family.n_params)
    atom = family.split(truth)[0][:1]
    masses = np.array([0.2, 0.3, 0.5]) / (1 + np.exp(-atom[0, 0]))
    theta = family.join(np.repeat(atom, 3, axis=0), np.empty(0))
    theta[family.blocks["c"]] = np.log(masses / (1 - masses))
    terms = moestat.voronoi_terms(family.measure(theta), family.measure(truth), "L1")
    assert terms.value == pytest.approx(0.0, abs=1e-12)
    assert terms.empty_cells == 2
    assert terms.coverage > 1.0


def members(family, theta, rng):
    """Measures of one more atom with the truth's regression function."""
    true_family = family.with_experts(family.n_experts - 1)
    blocks = {name: b.copy() for name, b in true_family.unpack(theta).items()}
    expert = [name for name in ("alpha", "beta", "lambda") if name in blocks]
    extra = {name: rng.normal(size=b.shape[1:]) for name, b in blocks.items()}

    def joined(own, more):
        both = {name: np.concatenate([own[name], more[name][None]]) for name in own}
        order = rng.permutation(family.n_experts)
        return family.pack({name: b[order] for name, b in both.items()})

    linear = family.expert.symmetry.linear_in
    dead = {name: 0 * b if name in (linear or expert) else b for name, b in extra.items()}
    yield "dead", joined(blocks, dead)
    split = {name: b.copy() for name, b in blocks.items()}
    copy = {name: b[1].copy() for name, b in blocks.items()}
    for name in linear or expert:
        copy[name] = extra[name] if linear else 0.3 * split[name][1]
        split[name][1] -= copy[name]
    yield "split", joined(split, copy)
    if set(linear) == set(expert):
        flipped = {name: b.copy() for name, b in blocks.items()}
        more = {name: 0 * b for name, b in extra.items()}
        more["c"] = extra["c"]
        for j in (0, 2):
            for name in flipped:
                flipped[name][j] *= -1
            for name in expert:
                more[name] = more[name] + blocks[name][j] * (1 + np.exp(-extra["c"]))
        yield "flip", joined(flipped, more)
    if not linear:
        gone = {**extra, "beta": -np.abs(extra["alpha"]).sum() - 0.5}
        yield "negative everywhere", joined(blocks, {n: np.asarray(v) for n, v in gone.items()})


@pytest.mark.parametrize("expert", [LINEAR, RELU, WEIGHTED], ids=str)
@pytest.mark.parametrize("gate", ["sigmoid-quadratic", "sigmoid-partial"])
def test_members_of_the_set_are_exact_and_score_zero(gate, expert):
    loss = "dense-L3" if gate == "sigmoid-quadratic" else "dense-L5"
    rng = np.random.default_rng(4)
    family = family_of(gate, expert, 5, d=3)
    true_family = family.with_experts(4)
    theta = rng.normal(size=true_family.n_params)
    truth = true_family.measure(theta)
    X = rng.uniform(-1, 1, size=(200, 3))
    for kind, member in members(family, theta, rng):
        assert np.allclose(family.mean(member, X), true_family.mean(theta, X), atol=1e-12), kind
        terms = moestat.voronoi_terms(family.measure(member), truth, loss)
        assert terms.value == pytest.approx(0.0, abs=1e-9), kind
        assert np.all(terms.cell_sizes == 1)
        noise = 1e-3 * rng.normal(size=member.size)
        near = moestat.voronoi_loss(family.measure(member + noise), truth, loss)
        blocks = family.unpack(noise)
        eta = [blocks[n].reshape(5, -1) for n in ("alpha", "beta", "lambda") if n in blocks]
        gates = [blocks[n].reshape(5, -1) for n in ("A", "b", "c") if n in blocks]
        most = sum(np.linalg.norm(g, axis=1).sum() for g in [*gates, np.hstack(eta)])
        assert 1e-4 < near <= 4 * most, kind
    far = family.measure(rng.normal(size=family.n_params))
    assert moestat.voronoi_loss(far, truth, loss) > 1.0
    # The truth itself, fitted with as many atoms.
    assert moestat.voronoi_loss(truth, truth, loss) == pytest.approx(0.0, abs=1e-12)
    big = family.with_experts(6)
    too_many = big.measure(np.zeros(big.n_params))
    with pytest.raises(ValueError, match="or N\\* \\+ 1 atoms"):
        moestat.voronoi_loss(too_many, truth, loss)
