"""Lemmas 13, 14 and 27 of Duy et al. (n.d.): growth of inner products under normalised steps."""

from __future__ import annotations

import math

import numpy as np

from experiments.claims.kinds import InequalityEvidence

__all__ = ["lemma_13", "lemma_14", "lemma_27", "lemma_27_printed", "only_when"]

_SEED = 23
_J, _K, _P = 4, 4, 4
_C = 3.0 / (2.0 * _K * _P)
"""The factor of z^2 / M^2 in Lemma 12's main term, with E[alpha^3] = 1."""
_SHARE = 0.02
"""Steps are taken together as long as the largest product changes by less than this share."""


def _first_signal(M: float, sigma: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """The time eta T^(m), and its bounds by the proof, along one path of the main term."""
    z = sigma * rng.standard_normal((_J, _K))
    while z.max() <= 0.01 * sigma:  # Lemma 6's event
        z = sigma * rng.standard_normal((_J, _K))
    first, level, moved = z.copy(), M * M * sigma**1.8, 0.0
    while True:
        g = _C * z**2 / (M * M)
        size = math.sqrt(_P) * float(np.linalg.norm(g))
        if size >= level:
            break
        step = _SHARE * float(np.abs(z).max())
        z, moved = z + step * g / size, moved + step
    root = math.sqrt(_P * _J * _K)
    # The gradient is at least C P^(1/2) z^2 / M^2 and at most that times (J K)^(1/2).
    far = M * M * sigma**0.9 / math.sqrt(_C * math.sqrt(_P))
    near = far / (_J * _K) ** 0.25
    slow = float(np.abs(first).max())
    return moved, near - slow, root * (far + _J * _K * slow)


def _paths(
    exponents: tuple[float, ...], sigmas: tuple[float, ...]
) -> list[tuple[float, float, float, float]]:
    """The sigma and what `_first_signal` finds, for ten starts at each M = sigma^-a."""
    rng = np.random.default_rng(_SEED)
    return [
        (sigma, *_first_signal(sigma**-a, sigma, rng))
        for sigma in sigmas
        for a in exponents
        for _ in range(10)
    ]


def lemma_14() -> InequalityEvidence:
    """The exact order of the first signal, from both sides."""
    paths = _paths((0.0, 0.05, 0.1, 0.15), (1e-6, 1e-9, 1e-12))
    # A step that is taken together with others may pass the level by its own length.
    excess = [max(low - time, time - (1 + _SHARE) * high) / time for _, time, low, high in paths]
    factors = [time / high for _, time, _, high in paths]
    detail = f"eta T^(m) is {min(factors):.2g} to {max(factors):.2g} of its upper bound"
    return InequalityEvidence(float(max(excess)), len(paths), detail)


def lemma_13() -> InequalityEvidence:
    """All products but the best stay below what the start's margin allows, at steps up to x_0."""
    rng, worst, grown = np.random.default_rng(_SEED), -math.inf, 0.0
    for sigma, power in ((1e-6, 0.05), (1e-9, 0.05), (1e-12, 0.05), (1e-12, 0.075)):
        M = sigma**-power
        for _ in range(10):
            z = np.sort(sigma * np.abs(rng.standard_normal(_J * _K)))
            while z[-1] / z[-2] - 1.0 < 1.0 / (3.0 * M * (_J * _K) ** 2):
                z = np.sort(sigma * np.abs(rng.standard_normal(_J * _K)))
            x0, eta = float(z[-1]), float(z[-1]) * rng.uniform(0.1, 1.0)
            # Lemma 12: relative errors sigma_0^1.5, and sigma_0^2.5 beside the main term.
            off = M * M / (3.0 * sigma**2) * sigma**2.5
            bound = 1.0 / (
                math.exp(-eta / x0) * (1 / z[-2] - 1 / x0) - 2.0 * off * (1 + eta / x0) / x0
            )
            while z[-1] < sigma**0.5:
                push = z**2 * (1.0 + sigma**1.5 * rng.uniform(-1, 1, z.size))
                push += sigma**2 * off * rng.uniform(-1, 1, z.size)
                # Longer steps where the products are large: they are then nearly continuous.
                step = max(eta, _SHARE * float(z[-1]))
                z = z + step * push / (math.sqrt(_P) * float(np.linalg.norm(push)))
            worst = max(worst, float(z[:-1].max()) / bound - 1.0)
            grown = max(grown, float(z[:-1].max()) / sigma)
    detail = f"other products grow to {grown:.2g} sigma_0 at most, the best to sigma_0^0.5"
    return InequalityEvidence(worst, 40, detail)


def only_when() -> InequalityEvidence:
    """At M = sigma_0^-0.1, beyond sigma_0^-0.075, experts find their signal before T_1."""
    paths = _paths((0.1,), (1e-6, 1e-8, 1e-10, 1e-12))
    shares = [time / sigma**0.5 for sigma, time, _, _ in paths]
    detail = f"T^(m) / T_1 falls to {min(shares):.2g}; largest {max(shares):.2g}"
    return InequalityEvidence(float(max(shares)) - 1.0, len(paths), detail)


def _grown(
    S: float, x: float, y: float, A: float, eta: float, factors: np.random.Generator
) -> float:
    """The value of y when x passes A, after steps of random length up to eta."""
    for _ in range(100_000):
        if x >= A:
            return y
        step = factors.uniform(0.2, 1.0) / math.hypot(x**2, S * y**2)
        x, y = x + eta * step * x**2, y + S * eta * step * y**2
    return math.inf


def lemma_27() -> InequalityEvidence:
    """The constant of the proof, at random sequences."""
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for _ in range(200):
        S, G = np.exp(rng.uniform(-2, 3)), np.exp(rng.uniform(-4, 1))
        x0 = np.exp(rng.uniform(-9, -3))
        y0 = x0 / (S * (1 + G))
        A, eta = x0 * np.exp(rng.uniform(0.01, 3)), G * x0 / 2 * np.exp(rng.uniform(-2, 0))
        bound = 2 * (1 + G) / G
        worst = max(worst, _grown(S, x0, y0, A, eta, rng) / y0 / bound - 1.0)
    return InequalityEvidence(float(worst), 200, "y over its bound, less 1, at random sequences")


def lemma_27_printed() -> InequalityEvidence:
    """One step that the printed condition allows: y G / y_0 grows like 1 / h."""
    ratios: list[float] = []
    excess = -math.inf
    for h in (1e-1, 1e-2, 1e-3, 1e-4):
        S, G, x = 1.0, 1.0 - h, 1e-6
        y = x / (S * (1 + G))
        A = x * (1 + h)
        eta = G**2 * min(x / math.log(A / x), y / math.log(1 / G))
        C = 0.9 / x**2
        dx, dy = eta * C * x**2, S * eta * C * y**2
        ratios.append((y + dy) * G / y)
        # The step is no longer than eta, passes A, and the ratio is of order 1 / h at least.
        excess = max(excess, math.hypot(dx, dy) / eta - 1.0, A / (x + dx) - 1.0)
        excess = max(excess, 0.1 / h - ratios[-1])
    shown = ", ".join(f"{ratio:.3g}" for ratio in ratios)
    return InequalityEvidence(float(excess), len(ratios), f"y_T G / y_0 = {shown}")
