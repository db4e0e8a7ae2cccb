"""Multivariate normal experts: responses with means of their own and a covariance matrix.

The variance nu of each response is a parameter, and its responses by themselves are those of
Gaussian experts.  The correlation matrix is ``L L'``, row i of L in proportion to
``(w_i1, ..., w_i,i-1, 1)``: any numbers w make one, and they are 0 where the responses are
independent.  With two responses the correlation is ``w / sqrt(1 + w^2)``.

Covariance matrices of the experts are, in the letters of mclust, VVV (any), EEE (one of all), VVI
and EEI (diagonal), VII and EII (equal variances besides).

Source: Celeux and Govaert (1995), Sec. 2; Scrucca et al. (2016), Table 2; the factor: Pinheiro and
Bates (1996), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import is_sequence, positive_int, short
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.kernels.atom import WORK_ROWS
from moestat.kernels.views import part
from moestat.model.members import Channel, Likelihood, Part
from moestat.model.records import Records, joined
from moestat.model.reference import HALF_LOG_2PI, apart

COVARIANCES = ("VVV", "EEE", "VVI", "EEI", "VII", "EII")
_MOST = 50
"""Responses: an expert of more has over a thousand correlations."""

_FARTHEST = 1e3
"""Bound of w: a response keeps a millionth of its variance, given the others."""


@device
def _place(c, q):
    """Response i of channel c, and the earlier one j that it depends on by w_ij, or -1."""
    if c < 2 * q:
        return c // 2, -1
    i, j = 1, c - 2 * q
    while j >= i:
        j -= i
        i += 1
    return i, j


@cache
def _standardised(before: Callable[..., None] | None, r: int, name: str) -> Callable[..., None]:
    """Fill rows 0, ..., r of z with standardised residuals."""

    @device
    def first(eta, y, m, z):
        values, precision = y[name], exp(-0.5 * eta[1, 0])
        for b in range(m):
            z[0, b] = precision * (values[b] - eta[0, b])

    if before is None:
        return first

    @device
    def more(eta, y, m, z):
        before(eta, y, m, z)
        values, precision = y[name], exp(-0.5 * eta[2 * r + 1, 0])
        for b in range(m):
            z[r, b] = precision * (values[b] - eta[2 * r, b])

    return more


@cache
def _block(q: int) -> Callable[..., None]:
    """The log-density of q responses, of which r has the channels mu_r, ``t_r = log nu_r``.

    With ``s_i^2 = 1 + sum_j w_ij^2`` and ``u_i = s_i (y_i - mu_i) / sqrt(nu_i)`` the innovations
    are ``e_i = u_i - sum_j w_ij e_j``, that is ``e = N u``, and the log-density is
    ``sum_i (log s_i - t_i / 2 - e_i^2 / 2)`` and a constant.  A channel c of response i moves e by
    ``A_c N_i``, column i of N, with ``A = -s_i / sqrt(nu_i)`` for mu_i, ``-u_i / 2`` for t_i and
    ``h_ij u_i - e_j``, ``h_ij = w_ij / s_i^2``, for w_ij.
    """
    residuals: Any = None
    for r in range(q):
        residuals = _standardised(residuals, r, f"r{r}")

    @device
    def block(eta, y, m, order, value, d1, d2, work):
        n = eta.shape[0]
        # Innovations, N' e, how channels move them; s_i^2 and h in one column, N and N' N.
        e, f, A = part(work, 0, q), part(work, q, 2 * q), part(work, 2 * q, 2 * q + n)
        at = 2 * q + n
        u, square = part(work, at, at + q), part(work, at + q, at + 2 * q)
        N = part(work, at + 2 * q, at + 2 * q + q * q)
        P = part(work, at + 2 * q + q * q, at + 2 * q + 2 * q * q)
        residuals(eta, y, m, u)
        top = -q * HALF_LOG_2PI
        for i in range(q):
            w = 2 * q + i * (i - 1) // 2
            s = 1.0
            for j in range(i):
                s += eta[w + j, 0] * eta[w + j, 0]
            square[i, 0] = s
            top += 0.5 * (log(s) - eta[2 * i + 1, 0])
            root = s**0.5
            scale = -root * exp(-0.5 * eta[2 * i + 1, 0])
            for b in range(m):
                u[i, b] *= root
                e[i, b] = u[i, b]
                A[2 * i, b] = scale
                A[2 * i + 1, b] = -0.5 * u[i, b]
            for j in range(i):
                h = eta[w + j, 0] / s
                for b in range(m):
                    A[w + j, b] = h * u[i, b] - e[j, b]
                    e[i, b] -= eta[w + j, 0] * e[j, b]
            for j in range(q):
                known = 1.0 if i == j else 0.0
                for g in range(i):
                    known -= eta[w + g, 0] * N[g * q + j, 0]
                N[i * q + j, 0] = known
        for b in range(m):
            value[b] = top
        for i in range(q):
            for b in range(m):
                value[b] -= 0.5 * e[i, b] * e[i, b]
                f[i, b] = 0.0
            for j in range(q):
                total = 0.0
                for g in range(q):
                    total += N[g * q + i, 0] * N[g * q + j, 0]
                P[i * q + j, 0] = total
            for g in range(i, q):
                for b in range(m):
                    f[i, b] += N[g * q + i, 0] * e[g, b]
        for c in range(n):
            i, j = _place(c, q)
            constant = eta[c, 0] / square[i, 0] if j >= 0 else -0.5 * (c % 2)
            for b in range(m):
                d1[c, b] = constant - f[i, b] * A[c, b]
        if order > 1:
            pair = 0
            for c in range(n):
                k, g = _place(c, q)
                for a in range(c + 1):
                    i, j = _place(a, q)
                    alpha = N[g * q + i, 0] if g >= 0 else 0.0
                    beta = N[j * q + k, 0] if j >= 0 else 0.0
                    gamma = delta = 0.0
                    if i == k and g < 0:
                        alpha += 0.5 * (c % 2)
                    if i == k and g >= 0:
                        h = eta[c, 0] / square[k, 0]
                        if j < 0:
                            alpha -= h
                        else:
                            h *= eta[a, 0] / square[k, 0]
                            bend = 1.0 / square[k, 0] if g == j else 0.0
                            gamma, delta = h - bend, bend - 2.0 * h
                    curve = P[i * q + k, 0]
                    for b in range(m):
                        d2[pair, b] = (
                            delta
                            - curve * A[a, b] * A[c, b]
                            + alpha * f[k, b] * A[a, b]
                            + f[i, b] * (beta * A[c, b] + gamma * u[i, b])
                        )
                    pair += 1

    WORK_ROWS[block] = 4 * q + q * (q + 3) // 2 + 2 * q * q
    return block


def _factor(w: np.ndarray, q: int) -> np.ndarray:
    """Factors L (..., q, q) of correlation matrices, of w (..., pairs), which may be complex."""
    rows = np.zeros((*w.shape[:-1], q, q), dtype=w.dtype)
    rows[..., *np.tril_indices(q, -1)] = w
    rows[..., range(q), range(q)] = 1.0
    return rows / np.sqrt(np.sum(rows**2, axis=-1, keepdims=True))


def _pairs(parts: Sequence[Part]) -> list[str]:
    """Blocks of w, row by row."""
    return [f"w_{two.name}_{one.name}" for i, two in enumerate(parts) for one in parts[:i]]


def covariances(
    parts: Sequence[Part], blocks: Mapping[str, np.ndarray], n_experts: int
) -> np.ndarray:
    """Covariance matrices (k, q, q) of normal responses within each expert."""

    def stacked(names: list[str]) -> np.ndarray:
        columns = [np.broadcast_to(blocks.get(name, 0.0), n_experts) for name in names]
        return np.stack(columns, axis=-1)

    nu = stacked([one.block("nu") for one in parts])
    L = np.sqrt(nu)[..., None] * _factor(stacked(_pairs(parts)), len(parts))
    return L @ np.swapaxes(L, -1, -2)


class _Normal(Records):
    """Records of normal responses that are correlated."""

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> Encoded:
        """Records (n,) with the predictors `eta`, shape (channels, n)."""
        q = len(self.parts)
        y: Encoded = np.empty(eta.shape[1], dtype=self.dtype)
        L = _factor(eta[2 * q :].T, q)
        z = np.einsum("nij,nj->ni", L, rng.standard_normal((eta.shape[1], q)))
        for r, one in enumerate(self.parts):
            y[one.field] = eta[2 * r] + np.exp(0.5 * eta[2 * r + 1]) * z[:, r]
        return y

    def reference(
        self, predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
    ) -> np.ndarray:
        """Log-densities (k, n) of y (n, q), from means (k, q, n) and the blocks."""
        S = covariances(self.parts, blocks, len(predictors))
        r = y.T - predictors
        squares = np.sum(r * np.linalg.solve(S, r), axis=1)
        return -0.5 * (squares + np.log(np.linalg.det(2.0 * np.pi * S))[:, None])

    def typical(self, rng: np.random.Generator, n_experts: int) -> dict[str, ArrayLike]:
        """Blocks of a sensible truth."""
        return super().typical(rng, n_experts) | {
            name: apart(rng, n_experts, (), -1.0, 1.0) for name in _pairs(self.parts)
        }


def member(gaussian: Likelihood) -> Likelihood:
    """The likelihood of two responses that by themselves have the Gaussian one."""

    def make(responses: int | Sequence[str] = 2, covariance: str = "VVV") -> Likelihood:
        """The likelihood of several normal responses, given their number or names."""
        if covariance not in COVARIANCES:
            raise ValueError(
                f"multivariate-gaussian: covariance must be one of {', '.join(COVARIANCES)}; got"
                f" {short(covariance)}"
            )
        names = _names(responses)
        parts = tuple(Part(name, r, gaussian, 1) for r, name in enumerate(names))
        options = {"responses": names, "covariance": covariance}
        return replace(_law(parts, covariance), options=options, configure=make)

    return make()


def _names(responses: int | Sequence[str]) -> list[str]:
    """Names of responses, checked, from these or their number."""
    names = list(responses) if is_sequence(responses) else []
    if not names:
        count = positive_int("multivariate-gaussian: responses", responses, 2, _MOST)
        names = [f"y{r + 1}" for r in range(count)]
    words = all(isinstance(name, str) for name in names)
    if not (words and 2 <= len(set(names)) == len(names) <= _MOST):
        raise ValueError(
            f"multivariate-gaussian: responses must be 2 to {_MOST} different names, or their"
            f" number; got {short(responses)}"
        )
    joint = {f"{one}_{two}" for one, two in permutations(names, 2)}
    if len(joint) < len(names) * (len(names) - 1):
        raise ValueError(
            "multivariate-gaussian: responses have names that make one when joined by '_', such as"
            f" 'a', 'b_c', 'a_b' and 'c'; got {short(responses)}"
        )
    return names


def _law(parts: tuple[Part, ...], covariance: str) -> Likelihood:
    """The likelihood of responses with covariances of a kind."""
    independent, records = joined(parts), _Normal(parts)
    w = [] if covariance.endswith("I") else _pairs(parts)
    shared = covariance.startswith("E")
    law = replace(
        independent,
        name="multivariate-gaussian",
        channels=tuple(
            replace(channel, shared=shared)
            for channel in (*independent.channels, *(Channel(name) for name in w))
        ),
        tied=tuple(one.block("nu") for one in parts) if covariance.endswith("II") else (),
        source="Celeux and Govaert (1995), Sec. 2",
    )
    if not w:
        return law
    return replace(
        law,
        block=_block(len(parts)),
        reference=records.reference,
        draw=records.draw,
        typical=records.typical,
        shapes=tuple(w),
        bounds={**law.bounds, **dict.fromkeys(w, (-_FARTHEST, _FARTHEST))},
        pairs={
            one.block("nu"): tuple(f"w_{one.name}_{other.name}" for other in parts[:r])
            for r, one in enumerate(parts)
        },
    )
