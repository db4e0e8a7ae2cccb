"""The log-likelihood of groups of rows that share one choice of an expert.

With the gate's log-scores a_i(x_g), the same for all rows of group g, and S_i the sum of d a_i and
of the slopes of the expert's log-densities l_i over these rows,

    log p   = LSE_i(a_i + sum l_i) - LSE_i(a_i)
    score   = sum_i tau_i S_i - sum_i pi_i d a_i
    Hessian = sum_i tau_i sum d2 l_i + sum_i (tau_i - pi_i) d2 a_i + Cov_tau(S) - Cov_pi(d a)

Source: Gruen and Leisch (2008), Sec. 2 (concomitant variables and nested data).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.groups import atom_loop
from moestat.model.family import Family
from moestat.solvers.rules import WORK


@dataclass
class GroupSums:
    """Sums over groups, and what each of them says.

    Parameters
    ----------
    prior, posterior : ndarray of shape (k, G)
        Gate probabilities, and responsibilities given all rows of a group.
    log_density : ndarray of shape (G,)
        Log-density of the responses of each group, or with given responsibilities the complete
        one.
    score, hessian, information : ndarray of shape (P,), (P, P), (P, P)
        Weighted sums, as far as asked for.
    scores : ndarray of shape (G, P)
        Score of each group, without weights.
    """

    prior: FloatArray
    posterior: FloatArray
    log_density: FloatArray
    score: FloatArray
    hessian: FloatArray
    scores: FloatArray = field(repr=False)
    weight: FloatArray = field(repr=False)

    @property
    def value(self) -> float:
        """The weighted log-likelihood."""
        return float(self.weight @ self.log_density)

    @property
    def information(self) -> FloatArray:
        """Weighted sum (P, P) of the outer products of the scores."""
        return (self.scores * self.weight[:, None]).T @ self.scores


def group_sums(
    family: Family, theta: FloatArray, data: Any, order: int, tau: FloatArray | None = None
) -> GroupSums:
    """Log-likelihood of groups, with score (order 1) and Hessian (order 2).

    Parameters
    ----------
    family : Family
        The model, of densities.
    theta : ndarray of shape (P,)
        Packed parameters.
    data : Sample
        Rows, group by group; a group has the weight of its first row.
    order : int
        Highest derivative wanted.
    tau : ndarray of shape (k, G), optional
        Responsibilities, in place of those at theta.
    """
    k, G, P = family.n_experts, data.begin.size, family.n_params
    n_scores = G if order > 0 else 0
    weight = data.weight[data.begin]
    found = GroupSums(
        *(np.empty((k, G)), np.empty((k, G)), np.empty(G)),
        *(np.zeros(P), np.zeros((P, P)), np.zeros((n_scores, P)), weight),
    )
    for groups, rows in _chunks(data.begin, data.size):
        part = _Part(family, theta, data, groups, rows, order)
        own = part.shares(None if tau is None else tau[:, groups])
        found.prior[:, groups], found.posterior[:, groups], found.log_density[groups] = own
        if order > 0:
            part.differentiate(found, groups, tau is not None)
    return found


def scores_of_groups(family: Family, theta: FloatArray, data: Any) -> FloatArray:
    """The score of each group, shape (G, P), without weights."""
    return group_sums(family, theta, data, 1).scores


def _chunks(begin: IntArray, n: int) -> Iterator[tuple[slice, slice]]:
    """Groups of about `WORK.group_rows` rows, with these rows."""
    edges = np.append(begin, n)
    first = 0
    while first < begin.size:
        last = int(np.searchsorted(edges, edges[first] + WORK.group_rows, side="right")) - 1
        last = min(max(last, first + 1), begin.size)
        yield slice(first, last), slice(int(edges[first]), int(edges[last]))
        first = last


class _Part:
    """Some of the groups at theta."""

    def __init__(
        self, family: Family, theta: FloatArray, data: Any, groups: slice, rows: slice, order: int
    ) -> None:
        self.family, self.order = family, order
        self.begin = data.begin[groups] - rows.start
        self.sizes = np.diff(np.append(self.begin, rows.stop - rows.start))
        self.weight = data.weight[rows]
        self.phi = np.vstack([np.ones(self.weight.size), data.X[:, rows]])
        n_gate, first, _, _ = family.layout
        k, n, n_like = family.n_experts, self.weight.size, len(family.channels) - first
        self.a, self.density = np.empty((k, n)), np.empty((k, n))
        self.da, self.dl = np.empty((k, n_gate, n)), np.empty((k, n_like, n))
        self.d2a = np.empty((k, n_gate * (n_gate + 1) // 2, n))
        self.d2l = np.empty((k, n_like * (n_like + 1) // 2, n))
        loops = family.loops
        loop = atom_loop(loops.gate, loops.expert, loops.likelihood, loops.reads_response)
        y = np.ascontiguousarray(data.y[rows])
        for i in range(k):
            eta = np.array([theta[at] @ self.phi[: _size(at)] for at in self.places(i)])
            out = (self.a, self.da, self.d2a, self.density, self.dl, self.d2l)
            loop(eta, family.layout, self.phi, y, order, *(values[i] for values in out))

    def places(self, i: int) -> list[slice]:
        """Where theta has the coefficients of each channel of atom i."""
        family = self.family
        return [
            slice(int(at), int(at + width))
            for at, width in zip(family.index[i], family.width, strict=True)
        ]

    def sums(self, rows: FloatArray) -> FloatArray:
        """Sums (m, G) within groups of values (m, n)."""
        return np.add.reduceat(rows, self.begin, axis=-1)

    def shares(self, tau: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Prior (k, G), posterior (k, G) and log-density (G,)."""
        gate = self.a[:, self.begin]
        joint = gate + self.sums(self.density)
        self.prior, below = _shares(gate)
        if tau is None:
            self.tau, top = _shares(joint)
            return self.prior, self.tau, top - below
        self.tau = tau
        return self.prior, tau, np.sum(tau * joint, axis=0, where=tau > 0.0) - below

    def differentiate(self, found: GroupSums, groups: slice, complete: bool) -> None:
        """Add score and Hessian."""
        family, order = self.family, self.order
        n_gate, first, _, _ = family.layout
        G, k, P = self.begin.size, family.n_experts, family.n_params
        gate, total = np.zeros((G, k, P)), np.zeros((G, k, P))
        phi_first = self.phi[:, self.begin]
        weight = self.weight[self.begin]
        for i in range(k):
            for c, at in enumerate(self.places(i)):
                size = _size(at)
                if c < n_gate:
                    gate[:, i, at] += (self.da[i, c, self.begin] * phi_first[:size]).T
                if c >= first:
                    slopes = self.sums(self.dl[i, c - first] * self.phi[:size])
                    total[:, i, at] += slopes.T
            if order > 1:
                excess = weight * (self.tau[i] - self.prior[i])
                _add_pairs(
                    found.hessian,
                    self.places(i)[:n_gate],
                    self.d2a[i][:, self.begin] * excess,
                    phi_first,
                )
                own = np.repeat(weight * self.tau[i], self.sizes.astype(np.int64))
                _add_pairs(found.hessian, self.places(i)[first:], self.d2l[i] * own, self.phi)
        total += gate
        drawn = _moments(total, self.tau, weight, found.hessian, 0.0 if complete else 1.0, order)
        chosen = _moments(gate, self.prior, weight, found.hessian, -1.0, order)
        found.scores[groups] = drawn - chosen
        found.score += weight @ found.scores[groups]


