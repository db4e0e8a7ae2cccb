"""Inequalities of Duy et al. (n.d.), evaluated exactly where that is possible, else by search.

Each trial computes the largest excess of the smaller side over the larger one: at most 0, up to
rounding, where the inequality holds.  Constants that the paper leaves open are 1, unless said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from experiments.claims.kinds import InequalityEvidence
from experiments.claims.trial import Trial
from experiments.expert_count import growth, patches, stages
from experiments.expert_count.routing import routing_probabilities, softmax
from moestat.base.types import FloatArray
from moestat.networks import Network, PatchLaw, expert_errors, train
from moestat.networks.expert_count.passes import Passes

__all__ = ["TRIALS"]

_SEED = 20
_DRAWS = 400


def _scores(rng: np.random.Generator) -> FloatArray:
    """Scores of 2 to 8 experts, near each other or far apart."""
    return rng.normal(size=rng.integers(2, 9)) * 10.0 ** rng.uniform(-3, 0.5)


def _search(excess: Callable[[np.random.Generator], float], detail: str) -> InequalityEvidence:
    rng = np.random.default_rng(_SEED)
    return InequalityEvidence(max(float(excess(rng)) for _ in range(_DRAWS)), _DRAWS, detail)


def _between(values: FloatArray) -> FloatArray:
    """Absolute differences of all pairs of entries."""
    first, second = np.triu_indices(len(values), 1)
    return np.abs(values[first] - values[second])


def _lemma_1() -> InequalityEvidence:
    def excess(rng: np.random.Generator) -> float:
        h = _scores(rng)
        other = h + rng.normal(size=len(h)) * 10.0 ** rng.uniform(-4, 0)
        change = np.abs(routing_probabilities(h) - routing_probabilities(other)).max()
        return change - len(h) ** 2 * np.abs(h - other).max()

    return _search(excess, "random pairs of scores of 2 to 8 experts")


def _lemma_25() -> InequalityEvidence:
    def excess(rng: np.random.Generator) -> float:
        h = _scores(rng)
        p = routing_probabilities(h)
        return np.max(_between(p) - len(h) ** 2 * _between(h))

    return _search(excess, "all pairs of experts at random scores")


def _lemma_26() -> InequalityEvidence:
    def excess(rng: np.random.Generator) -> float:
        h = _scores(rng)
        h[0] = h[1:].max() - 1.0 - rng.choice([0.0, rng.exponential()])
        return routing_probabilities(h)[0]

    return _search(excess, "the probability of an expert whose score is lower by 1 or more")


def _lemma_17() -> InequalityEvidence:
    def excess(rng: np.random.Generator) -> float:
        h = _scores(rng)
        other = h + rng.normal(size=len(h)) * 10.0 ** rng.uniform(-4, 0)
        delta = np.abs(h - other).max()
        gates = np.abs(softmax(h) - softmax(other)).max() - delta
        routes = np.abs(routing_probabilities(h) - routing_probabilities(other)).max()
        return max(gates, routes - len(h) ** 2 * delta)

    return _search(excess, "random pairs of scores of 2 to 8 experts")


def _lemma_21() -> InequalityEvidence:
    def excess(rng: np.random.Generator) -> float:
        h = _scores(rng)
        gates = _between(softmax(h)) - 2 * _between(h)
        routes = _between(routing_probabilities(h)) - len(h) ** 2 * _between(h)
        return max(gates.max(), routes.max())

    return _search(excess, "all pairs of experts at random scores")


def _lemma_8() -> InequalityEvidence:
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for seed in range(10):
        data = PatchLaw(n_patches=3 + seed % 4).sample(50, rng)
        network = Network(("mlp", "cnn")[seed % 2], 2 + seed, 3, sigma_0=0.5)
        weights = network.initial(data.law.n_patches, 50, rng)
        weights.router[:] = rng.normal(size=weights.router.shape)
        passes = Passes(network, data, np.float64)
        passes.route(weights.router, (seed, 0))
        _, gradient = passes.loss_and_gradient(weights)
        size = np.abs(gradient.router).max()
        worst = max(worst, np.abs(gradient.router.sum(axis=0)).max() / size)
    return InequalityEvidence(
        float(worst), 10, "sums relative to the largest entry, at random weights"
    )


def _lemma_6() -> InequalityEvidence:
    K, delta, draws = 4, 0.1, 4000
    M = math.ceil(K * math.log(K / delta))
    J = math.ceil(math.log(M / delta))
    rng = np.random.default_rng(_SEED)
    z = np.sort(rng.standard_normal((draws, M, J * K)), axis=2)
    # Units and clusters are exchangeable: which cluster the largest belongs to is uniform.
    clusters = rng.integers(K, size=(draws, M))
    largest, second = z[..., -1], z[..., -2]
    margin = second <= (1 - delta / (3 * M * J**2 * K**2)) * largest
    covered = np.stack([(clusters == k).any(axis=1) for k in range(K)]).all(axis=0)
    good = int((margin.all(axis=1) & (largest >= 0.01).all(axis=1) & covered).sum())
    lower = stats.binomtest(good, draws).proportion_ci(0.95).low
    shares = ", ".join(f"{_coverage(m, K):.2f} at M = {m}" for m in (4, 8, 16))
    detail = f"M = {M}, J = {J}: {good / draws:.3f} of {draws} draws; clusters covered: {shares}"
    return InequalityEvidence(1 - delta - lower, draws, detail)


def _coverage(M: int, K: int) -> float:
    """Probability that M uniform choices of one of K clusters hit every one."""
    return sum((-1) ** k * math.comb(K, k) * (1 - k / K) ** M for k in range(K + 1))


def _errors_by_start(initialisation: str, seed: int) -> tuple[float, float]:
    """Mean error of the experts on the cluster of their start, and on the others, after training.

    At an early step, when the router still sends all examples anywhere.
    """
    rng = np.random.default_rng([_SEED, seed])
    law = PatchLaw(scale=10.0)
    data, test = law.sample(4000, rng), law.sample(4000, rng)
    network = Network("mlp", 16, initialisation=initialisation, sigma_0=1e-3)
    start = network.initial(law.n_patches, law.n_features, np.random.default_rng(seed))
    along_signals = start.experts[:, 0, :, : law.n_clusters].max(axis=1)
    own = np.arange(law.n_clusters)[:, None] == along_signals.argmax(axis=1)
    weights = train(network, data, 100, start=start, rng=seed).weights
    errors = expert_errors(network, weights, test)
    return float(errors[own].mean()), float(errors[~own].mean())


def _lemma_2() -> InequalityEvidence:
    pairs = [(_errors_by_start("equal", s), _errors_by_start("independent", s)) for s in range(3)]
    own, others = np.mean([equal for equal, _ in pairs], axis=0)
    apart = np.mean([independent for _, independent in pairs], axis=0)[0]
    worst = max(max(equal[0] - independent[0], equal[0] - equal[1]) for equal, independent in pairs)
    detail = (
        f"errors {own:.2f} on the own cluster and {others:.2f} on others with equal weights,"
        f" {apart:.2f} on the own cluster with independent ones (M = 16, n = 4000, step 100)"
    )
    return InequalityEvidence(worst, 3, detail)


def _lemma_3() -> InequalityEvidence:
    found = [_errors_by_start("independent", seed) for seed in range(3)]
    smallest = min(min(pair) for pair in found)
    return InequalityEvidence(1 / 8 - smallest, 3, f"smallest mean error {smallest:.2f}")


def _equation_76() -> InequalityEvidence:
    # The weights of (77): the best unit along its own signal, all else 0.
    law, network = PatchLaw(), Network("mlp", 1, 1)
    data = law.sample(500, _SEED)
    mine = data.cluster == 0
    weights = network.initial(law.n_patches, law.n_features, 0)
    weights.experts[:] = 0.0
    weights.experts[0, :, 0, 0] = 1.0
    passes = Passes(network, data, np.float64)
    passes.send(0)
    passes.experts(weights.experts, np.zeros_like(weights.experts))
    margins = (data.label * passes.output)[mine]
    return InequalityEvidence(float(margins.max()), int(mine.sum()), "margins of the own cluster")


_EVALUATED: Mapping[str, tuple[str, Callable[[], InequalityEvidence]]] = {
    "lemma-1": ("|p - p'| <= M^2 |h - h'|, in the largest entry", _lemma_1),
    "lemma-2": (
        "experts err less on the cluster of their start than on others, and than with independent"
        " weights",
        _lemma_2,
    ),
    "lemma-3": ("with independent weights mean errors are at least 1 / (2 K)", _lemma_3),
    "lemma-4": ("sums (8) to (10) lie within B sqrt(2 n log(2 S / delta))", stages.lemma_4),
    "lemma-5": ("norms and inner products of noise patches, by normal tails", stages.lemma_5),
    "lemma-6": ("all three statements hold with probability at least 1 - delta", _lemma_6),
    "lemma-7": ("inner products of initial weights, by normal tails", stages.lemma_7),
    "lemma-8": ("the router's gradients add up to 0", _lemma_8),
    "lemma-9": ("gradients lie within B sqrt(2 log(2 S / delta) / n)", stages.lemma_9),
    "lemma-10": ("six bounds that follow from steps of length eta", stages.lemma_10),
    "lemma-11": ("|P - 1/M| <= M^2 max |h|", stages.lemma_11),
    "lemma-12": (
        "gradients along signals are the main term to within the three parts of its remainder",
        patches.lemma_12,
    ),
    "lemma-13": (
        "y <= 1 / (e^(-eta / x0) (1 / y0 - 1 / x0) - R), R from the remainders of Lemma 12",
        growth.lemma_13,
    ),
    "lemma-14": (
        "eta T^(m) lies between multiples of M^2 sigma_0^0.9 that do not depend on M and sigma_0",
        growth.lemma_14,
    ),
    "lemma-14.only-when": (
        "T^(m) < T_1 at M = sigma_0^-0.1, at sigma_0 = 1e-6 to 1e-12",
        growth.only_when,
    ),
    "lemma-14.alignment": (
        "not all patches have a share above P^(-1/2) of the norm",
        patches.alignment,
    ),
    "lemma-16": ("the chosen expert's gate is at least 1 / (e M)", stages.lemma_16),
    "lemma-17": ("gates change by at most delta, routing by at most M^2 delta", _lemma_17),
    "lemma-19": (
        "both displays, and |f - f'| <= J |z_c|^3 + J (P - 3) max |z_xi|^3",
        patches.lemma_19,
    ),
    "lemma-21": ("|pi - pi'| <= 2 Delta, |p - p'| <= M^2 Delta", _lemma_21),
    "lemma-25": ("|p_m - p_m'| <= M^2 |h_m - h_m'|", _lemma_25),
    "lemma-26": ("p_m = 0 if h_m is below the largest score by 1", _lemma_26),
    "lemma-27": ("y <= 2 (1 + G) / G y_0 until x passes A, eta <= G x_0 / 2", growth.lemma_27),
    "lemma-27.printed": (
        "y G / y_0 exceeds any constant as G tends to 1 and A to x_0",
        growth.lemma_27_printed,
    ),
    "equation-76": ("y f_m <= 0 on the examples of its own cluster", _equation_76),
}
"""What each lemma or equation says, and what evaluates it."""

TRIALS: Mapping[str, Trial[InequalityEvidence]] = {
    place: Trial(f"expert-count {place}", evaluate, text)
    for place, (text, evaluate) in _EVALUATED.items()
}
"""By lemma or equation."""
