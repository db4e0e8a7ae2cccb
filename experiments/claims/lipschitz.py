"""Densities of the papers are Lipschitz in their parameters, with constants written out, or not.

Behind the covering and bracketing numbers of Pham et al. (2026), Lemma 2, of Nguyen et al. (2025),
Lemma K.2, and of Yan et al. (2025), eq. (14): a grid of mesh eps on a bounded set of p parameters
has of order eps^-p points.  Under a top-K gate a grid need not be a cover: Pham et al. (2024),
Lemma B.2.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from experiments.claims.kinds import InequalityEvidence
from experiments.claims.trial import Trial
from moestat.base.types import FloatArray
from moestat.model.axes import family
from moestat.model.family import Family

__all__ = [
    "ATTENTION_EQUATION_14",
    "ATTENTION_OPPOSITE_NEURONS",
    "COMPETE_LEMMA_K_2",
    "COMPETE_V1_NO_COVER",
    "COMPETE_V1_SWITCHES",
    "MLMOE_LEMMA_2",
]

_SEED = 22
_DRAWS = 200
_REACH = 2.0
"""Inputs lie within this of 0."""
_NARROW = 0.1
"""Smallest variance."""


def _classes() -> InequalityEvidence:
    """sum_s |p - p'| <= max_i of the change of a gate's logarithm, plus that of an expert's."""
    fitted = family("multinomial", gate="sigmoid", n_experts=3, n_classes=3)
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for _ in range(_DRAWS):
        first, second, x = _near(fitted, rng)
        moved = {name: np.abs(first[name] - second[name]) for name in first}
        gate = np.max(moved["gamma"] + _REACH * moved["alpha"][:, 0] + moved["beta"])
        expert = np.max(_REACH * moved["a"][:, 0] + moved["b"])
        p = [fitted.probabilities(fitted.pack(each), x) for each in (first, second)]
        worst = max(worst, np.abs(p[0] - p[1]).sum(axis=1).max() - gate - expert)
    return InequalityEvidence(float(worst), _DRAWS, "random pairs, k = 3, three classes")


def _lines() -> InequalityEvidence:
    """|p - p'| is at most the change of weights over sqrt(2 pi nu) plus that of the normals."""
    fitted = family("gaussian", gate="competition-free", n_experts=3)
    rng, worst = np.random.default_rng(_SEED), -math.inf
    peak = 1 / math.sqrt(2 * math.pi * _NARROW)
    for _ in range(_DRAWS):
        first, second, x = _near(fitted, rng)
        y = rng.normal(scale=3.0, size=x.size)
        moved = {name: np.abs(first[name] - second[name]) for name in first}
        answer = _REACH * moved["a"][:, 0] + moved["b"]
        weights = np.max(moved["c"] + answer) * peak
        normals = math.exp(-0.5) * answer / math.sqrt(_NARROW) + moved["nu"] / (2 * _NARROW)
        p = [np.exp(fitted.log_density(fitted.pack(each), x, y)) for each in (first, second)]
        worst = max(worst, np.abs(p[0] - p[1]).max() - weights - peak * np.max(normals))
    return InequalityEvidence(float(worst), _DRAWS, "random pairs, N = 3, lines, masses free")


def _near(fitted: Family, rng: np.random.Generator) -> tuple[dict, dict, np.ndarray]:
    """Two measures, near each other or far apart, and inputs."""
    blocks = fitted.unpack(rng.normal(size=fitted.n_params))
    step, size = fitted.unpack(rng.normal(size=fitted.n_params)), 10.0 ** rng.uniform(-4, 0)
    other = {name: value + size * step[name] for name, value in blocks.items()}
    for each in (blocks, other):
        if "nu" in each:
            each["nu"] = _NARROW + np.abs(each["nu"])
    return blocks, other, rng.uniform(-_REACH, _REACH, 50)


def _regressions() -> InequalityEvidence:
    """|f - f'| <= sum_i (|ds_i| |E_i| / 4 + |dE_i|), lines under sigmoid gates."""
    expert = {"name": "polynomial", "degree": 1}
    fitted = family("least-squares", gate="sigmoid-quadratic", expert=expert, n_experts=3)
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for _ in range(_DRAWS):
        first, second, x = _near(fitted, rng)
        moved = {name: np.abs(np.ravel(first[name] - second[name])) for name in first}
        score = _REACH**2 * moved["A"] + _REACH * moved["b"] + moved["c"]
        largest = _REACH * np.abs(np.ravel(first["alpha"])) + np.abs(first["beta"])
        bound = np.sum(0.25 * score * largest + _REACH * moved["alpha"] + moved["beta"])
        f = [fitted.mean(fitted.pack(each), x) for each in (first, second)]
        worst = max(worst, np.abs(f[0] - f[1]).max() - bound)
    return InequalityEvidence(float(worst), _DRAWS, "random pairs, N = 3, lines, sigmoid gates")


_APART = 0.16
"""Least L1 distance between two members of the class of `_no_cover`."""