def _size(at: slice) -> int:
    return int(at.stop - at.start)


def _shares(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities in proportion to ``exp(scores)`` (k, G), and the log of their sum (G,)."""
    top = scores.max(axis=0)
    shares = np.exp(scores - top)
    total = shares.sum(axis=0)
    return shares / total, top + np.log(total)


def _add_pairs(
    hessian: FloatArray, places: list[slice], curvature: FloatArray, phi: FloatArray
) -> None:
    """Add ``sum curvature phi phi'`` of each pair of channels, a packed lower triangle of them."""
    pair = 0
    for c, at in enumerate(places):
        for e in range(c + 1):
            other = places[e]
            block = (phi[: _size(at)] * curvature[pair]) @ phi[: _size(other)].T
            hessian[at, other] += block
            if e < c:
                hessian[other, at] += block.T
            pair += 1


def _moments(
    slopes: FloatArray,
    share: FloatArray,
    weight: FloatArray,
    hessian: FloatArray,
    sign: float,
    order: int,
) -> FloatArray:
    """Mean slopes (G, P) of the shares (k, G); `sign` times their covariance is added."""
    mean = np.einsum("kg,gkp->gp", share, slopes)
    if order > 1 and sign:
        flat = slopes.reshape(-1, slopes.shape[2])
        by_atom = (sign * weight * share).T.reshape(-1, 1)
        hessian += (flat * by_atom).T @ flat - (mean * (sign * weight)[:, None]).T @ mean
    return mean
