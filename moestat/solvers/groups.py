"""The log-likelihood of groups of rows that share one choice of an expert.

With the gate's log-scores a_i(x_g), the same for all rows of group g, and S_i the sum of d a_i and
of the slopes of the expert's log-densities l_i over these rows,

    log p   = LSE_i(a_i + sum l_i) - LSE_i(a_i)
    score   = sum_i tau_i S_i - sum_i pi_i d a_i
    Hessian = sum_i tau_i sum d2 l_i + sum_i (tau_i - pi_i) d2 a_i + Cov_tau(S) - Cov_pi(d a)

With random effects the log-densities of an expert are those of whole groups, and the sums of their
derivatives over rows those of `moestat.kernels.effects`; of counts and binary responses they are
integrals, `moestat.kernels.quadrature`.

Source: Gruen and Leisch (2008), Sec. 2 (concomitant variables and nested data).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.effects import effects_loop, products_loop
from moestat.kernels.groups import atoms_loop, join_loop
from moestat.kernels.quadrature import idle, intercepts_loop, pairs_loop
from moestat.model.family import Family
from moestat.solvers.rules import WORK

if TYPE_CHECKING:
    from collections.abc import Callable

    from moestat.model.random_effects import RandomEffects
    from moestat.solvers.rows import Rows


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
    moments : ndarray of shape (k, G, 3)
        Of an integral over effects: mean and variance of the last standardised effect given the
        rows of a group, and the log-density of these rows within each expert.
    of_parts : ndarray of shape (k, C, 3)
        Of an integral over two effects: mean and variance of the first one given the rows of a
        group, for each part of a group, and its covariance with the last one.
    """

    prior: FloatArray
    posterior: FloatArray
    log_density: FloatArray
    score: FloatArray
    hessian: FloatArray
    scores: FloatArray = field(repr=False)
    weight: FloatArray = field(repr=False)
    moments: FloatArray = field(repr=False)
    of_parts: FloatArray = field(repr=False)

    @property
    def value(self) -> float:
        """The weighted log-likelihood."""
        return float(self.weight @ self.log_density)

    @property
    def information(self) -> FloatArray:
        """Weighted sum (P, P) of the outer products of the scores."""
        return (self.scores * self.weight[:, None]).T @ self.scores


@np.errstate(over="ignore", invalid="ignore")
def group_sums(
    family: Family, theta: FloatArray, data: Rows, order: int, tau: FloatArray | None = None
) -> GroupSums:
    """Log-likelihood of groups, with score (order 1) and Hessian (order 2).

    Rows come group by group, and a group has the weight of its first row.  Responsibilities tau (k,
    G) may be given in place of those at theta (P,).
    """
    effects = family.likelihood.effects
    base = None if effects is None else effects.base
    integrated = None if base is None else effects
    if integrated is not None and integrated.within is not None:
        data = data.by_parts(integrated.within)
    parts = np.empty(0, np.int64) if integrated is None else parts_of(data, integrated)
    weight, size, chunks = _layout_of(data)
    k, G, P = family.n_experts, weight.size, family.n_params
    loops, coefficients = family.loops, family.coefficients
    sums = GroupSums(
        np.empty((k, G)),
        np.empty((k, G)) if tau is None else tau.copy(),
        np.empty(G),
        np.zeros(P),
        np.zeros((P, P)),
        np.zeros((G if order > 0 else 0, P)),
        weight,
        np.empty((k, 0 if base is None else G, 3)),
        np.empty((k, parts.size, 3)),
    )
    # With an integral over effects the densities belong to groups, not to rows.
    likelihood = loops.likelihood if base is None else idle
    atoms = atoms_loop(loops.gate, loops.expert, likelihood, loops.reads_response)
    join, complete = join_loop(), tau is not None
    phi, rows = np.ones((1 + len(data.X), size)), _rows(family, size)
    curvature = np.zeros((k, *2 * family.places.shape[1:]))
    closed = effects is not None and base is None
    reference = _reference(data) if closed else np.empty(0)
    # Slopes of an integral vary over its nodes.
    n_own = int(family.width[family.first_expert_channel :].sum()) if base is not None else 0
    for groups, chunk, begin in chunks:
        m = chunk.stop - chunk.start
        phi[1:, :m] = data.X[:, chunk]
        n = groups.stop - groups.start
        shares = np.empty((k, n)), sums.posterior[:, groups].copy(), np.empty(n)
        posterior_mean, prior_mean = np.empty((2, n if order > 0 else 0, P))
        spread = np.zeros((k, n if order > 1 else 0, n_own, n_own))
        if effects is None or base is not None:
            atoms(theta, coefficients, data.y[chunk], order, phi, m, rows)
            if integrated is not None:
                first, end = np.searchsorted(parts, [chunk.start, chunk.stop])
                own, own_parts = np.empty((k, n, 3)), np.empty((k, end - first, 3))
                _integrals(integrated)(
                    theta,
                    coefficients,
                    data.y[chunk],
                    order,
                    phi,
                    m,
                    begin,
                    parts[first:end] - chunk.start,
                    rows,
                    own,
                    own_parts,
                    spread,
                )
                sums.moments[:, groups], sums.of_parts[:, first:end] = own, own_parts
            join(
                coefficients,
                begin,
                m,
                weight[groups],
                complete,
                order,
                phi,
                rows,
                shares,
                posterior_mean,
                prior_mean,
                curvature,
            )
        else:
            # The gate's log-scores are those of the first row of each group.
            first = np.ascontiguousarray(phi[:, begin])
            atoms(theta, coefficients, data.y[chunk][begin], order, first, n, rows)
            effects_loop()(
                theta,
                coefficients,
                effects.positions,
                effects.last,
                np.diff(np.append(begin, m)),
                reference,
                _products(data, chunk, begin, phi),
                weight[groups],
                complete,
                order,
                first,
                rows,
                shares,
                posterior_mean,
                prior_mean,
                curvature,
            )
        sums.prior[:, groups], sums.posterior[:, groups], sums.log_density[groups] = shares
        if order > 0:
            sums.scores[groups] = posterior_mean - prior_mean
        if order > 1 and n_own:
            share = weight[groups] * shares[1]
            curvature[:, -n_own:, -n_own:] += np.einsum("kg,kgpq->kpq", share, spread)
        if order > 1:
            by_group = weight[groups, None]
            sums.hessian += (by_group * prior_mean).T @ prior_mean
            if not complete:
                sums.hessian -= (by_group * posterior_mean).T @ posterior_mean
    if order > 0:
        sums.score += weight @ sums.scores
    if order > 1:
        for at, block in zip(family.places, curvature, strict=True):
            sums.hessian[at[:, None], at] += block
    return sums


