"""Lemmas 12, 14 and 19 of Duy et al. (n.d.): gradients and outputs, patch by patch."""

from __future__ import annotations

import math

import numpy as np

from experiments.claims.kinds import InequalityEvidence
from experiments.expert_count.routing import routing_probabilities, softmax
from moestat.networks import Network, NormalisedGradientDescent, PatchLaw, train

__all__ = ["alignment", "lemma_12", "lemma_19"]

_SEED = 24
_DELTA = 0.1


def lemma_12() -> InequalityEvidence:
    """Mean gradients along signals, less the main term, against the parts of the remainder.

    At random small weights and scores, over the routing noise: a relative error of gates, routes
    and slopes, and the noise patches, at the sample's own means; and these means by themselves.
    """
    rng, worst, count = np.random.default_rng(_SEED), -math.inf, 0
    law, n = PatchLaw(n_patches=5), 400
    K, P = law.n_clusters, law.n_patches
    cube = (law.alpha[1] ** 4 - law.alpha[0] ** 4) / (4 * (law.alpha[1] - law.alpha[0]))
    for _ in range(20):
        data = law.sample(n, rng)
        x, y = data.dense, data.label
        noise = np.zeros_like(x)
        rows = np.arange(n)[:, None]
        noise[rows, data.noise_position] = data.noise
        network = Network(n_experts=4, n_neurons=3, sigma_0=10.0 ** rng.uniform(-3, -1))
        M = network.n_experts
        w = network.initial(P, law.n_features, rng).experts
        theta = network.sigma_0**1.5 * rng.standard_normal((M, P, law.n_features))
        z = np.einsum("mpjd,npd->nmpj", w, x)
        f = (z**3).sum(axis=(2, 3))
        h = np.einsum("mpd,npd->nm", theta, x)
        gates = np.array([softmax(row) for row in h])
        routes = np.array([routing_probabilities(row) for row in h])
        slope = -1.0 / (1.0 + np.exp(y[:, None] * gates * f))
        found = np.einsum("nm,n,nmpj,npk->mpjk", routes * gates * slope, y, 3 * z**2, x[:, :, :K])
        found /= n
        # Own patches add alpha^3, confounded ones y e gamma^3, at the sample's own means.
        signed = y[:, None, None] * (x[:, :, :K] - noise[:, :, :K]) ** 3
        main = -3.0 * signed.mean(axis=0)[None, :, None] * w[..., :K] ** 2 / (2.0 * M * M)
        # Relative error of route, gate and slope against 1/M, 1/M and -1/2, by Lemmas 10 and 11.
        score = np.abs(h).max()
        route, gate = M**3 * score, math.expm1(2.0 * score)
        error = (1 + route) * (1 + gate) * (1 + np.abs(gates * f).max() / 2) - 1
        size = np.einsum("nmpj,npk->mpjk", 3 * z**2, np.abs(x[:, :, :K])) / n
        through = np.einsum(
            "nmpj,npk->mpjk",
            3 * z**2 * (np.abs(noise).sum(2) > 0)[:, None, :, None],
            np.abs(noise[:, :, :K]),
        )
        bound = (error * size + through / n) / (2.0 * M * M)
        worst = max(worst, float((np.abs(found - main) / bound).max()) - 1.0)
        count += found.size
    # The means themselves, of a larger sample: E[alpha^3] / (K P), and Hoeffding for K P sums.
    large = law.sample(20_000, rng)
    signed = large.label[:, None, None] * large.dense[:, :, :K] ** 3
    off = np.abs(signed.mean(axis=0) - cube / (K * P)).max()
    most = law.alpha[1] ** 3 + law.gamma[1] ** 3
    wide = most * math.sqrt(2.0 * math.log(2 * K * P / _DELTA) / large.size)
    worst = max(worst, float(off) / wide - 1.0)
    return InequalityEvidence(worst, count, "error over its bound, less 1, along signals")


def alignment() -> InequalityEvidence:
    """Shares of one unit's patches in the norm, along its signal, late in the first stage."""
    law = PatchLaw()
    network = Network(n_experts=4, n_neurons=4, sigma_0=0.05)
    eta = network.sigma_0 / 20.0
    data = law.sample(4000, _SEED)
    rule = NormalisedGradientDescent(learning_rate=eta, router_rate=0.0)
    start = network.initial(law.n_patches, law.n_features, _SEED)
    steps = math.ceil(math.sqrt(network.sigma_0) / eta)
    shared = {"optimiser": rule, "rng": _SEED, "precision": "float64"}
    before = train(network, data, steps, start=start, **shared).weights
    after = train(network, data, 1, start=before, **shared).weights
    moved = (after.experts - before.experts)[..., : law.n_clusters] / eta
    along = before.experts[..., : law.n_clusters].max(axis=1)
    told, excess = [], -math.inf
    for m in range(network.n_experts):
        j, k = np.unravel_index(along[m].argmax(), along[m].shape)
        share = moved[m, :, j, k]
        told.append(f"{share.min():.2f} to {share.max():.2f}")
        # Shares of a norm: their squares add up to 1 at most, so that not all exceed P^(-1/2).
        length = float(np.linalg.norm(share))
        excess = max(excess, length - 1.0, float(share.min()) - law.n_patches**-0.5)
        # As repaired: the vector of shares has nearly the norm's length, and their sum is no less.
        least = 1.0 - network.sigma_0**0.2
        excess = max(excess, least - length, least - float(share.sum()))
    detail = f"shares of P = {law.n_patches} patches in the step of four experts: {', '.join(told)}"
    return InequalityEvidence(excess, network.n_experts, detail)


def lemma_19() -> InequalityEvidence:
    """Outputs as sums of cubes, and what the patches of c and of noise add at most."""
    rng, worst = np.random.default_rng(_SEED), -math.inf
    law, n = PatchLaw(n_patches=6), 200
    data = law.sample(n, rng)
    x, y = data.dense, data.label
    network = Network(n_experts=4, n_neurons=3, sigma_0=0.3)
    w = network.initial(law.n_patches, law.n_features, rng).experts
    w = w + 0.2 * rng.standard_normal(w.shape)
    z = np.einsum("mpjd,npd->nmpj", w, x)
    f = (z**3).sum(axis=(2, 3))
    rows, (first, centre, second) = np.arange(n), data.position.T
    own, other = data.basis[:, 0], data.basis[:, 2]
    amplitude = np.abs(data.amplitude)
    sign = np.sign(y * data.amplitude[:, 2])
    labels = (w[:, first, :, own] ** 3).sum(axis=-1) * amplitude[:, 0, None] ** 3
    confounded = (w[:, second, :, other] ** 3).sum(axis=-1) * amplitude[:, 2, None] ** 3
    seen = y[:, None] * (z[rows, :, first] ** 3 + z[rows, :, second] ** 3).sum(axis=-1)
    worst = float(np.abs(seen - labels - sign[:, None] * confounded).max()) - 1e-9
    rest = np.abs(f - y[:, None] * seen)
    J, P = network.n_neurons, law.n_patches
    noisy = np.abs(z[rows[:, None], :, data.noise_position]).max(axis=(1, 3))
    limit = J * np.abs(z[rows, :, centre]).max(axis=2) ** 3 + J * (P - 3) * noisy**3
    worst = max(worst, float((rest - limit).max()))
    return InequalityEvidence(worst, n * network.n_experts, "displays, and the bound on the rest")