def _no_cover() -> InequalityEvidence:
    """Members of one class of top-1 densities, every two at least 0.16 apart in L1.

    Experts g = 2 + u + W x^2 1(x > 0) + W^3 sin(x / W) are differentiable in (u, W), with a
    bounded derivative; the members have u = 0, W = 1 / (2^k pi) and variance .1 beside u = W = 0
    and variance .4, so that for x < 0 the sign of sin(2^k pi x) says which of them answers.
    """
    x = np.linspace(-1.0, 1.0, 4096, endpoint=False) + 1.0 / 4096
    y = np.linspace(-2.0, 6.0, 401)

    def normal(mean: FloatArray, variance: float) -> FloatArray:
        root = np.sqrt(2.0 * np.pi * variance)
        return np.exp(-((y - mean[:, None]) ** 2) / (2 * variance)) / root

    def member(width: float) -> FloatArray:
        answer = 2.0 + width * x**2 * (x > 0.0) + width**3 * np.sin(x / width)
        first = (np.abs(answer) >= 2.0)[:, None]
        return np.where(first, normal(answer, 0.1), normal(np.full_like(x, 2.0), 0.4))

    members = [member(1.0 / (np.pi * 2.0**k)) for k in range(1, 9)]
    pairs = [(p, q) for i, p in enumerate(members) for q in members[:i]]
    distances = [np.abs(p - q).sum(axis=1).mean() * (y[1] - y[0]) for p, q in pairs]
    detail = f"least L1 distance {min(distances):.3f} of {len(pairs)} pairs, W = 1 / (2^k pi)"
    return InequalityEvidence(float(_APART - min(distances)), len(pairs), detail)


def _switches() -> InequalityEvidence:
    """Changes of the best of k lines by |a x + b| on the inputs are at most k (k - 1)."""
    rng, worst = np.random.default_rng(_SEED), -math.inf
    x = np.linspace(-_REACH, _REACH, 20_001)
    for _ in range(_DRAWS):
        k = int(rng.integers(2, 6))
        a, b = rng.normal(size=(2, k)) * 10.0 ** rng.uniform(-2, 1, size=(2, k))
        best = np.argmax(np.abs(np.outer(x, a) + b), axis=1)
        worst = max(worst, float(np.sum(np.diff(best) != 0) - k * (k - 1)))
    return InequalityEvidence(worst, _DRAWS, "changes of the winner of 2 to 5 random lines")


_INDEPENDENT = 1e-9
"""Least singular value of functions of norm 1 from which on they count as independent: that of
dependent ones is rounding, 1e-15."""


def _opposite_neurons() -> InequalityEvidence:
    """Derivatives of a truth, and sigma(q), sigma'(q) times powers of x, are independent.

    Behind the fact opposite-neurons: then near two experts 0 under the gate q the distance of the
    functions is of the order of |h| + |s| + |q_1 - q_2| |u| + |u|^2 (short_proofs.md).
    """
    rng, least = np.random.default_rng(_SEED), math.inf
    nodes, mass = np.polynomial.legendre.leggauss(200)
    x, root = _REACH * nodes, np.sqrt(mass / 2.0)
    for _ in range(_DRAWS):
        A, b, c, alpha, beta = rng.uniform(0.5, 1.5, 5) * rng.choice([-1.0, 1.0], 5)
        q = np.polyval(rng.uniform(0.5, 1.5, 3) * rng.choice([-1.0, 1.0], 3), x)
        s, z = A * x**2 + b * x + c, alpha * x + beta
        gate, weight = 1.0 / (1.0 + np.exp(-s)), 1.0 / (1.0 + np.exp(-q))
        slope, flank = gate * (1.0 - gate), weight * (1.0 - weight)
        unit = z * norm.cdf(z)
        steep = norm.cdf(z) + z * norm.pdf(z)
        rows = [slope * unit * x**k for k in range(3)] + [gate * steep * x**k for k in range(2)]
        rows += [weight * x**k for k in range(3)] + [flank * x**k for k in range(4)]
        functions = np.array(rows) * root
        functions /= np.linalg.norm(functions, axis=1, keepdims=True)
        least = min(least, float(np.linalg.svd(functions, compute_uv=False)[-1]))
    detail = f"least singular value {least:.1e} of twelve functions at random truths and gates"
    return InequalityEvidence(_INDEPENDENT - least, _DRAWS, detail)


ATTENTION_OPPOSITE_NEURONS = Trial("attention opposite-neurons", _opposite_neurons)
MLMOE_LEMMA_2 = Trial("mlmoe lemma-2", _classes)
ATTENTION_EQUATION_14 = Trial("attention equation-14", _regressions)
COMPETE_LEMMA_K_2 = Trial("compete lemma-k.2", _lines)
COMPETE_V1_NO_COVER = Trial("compete-v1 no-cover", _no_cover)
COMPETE_V1_SWITCHES = Trial("compete-v1 switches", _switches)
