"""Student-t experts: ``y = mu + sqrt(nu) T`` with a t variable T of so many degrees of freedom.

The square nu of the scale and the degrees of freedom are parameters of each expert, whose
logarithms are the coefficients that solvers see; degrees of freedom may be given instead,
``{"name": "student-t", "dof": 4}``, or be common to all experts, ``equal="dof"``.

Source: Lange, Little and Taylor (1989), Sec. 2; mixtures of t regressions: Peel and McLachlan
(2000), Sec. 4.
"""

from __future__ import annotations

import math

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.base.validate import real_in
from moestat.compiler.jit import device
from moestat.compiler.math import exp, gamma_excess, log1p_positive
from moestat.model.members import Channel, Likelihood, Units
from moestat.model.reference import apart, log_gamma
from moestat.model.responses import draws, real, variances

_CONSTANT = 0.5 + 0.5 * math.log(2.0 * math.pi)
_DOF = (1.0, 1000.0)


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (mu, t, g), ``t = log nu`` and ``g = log dof`` for all.

    With f the degrees of freedom, ``r = y - mu``, ``q = r^2 / (f nu)``, ``L = log(1 + q)``,
    ``w = (f + 1) / (f (1 + q))``, ``v = (1 - w) / (1 + q)`` and c(f) the logarithm of what makes
    the integral 1 it is ``c - t / 2 - (f + 1) L / 2``; ``d_mu = w r / nu``,
    ``d_t = (w f q - 1) / 2``, ``d_g = f c' + f (w q - L) / 2``,
    ``d_mu_mu = w (q - 1) / ((1 + q) nu)``, ``d_mu_t = -w r / (nu (1 + q))``,
    ``d_t_t = -w f q / (2 (1 + q))``, ``d_mu_g = v r / nu``, ``d_t_g = v f q / 2`` and
    ``d_g_g = d_g + f^2 c'' + f q ((2 - w) / (1 + q) - w) / 2``.
    """
    precision, f = exp(-eta[1, 0]), exp(eta[2, 0])
    # c in x = f / 2, with log Gamma and its derivatives less the terms that cancel.
    x, h = 0.5 * f, exp(-eta[2, 0])
    excess, slope, curve = gamma_excess(x)
    more, steeper, sharper = gamma_excess(x + 0.5)
    growth = log1p_positive(h)
    top = x * growth + (more - excess) - _CONSTANT - 0.5 * eta[1, 0]
    first = x * (growth - h + (steeper - slope))
    second = x * x * (sharper - curve) + 0.5 * h / (1.0 + h)
    for b in range(m):
        r = y[b] - eta[0, b]
        scaled = precision * r
        c = scaled * r
        q = c / f
        less = 1.0 / (1.0 + q)
        level = log1p_positive(q)
        w = (1.0 + h) * less
        value[b] = top - 0.5 * (f + 1.0) * level
        d1[0, b] = w * scaled
        d1[1, b] = 0.5 * (w * c - 1.0)
        d1[2, b] = first + 0.5 * (w * c - f * level)
        if order > 1:
            v = (1.0 - w) * less
            d2[0, b] = w * precision * (q - 1.0) * less
            d2[1, b] = -w * scaled * less
            d2[2, b] = -0.5 * w * c * less
            d2[3, b] = v * scaled
            d2[4, b] = 0.5 * v * c
            d2[5, b] = d1[2, b] + second + 0.5 * c * ((2.0 - w) * less - w)


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Location and scale of the response, from predictors (..., 3, n)."""
    return eta[..., 0, :], np.exp(0.5 * eta[..., 1, :])


def moments(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation ``sqrt(nu dof / (dof - 2))`` of the response.

    The standard deviation is infinite with 2 degrees of freedom or fewer.
    """
    location, scale = spread(eta)
    excess = np.exp(eta[..., 2, :]) - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(excess > 0.0, 1.0 + 2.0 / excess, np.inf)
    return location, scale * np.sqrt(factor)


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 3, n)."""
    from scipy.stats import t

    location, scale = spread(eta)
    return t(np.exp(eta[..., 2, :]), location, scale)


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from locations (k, n), squared scales and dof."""
    nu, f = blocks["nu"][:, None], np.reshape(blocks["dof"], (-1, 1))
    constant = log_gamma((f + 1) / 2) - log_gamma(f / 2) - 0.5 * np.log(f * np.pi * nu)
    return constant - 0.5 * (f + 1) * np.log(1 + (y - predictors) ** 2 / (f * nu))


def make(dof: float | None = None) -> Likelihood:
    """The likelihood with known degrees of freedom, or with unknown ones."""
    known = () if dof is None else (real_in("student-t: dof", dof, 0.0, 1e6, open_low=True),)
    return Likelihood(
        name="student-t",
        channels=(
            Channel("nu", log=True, response=True),
            Channel("dof", log=True, shared=bool(known)),
        ),
        block=block,
        reference=reference,
        typical=lambda rng, n_experts: {
            **variances(rng, n_experts),
            "dof": known[0] if known else apart(rng, n_experts, (), 3.0, 9.0),
        },
        encode=real,
        draw=draws(law),
        spread=spread,
        moments=moments,
        law=law,
        shapes=("dof",),
        bounds={"nu": (1e-6, 1e6), "dof": (known[0], known[0]) if known else _DOF},
        source="Lange, Little and Taylor (1989), Sec. 2",
        units=Units(powers={"nu": 2.0}),
        collapse="nu",
        limits={} if known else {"dof": ("", "gaussian")},
        options={"dof": float(known[0])} if known else {},
        configure=make,
    )


LIKELIHOOD = make()