def _integrals(effects: RandomEffects) -> Callable[..., None]:
    """The loop over groups with one effect, or with two."""
    base = effects.base
    assert base is not None
    if len(effects.features) == 1:
        return intercepts_loop(base.block, 1 + len(base.channels))
    return pairs_loop(base.block, 1 + len(base.channels), base.name == "gaussian")


def parts_of(data: Rows, effects: RandomEffects) -> IntArray:
    """First rows (C,) of the parts of groups that share their first effect."""
    assert data.begin is not None
    if effects.within is None:
        return data.begin
    code = data.X[effects.within]
    changes = np.flatnonzero(code[1:] != code[:-1]) + 1
    return np.union1d(data.begin, changes)


def _reference(data: Rows) -> FloatArray:
    """Coefficients (1 + d,) of the regression of all responses on the inputs.

    Sums of squares of what it leaves lose no digits to the level of the responses.
    """
    if "reference" not in data.memory:
        phi = np.vstack([np.ones(data.size), data.X])
        coefficients = np.linalg.lstsq(phi @ phi.T, phi @ data.y, rcond=None)[0]
        data.memory["reference"] = np.asarray(coefficients, dtype=np.float64)
    return data.memory["reference"]


def _products(data: Rows, rows: slice, begin: IntArray, phi: FloatArray) -> FloatArray:
    """Sums of products of the features phi (1 + d, .) and the responses within groups.

    The memory of the data keeps them if they need no more room than the rows themselves.
    """
    cache, w, m = data.memory.setdefault("products", {}), len(phi), rows.stop - rows.start
    if rows.start in cache:
        return cache[rows.start]
    products = np.empty((begin.size, w * w + w + 1))
    y = data.y[rows] - _reference(data) @ phi[:, :m]
    products_loop()(begin, m, phi, y, products)
    if products.size <= 4 * m * w:
        cache[rows.start] = products
    return products


def _rows(family: Family, size: int) -> tuple[FloatArray, ...]:
    """Working rows (., size) of all atoms: log-score and log-density with their derivatives."""
    n_gate, first, _, _ = family.layout
    n_like, k = len(family.channels) - first, family.n_experts
    counts = (1, n_gate, n_gate * (n_gate + 1) // 2, 1, n_like, n_like * (n_like + 1) // 2)
    return tuple(np.empty((k * count, size)) for count in counts)


def scores_of_groups(family: Family, theta: FloatArray, data: Rows) -> FloatArray:
    """The score of each group, shape (G, P), without weights."""
    return group_sums(family, theta, data, 1).scores


def _layout_of(data: Rows) -> tuple[FloatArray, int, list[tuple[slice, slice, IntArray]]]:
    """Weights of groups, and the most rows in memory at a time.

    Then, for each such part of the data, its groups, its rows and the first one of each group.
    """
    if "groups" not in data.memory:
        begin = data.begin
        assert begin is not None
        edges, chunks, first = np.append(begin, data.size), [], 0
        while first < begin.size:
            last = int(np.searchsorted(edges, edges[first] + WORK.block, side="right")) - 1
            last = min(max(last, first + 1), begin.size)
            rows = slice(int(edges[first]), int(edges[last]))
            chunks.append((slice(first, last), rows, edges[first:last] - edges[first]))
            first = last
        size = max(rows.stop - rows.start for _, rows, _ in chunks)
        data.memory["groups"] = data.weight[begin], size, chunks
    return data.memory["groups"]
