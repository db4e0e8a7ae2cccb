"""Bounds of Duy et al. (n.d.) on the draw of the data and on the two stages, constants written out.

The paper's statements are of an order; here each is the inequality of the short proof, with every
constant, and the largest excess of its smaller side.  Those that hold with probability 1 - delta
are counted over draws: the excess is that of 1 - delta over the lower end of a 95% interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import stats

from experiments.claims.kinds import InequalityEvidence
from experiments.expert_count.routing import routing_probabilities, softmax
from moestat.base.types import FloatArray
from moestat.networks import Network, NormalisedGradientDescent, PatchLaw, Weights, train

__all__ = ["lemma_4", "lemma_5", "lemma_7", "lemma_9", "lemma_10", "lemma_11", "lemma_16"]

_SEED = 21
_DELTA = 0.1
_DRAWS = 200


def _probability(holds: Callable[[np.random.Generator], bool], detail: str) -> InequalityEvidence:
    """How far the probability of an event may lie below 1 - delta."""
    rng = np.random.default_rng(_SEED)
    good = sum(bool(holds(rng)) for _ in range(_DRAWS))
    lower = stats.binomtest(good, _DRAWS).proportion_ci(0.95).low
    return InequalityEvidence(
        1 - _DELTA - lower, _DRAWS, f"{detail}: held in {good} of {_DRAWS} draws"
    )


def lemma_4() -> InequalityEvidence:
    """All sums (8) to (10) lie within B sqrt(2 n log(2 S / delta)) of their means: Hoeffding."""
    law, n = PatchLaw(), 1000
    K = law.n_clusters
    n_sums = K * (4 + 4 * (K - 1))
    wide = math.sqrt(2 * n * math.log(2 * n_sums / _DELTA))
    cube = (law.alpha[1] ** 4 - law.alpha[0] ** 4) / (4 * (law.alpha[1] - law.alpha[0]))

    def holds(rng: np.random.Generator) -> bool:
        data = law.sample(n, rng)
        (a, b, c), y = data.amplitude.T, data.label
        cluster, other, aligned = data.cluster, data.basis[:, 2], data.label * data.amplitude[:, 2]
        worst = 0.0
        for k in range(K):
            own = cluster == k
            worst = max(
                worst,
                abs(np.sum((y * b**3)[own])) / law.beta[1] ** 3,
                abs(np.sum((y * a**3)[own]) - cube * n / K) / law.alpha[1] ** 3,
                abs(np.sum((y * c**3)[own])) / law.gamma[1] ** 3,
                abs(np.sum(b[own]) - np.mean(law.beta) * n / K) / law.beta[1],
            )
            for second in set(range(K)) - {k}:
                for sign in (1, -1):
                    part = own & (other == second) & (np.sign(aligned) == sign)
                    worst = max(
                        worst,
                        abs(np.sum(a[part])) / law.alpha[1],
                        abs(np.sum(c[part])) / law.gamma[1],
                    )
        return worst <= wide

    return _probability(holds, f"K = {K}, n = {n}, {n_sums} sums")


def _noise(rng: np.random.Generator, law: PatchLaw, n: int) -> FloatArray:
    return law.sample(n, rng).noise.reshape(-1, law.n_features)


def _longest(count: int, d: int, delta: float) -> float:
    """Bound on the norms of `count` vectors N(0, I / d) (Laurent and Massart)."""
    x = math.log(count / delta) / d
    return math.sqrt(1 + 2 * math.sqrt(x) + 2 * x)


def lemma_5() -> InequalityEvidence:
    """Norms, and inner products with signals and each other, by the tails of normal laws."""
    law, n = PatchLaw(n_patches=5), 100
    d, count = law.n_features, n * 2
    longest = _longest(count, d, _DELTA / 3)
    signals = math.sqrt(2 * math.log(2 * 2 * law.n_clusters * count * 3 / _DELTA) / d)
    pairs = longest * math.sqrt(2 * math.log(count**2 * 3 / _DELTA) / d)

    def holds(rng: np.random.Generator) -> bool:
        xi = _noise(rng, law, n)
        products = xi @ xi.T
        norms = np.sqrt(np.diag(products))
        np.fill_diagonal(products, 0.0)
        along = np.abs(xi[:, : 2 * law.n_clusters]).max()
        return norms.max() <= longest and along <= signals and np.abs(products).max() <= pairs

    return _probability(holds, f"d = {d}, {count} noise patches")


def lemma_7() -> InequalityEvidence:
    """Inner products of the initial weights, by the tail of the normal law."""
    law, n, network = PatchLaw(n_patches=5), 100, Network(n_experts=8, n_neurons=4)
    d, K, count = law.n_features, law.n_clusters, n * 2
    units = network.n_experts * network.n_neurons
    wide = math.sqrt(2 * math.log(2 * units * (2 * K + count) * 2 / _DELTA))
    bound = network.sigma_0 * _longest(count, d, _DELTA / 2) * wide

    def holds(rng: np.random.Generator) -> bool:
        w = network.initial(law.n_patches, d, rng).experts[:, 0].reshape(units, d)
        vectors = np.concatenate([np.eye(d)[: 2 * K], _noise(rng, law, n)])
        return np.abs(vectors @ w.T).max() <= bound

    return _probability(holds, f"sigma_0 = {network.sigma_0}, {units} units, d = {d}")


def lemma_9() -> InequalityEvidence:
    """Gradients at given weights, over the routing noise: Hoeffding for n independent routes."""
    law, n, network = PatchLaw(), 200, Network(n_experts=4, n_neurons=3, sigma_0=0.3)
    rng = np.random.default_rng(_SEED)
    data = law.sample(n, rng)
    x, y, V = data.dense, data.label, 2 * law.n_clusters
    start = network.initial(law.n_patches, law.n_features, rng)
    theta = 0.3 * rng.standard_normal(start.router.shape)
    z = np.einsum("mpjd,npd->nmpj", start.experts, x)
    f, along = (z**3).sum(axis=(2, 3)), x[:, :, :V]
    h = np.einsum("mpd,npd->nm", theta, x)
    gates = np.array([softmax(row) for row in h])
    routes = np.array([routing_probabilities(row) for row in h])
    # For every sample and route the two gradients' terms, and how large they can be.
    slope = -gates * y[:, None] / (1 + np.exp(y[:, None] * gates * f))
    own = np.einsum("nm,nmpj,npv->nmpjv", slope, 3 * z**2, along)
    push = slope * f
    size = np.abs(along).max()
    bounds = np.abs(own).max(), 2 * np.abs(push).max() * size
    stated = 3 * np.abs(z).max() ** 2 * size, 2 * np.abs(f).max() * size
    wide = math.sqrt(2 * math.log(2 * (own[0].size + theta.shape[0] * along[0].size) / _DELTA) / n)

    def gradients(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        pushed = share * push - gates * (share * push).sum(axis=1, keepdims=True)
        experts = np.einsum("nm,nmpjv->mpjv", share, own) / n
        return experts, np.einsum("nm,npv->mpv", pushed, along) / n

    means = gradients(routes)

    def holds(rng: np.random.Generator) -> bool:
        chosen = (h + rng.random(h.shape)).argmax(axis=1)
        found = gradients(np.eye(network.n_experts)[chosen])
        off = [np.abs(one - mean).max() for one, mean in zip(found, means, strict=True)]
        return all(each <= wide * bound for each, bound in zip(off, bounds, strict=True)) and all(
            bound <= limit for bound, limit in zip(bounds, stated, strict=True)
        )

    return _probability(holds, f"n = {n}, M = {network.n_experts}, given weights")


@cache
def _first_stage() -> tuple[float, float, int]:
    """Largest excess over the bounds of Lemmas 10 and 11 along a run to T1, and its looks."""
    law, eta, eta_r = PatchLaw(), 0.001, 0.1
    network = Network(n_experts=4, n_neurons=4, sigma_0=0.05)
    M, J, P = network.n_experts, network.n_neurons, law.n_patches
    rng = np.random.default_rng(_SEED)
    data = law.sample(400, rng)
    x, y = data.dense, data.label
    start = network.initial(P, law.n_features, rng)
    length = np.linalg.norm(x, axis=2).max()
    first = np.abs(np.einsum("mpjd,npd->nmpj", start.experts, x)).max()
    small: list[float] = []
    even: list[float] = []

    def look(t: int, weights: Weights) -> None:
        inner = np.einsum("mpjd,npd->nmpj", weights.experts, x)
        f = (inner**3).sum(axis=(2, 3))
        h = np.einsum("mpd,npd->nm", weights.router, x)
        gates = np.array([softmax(row) for row in h])
        s = y[:, None] * gates * f
        # Normalised steps: weights move by at most eta t; the router by its gradients' size.
        reach = first + eta * t * length
        answer = J * P * reach**3
        moved = 2 * eta_r * t * answer * length
        score = P * moved * length
        small.append(
            max(
                np.abs(inner).max() - reach,
                np.abs(f).max() - answer,
                np.max(np.abs(1 / 2 - 1 / (1 + np.exp(s))) - np.abs(s) / 4),
                np.linalg.norm(weights.router, axis=2).max() - moved,
                np.abs(h).max() - score,
                np.abs(gates - 1 / M).max() - np.expm1(2 * np.abs(h).max()) / M,
            )
        )
        shares = np.array([routing_probabilities(row) for row in h[:50]])
        even.append(np.abs(shares - 1 / M).max() - M**2 * np.abs(h[:50]).max())

    steps = math.ceil(math.sqrt(network.sigma_0) / eta)
    rule = NormalisedGradientDescent(learning_rate=eta, router_rate=eta_r)
    train(
        network,
        data,
        steps,
        **{"optimiser": rule, "start": start, "rng": rng, "precision": "float64", "look": look},
        look_every=25,
    )
    return float(max(small)), float(max(even)), len(small)


def lemma_10() -> InequalityEvidence:
    """Weights move by eta t <= sigma_0^0.5 in all; outputs, slopes, router and gates follow."""
    excess, _, looks = _first_stage()
    return InequalityEvidence(excess, looks, "all six bounds, along a run to T1")


def lemma_11() -> InequalityEvidence:
    """Routing is within M^2 max |h| of even: Lemma 1 at equal scores."""
    _, excess, looks = _first_stage()
    return InequalityEvidence(excess, looks, "|P - 1/M| <= M^2 max |h|, along a run to T1")


def lemma_16() -> InequalityEvidence:
    """The gate of the chosen expert is at least 1 / (e M): noise makes up for less than 1."""
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for _ in range(400):
        h = rng.normal(size=rng.integers(2, 9)) * 10.0 ** rng.uniform(-3, 1)
        chosen = int((h + rng.random(len(h))).argmax())
        worst = max(worst, 1 / (math.e * len(h)) - softmax(h)[chosen])
    return InequalityEvidence(float(worst), 400, "1 / (e M) against the chosen expert's gate")
