"""Normal experts with random effects of groups of rows.

The rows of a group have, within expert i, the distribution ``N(X b_i, Z D_i Z' + nu_i I)``: each
group has effects ``u ~ N(0, D_i)`` of its own, by which its intercept and its slopes differ from
those of the expert.  ``D_i = L_i L_i'`` with a triangular factor L_i.  Column j of ``Z L_i`` is a
predictor that is linear in the inputs, as a mean is, so that it keeps its meaning in other units of
the data: slopes come first among the effects, the intercept is the last one, and a shift of the
inputs moves each column of L_i within itself.

A row by itself has the distribution ``N(x' b_i, z' D_i z + nu_i)``; rows of a group are joined by
`moestat.kernels.effects`, those of nested groups by `moestat.kernels.quadrature`.

Source: Laird and Ware (1982), Sec. 2; mixtures: Verbeke and Lesaffre (1996), Proust-Lima,
Philipps and Liquet (2017), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import is_sequence, short
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.members import Channel, Likelihood, RandomEffects, Units
from moestat.model.reference import HALF_LOG_2PI

__all__ = [
    "COVARIANCES",
    "RandomEffects",
    "channels_of",
    "draw_of_groups",
    "factors",
    "has_shifts",
    "options_of",
    "read_effects",
    "with_random_effects",
]

COVARIANCES = ("free", "diagonal")
"""Covariance matrices of the effects: any, or without correlations."""

_MOST = 8
"""Effects: a covariance matrix of more has over 36 entries in each expert."""

_INTERCEPT, _SLOPE = "l", "L"
"""Blocks of the factor: coefficients of 1 and of the inputs."""


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


def read_effects(
    name: str, random: Any, covariance: Any, within: Any, most: int = _MOST
) -> RandomEffects:
    """The effects of some inputs, from 0, and of "1", with a covariance matrix of a kind.

    With an input `within` they are an intercept of each group and one of each of its parts.
    """
    if covariance not in COVARIANCES:
        raise ValueError(
            f"{name}: covariance must be one of {', '.join(COVARIANCES)}; got {short(covariance)}"
        )
    given: Sequence[Any] = list(random) if is_sequence(random) else []
    numbers = [f for f in given if f != "1"]
    valid = all(isinstance(f, (int, np.integer)) and not isinstance(f, bool) for f in numbers)
    if not given or not valid or min([0, *numbers]) < 0 or len(set(given)) < len(given):
        raise ValueError(
            f'{name}: random must hold "1" for an intercept and positions of inputs, from 0, each'
            f" once; got {short(random)}"
        )
    if len(given) > most:
        raise ValueError(f"{name}: at most {most} random effects, got {len(given)}")
    if within is not None:
        if given != ["1"]:
            raise ValueError(
                f"{name}: nested groups, such as (1 | school/class), have random intercepts and"
                f" no random slopes; got {short(random)}"
            )
        if not isinstance(within, (int, np.integer)) or isinstance(within, bool) or within < 0:
            raise ValueError(
                f"{name}: within must be the position, from 0, of the input that has the parts of"
                f" the groups; got {short(within)}"
            )
        return RandomEffects((0, 0), diagonal=True, within=int(within))
    features = (*sorted(int(f) + 1 for f in numbers), *([0] if "1" in given else []))
    return RandomEffects(features, covariance == "diagonal")


def channels_of(effects: RandomEffects, response: bool) -> tuple[Channel, ...]:
    """The columns of the factor, in units of the `response` or of a predictor."""
    return tuple(
        Channel(_INTERCEPT, _SLOPE, component=j, response=response, reads=effects.column(j))
        for j in range(len(effects.features))
    )


def options_of(effects: RandomEffects, covariance: object) -> dict[str, Any]:
    """The options of a likelihood that have these effects."""
    if effects.within is not None:
        return {"random": ["1"], "covariance": covariance, "within": effects.within}
    inputs = ["1"] * (0 in effects.features) + [f - 1 for f in effects.features if f]
    return {"random": inputs, "covariance": covariance}


def has_shifts(effects: RandomEffects) -> bool:
    """Whether a shift of the inputs stays in the family.

    Without a free entry of 1 in each column it leads out of the family.
    """
    return not any(effects.features) or (0 in effects.features and not effects.diagonal)


def with_random_effects(
    gaussian: Likelihood, random: Any, covariance: Any, within: Any = None
) -> Likelihood:
    """The Gaussian likelihood with random effects of some inputs, from 0, and of "1"."""
    effects = read_effects("gaussian", random, covariance, within)
    if effects.within is not None:
        effects = replace(effects, base=gaussian)
    return replace(
        gaussian,
        block=block,
        channels=(*gaussian.channels, *channels_of(effects, True)),
        reference=None,
        spread=spread,
        draw=draw,
        bounds={**gaussian.bounds, _INTERCEPT: (-1e3, 1e3), _SLOPE: (-1e3, 1e3)},
        units=Units(shift_inputs=has_shifts(effects), powers={"nu": 2.0, _INTERCEPT: 1.0}),
        options=options_of(effects, covariance),
        effects=effects,
        source="Laird and Ware (1982), Sec. 2",
    )
