"""Normal experts with random effects of groups of rows.

The rows of a group have, within expert i, the distribution ``N(X b_i, Z D_i Z' + nu_i I)``: each
group has effects ``u ~ N(0, D_i)`` of its own, by which its intercept and its slopes differ from
those of the expert.  ``D_i = L_i L_i'`` with a triangular factor L_i.  Column j of ``Z L_i`` is a
predictor that is linear in the inputs, as a mean is, so that it keeps its meaning in other units of
the data: slopes come first among the effects, the intercept is the last one, and a shift of the
inputs moves each column of L_i within itself.

A row by itself has the distribution ``N(x' b_i, z' D_i z + nu_i)``; rows of a group are joined by
`moestat.kernels.effects`.

Source: Laird and Ware (1982), Sec. 2; mixtures: Verbeke and Lesaffre (1996), Proust-Lima,
Philipps and Liquet (2017), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import is_sequence, short
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.members import Channel, Likelihood, Units
from moestat.model.reference import HALF_LOG_2PI

__all__ = ["COVARIANCES", "RandomEffects", "draw_of_groups", "factors", "with_random_effects"]

COVARIANCES = ("free", "diagonal")
"""Covariance matrices of the effects: any, or without correlations."""

_MOST = 8
"""Effects: a covariance matrix of more has over 36 entries in each expert."""

_INTERCEPT, _SLOPE = "l", "L"
"""Blocks of the factor: coefficients of 1 and of the inputs."""


@dataclass(frozen=True)
class RandomEffects:
    """The random effects of groups: an intercept, and slopes of some inputs."""

    features: tuple[int, ...]  # positions in phi = (1, x): those of inputs first, then 0 for 1
    diagonal: bool = False
    # the likelihood given the effects, where their integral has no closed form
    base: Likelihood | None = None

    @property
    def positions(self) -> IntArray:
        """The features (q,) as an array."""
        return np.array(self.features, dtype=np.int64)

    @property
    def last(self) -> IntArray:
        """Positions (q,) after the last entry of each column of the Cholesky factor."""
        q = len(self.features)
        return np.arange(1, q + 1) if self.diagonal else np.full(q, q)

    def column(self, j: int) -> tuple[int, ...]:
        """Features with an entry in column j."""
        return self.features[j : int(self.last[j])]


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density of one row by itself; predictors are (mu, t, lambda_1, ...), ``t = log nu``.

    With ``v = nu + sum lambda_j^2``, ``r = y - mu`` and the slope ``A = (r^2 / v - 1) / (2 v)``
    in v, whose own derivative is ``A' = (1 / 2 - r^2 / v) / v^2``.
    """
    n, nu = eta.shape[0], exp(eta[1, 0])
    for b in range(m):
        v = nu
        for c in range(2, n):
            v += eta[c, b] * eta[c, b]
        r = y[b] - eta[0, b]
        slope = r / v
        value[b] = -HALF_LOG_2PI - 0.5 * (log(v) + slope * r)
        if order > 0:
            A = 0.5 * (slope * slope - 1.0 / v)
            d1[0, b] = slope
            d1[1, b] = A * nu
            for c in range(2, n):
                d1[c, b] = 2.0 * A * eta[c, b]
            if order > 1:
                bend = (0.5 / v - slope * slope) / v
                d2[0, b] = -1.0 / v
                for c in range(1, n):
                    slope_c = nu if c == 1 else 2.0 * eta[c, b]
                    pair = c * (c + 1) // 2
                    d2[pair, b] = -slope / v * slope_c
                    for g in range(1, c + 1):
                        slope_g = nu if g == 1 else 2.0 * eta[g, b]
                        d2[pair + g, b] = bend * slope_c * slope_g
                    d2[pair + c, b] += A * nu if c == 1 else 2.0 * A


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of a row by itself, from predictors (..., 2 + q, n)."""
    variance = np.exp(eta[..., 1, :]) + np.sum(eta[..., 2:, :] ** 2, axis=-2)
    return eta[..., 0, :], np.sqrt(variance)


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Responses of rows by themselves with the predictors `eta`, shape (2 + q, n)."""
    mean, deviation = spread(eta)
    return mean + deviation * rng.standard_normal(eta.shape[1])


def draw_of_groups(eta: FloatArray, owner: IntArray, rng: np.random.Generator) -> FloatArray:
    """Responses (n,) of rows with predictors (2 + q, n), effects drawn once for each group."""
    z = rng.standard_normal((int(owner[-1]) + 1, len(eta) - 2))[owner]
    noise = np.exp(0.5 * eta[1]) * rng.standard_normal(owner.size)
    return eta[0] + np.sum(eta[2:].T * z, axis=1) + noise


def factors(effects: RandomEffects, theta: FloatArray, index: IntArray) -> FloatArray:
    """Factors L (k, q, q) of the covariance matrices, from packed parameters.

    `index` (k, q) has the position of the first coefficient of each column.
    """
    k, q = index.shape
    L = np.zeros((k, q, q))
    for j in range(q):
        for f in range(j, int(effects.last[j])):
            L[:, f, j] = theta[index[:, j] + effects.features[f]]
    return L


def with_random_effects(gaussian: Likelihood, random: Any, covariance: Any) -> Likelihood:
    """The Gaussian likelihood with random effects of some inputs, from 0, and of "1"."""
    if covariance not in COVARIANCES:
        raise ValueError(
            f"gaussian: covariance must be one of {', '.join(COVARIANCES)}; got {short(covariance)}"
        )
    given: Sequence[Any] = list(random) if is_sequence(random) else []
    numbers = [f for f in given if f != "1"]
    valid = all(isinstance(f, (int, np.integer)) and not isinstance(f, bool) for f in numbers)
    if not given or not valid or min([0, *numbers]) < 0 or len(set(given)) < len(given):
        raise ValueError(
            'gaussian: random must hold "1" for an intercept and positions of inputs, from 0, each'
            f" once; got {short(random)}"
        )
    if len(given) > _MOST:
        raise ValueError(f"gaussian: at most {_MOST} random effects, got {len(given)}")
    has_one = "1" in given
    features = (*sorted(int(f) + 1 for f in numbers), *([0] if has_one else []))
    effects = RandomEffects(features, covariance == "diagonal")
    channels = tuple(
        Channel(_INTERCEPT, _SLOPE, component=j, response=True, reads=effects.column(j))
        for j in range(len(features))
    )
    inputs = ["1"] * has_one + [f - 1 for f in features if f]
    # Without a free entry of 1 in each column a shift of the inputs leads out of the family.
    shifts = not numbers or (has_one and not effects.diagonal)
    return replace(
        gaussian,
        block=block,
        channels=(*gaussian.channels, *channels),
        reference=None,
        spread=spread,
        draw=draw,
        bounds={**gaussian.bounds, _INTERCEPT: (-1e3, 1e3), _SLOPE: (-1e3, 1e3)},
        units=Units(shift_inputs=shifts, powers={"nu": 2.0, _INTERCEPT: 1.0}),
        options={"random": inputs, "covariance": covariance},
        effects=effects,
        source="Laird and Ware (1982), Sec. 2",
    )
