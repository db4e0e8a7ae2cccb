"""Quadrature over the response at each input, for one or several conditional densities.

Classes and counts are summed.  A continuous response is integrated by Gauss-Legendre rules on
panels that are at most a few standard deviations of the narrowest atom there wide, so that atoms
far apart or of very different widths cost no more than their number; a response that is not normal
is so on the scale of its logarithm, its logit or, with tails of powers, of asinh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.types import Encoded, FloatArray, IntArray
from moestat.model.family import Family

ORDER = 12
"""Gauss-Legendre nodes per panel."""
NODES, _MASSES = np.polynomial.legendre.leggauss(ORDER)
"""The nodes (q,) on [-1, 1]; their weights."""

_REACH = 8.9  # standard deviations about each mean; a normal variable leaves them once in 1e18
_PANEL = 3.0  # standard deviations per panel of the coarsest rule; six make just over two reaches
_TAIL = 1e-18  # probability beyond the ends, of counts and of positive responses
_ROWS = 65_536  # rows per chunk: a few of these vectors fit into the second cache level


@dataclass(frozen=True)
class ResponseRule:
    """Nodes and weights over the response at several inputs, panel by panel."""

    owner: IntArray  # (m,): input that each panel belongs to, ascending
    # (m, q): nodes of each panel as encoded responses, of censored ones as known responses; all
    # classes where the response is discrete.
    y: FloatArray | IntArray
    weight: FloatArray  # (m, q): their weights; 1 for classes
    summed: bool = False  # whether the nodes are all counts or classes, whose values are summed

    def per_input(self, values: FloatArray, n: int) -> FloatArray:
        """Integral over the response at each of n inputs, shape (n,), of values (m, q)."""
        return self.per_owner(np.einsum("mq,mq->m", self.weight, values), n)

    def per_owner(self, integrals: FloatArray, n: int) -> FloatArray:
        """Sum over the panels of each of n inputs, shape (n,), of their integrals (m,)."""
        return np.bincount(self.owner, weights=integrals, minlength=n).astype(np.float64)


def response_rules(
    laws: Sequence[tuple[Family, FloatArray]], X: FloatArray, refinement: int = 1
) -> Iterator[tuple[slice, ResponseRule]]:
    """Rules that integrate over the response under each of the distributions, by chunks of inputs.

    Inputs are (d, n); `owner` of a rule counts from the first of its chunk.  `refinement` is a
    factor by which the panels are narrowed.

    Notes
    -----
    The rule covers 8.9 standard deviations about the mean of every atom of every distribution: less
    than 1e-18 of any mass is cut off.  A panel is at most ``3 / refinement`` standard deviations
    wide, of the narrowest atom that it meets, and carries 12 nodes; a gap between atoms is one
    panel. The rule depends on the atoms but not on their gate, and at most ``6 refinement + 2``
    panels are due to each atom, whatever their standard deviations are.  Normal densities are
    integrated to 1e-14 by the coarsest rule; their roots and quotients have singularities off the
    real line, near which they are small, and need the factor 2 for 1e-9.
    """
    family = laws[0][0]
    if family.likelihood.support is not None:
        yield from _sums(family, X)
        return
    if family.likelihood.parts:
        raise ValueError(
            f"{len(family.likelihood.parts)} responses: distances and expected information are"
            " integrals over one response; errors can be those of cov_type='observed' or 'HC0'"
        )
    spread = family.likelihood.spread
    assert spread is not None  # a response without classes has one
    pairs = [spread(other.predictors(theta, X)) for other, theta in laws]
    mean = np.concatenate([pair[0] for pair in pairs])
    deviation = np.concatenate([pair[1] for pair in pairs])
    width = _PANEL / refinement
    law_at = family.likelihood.law
    if law_at is None:
        yield from _panels(mean - _REACH * deviation, mean + _REACH * deviation, width * deviation)
        return
    frozen = [law_at(other.predictors(theta, X)) for other, theta in laws]
    if family.likelihood.counts:
        ends = [_ends(law, *pair) for law, pair in zip(frozen, pairs, strict=True)]
        low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
        rules = _counts(low.min(axis=0), high.max(axis=0))
        if family.likelihood.dtype is not np.complex128 or family.likelihood.is_censored:
            yield from rules
            return
        trials = np.broadcast_to(frozen[0].support()[1], pairs[0][0].shape)[0]
        for chunk, rule in rules:
            yield chunk, replace(rule, y=rule.y + 1j * trials[chunk][rule.owner, None])
        return
    low = np.concatenate([_tail_end(law.cdf, family, rises=True) for law in frozen])
    high = np.concatenate([_tail_end(law.sf, family, rises=False) for law in frozen])
    to, back, slope = _scale(family.likelihood.ends, mean, deviation)
    # Of a small deviation it is that on the new scale, where a distribution may have tails as long
    # as the deviation is large, but no features narrower than 1.
    steps = width * np.minimum(deviation * slope, 1.0)
    for chunk, rule in _panels(to(low), to(high), steps):
        y, weight = back(rule.y, chunk, rule.owner)
        yield chunk, replace(rule, y=y, weight=rule.weight * weight)


@np.errstate(all="ignore")  # distributions take the logarithm of 0 at their ends
def _tail_end(tail: Callable[..., FloatArray], family: Family, *, rises: bool) -> FloatArray:
    """The response beyond which a tail has probability `_TAIL`, by bisection.

    Inverses of distribution functions fail there, or return a guess.
    """
    first, last = family.likelihood.ends
    above = np.full(np.shape(tail(_on_scale(np.zeros(()), first, last))), 700.0)
    below = middle = -above
    while np.max(above - below) > 1e-3:
        middle = 0.5 * (below + above)
        value = tail(_on_scale(middle, first, last))
        inside = value < _TAIL if rises else value > _TAIL
        below, above = np.where(inside, middle, below), np.where(inside, above, middle)
    return _on_scale(middle, first, last)


def _on_scale(u: FloatArray, first: float, last: float) -> FloatArray:
    """Responses between two ends for numbers on a scale where tails fall exponentially."""
    if first == -np.inf:
        return np.sinh(u)
    return np.exp(u) if last == np.inf else 1.0 / (1.0 + np.exp(-u))


def _scale(
    ends: tuple[float, float], mean: FloatArray, deviation: FloatArray
) -> tuple[Callable[..., FloatArray], Callable[..., tuple[FloatArray, FloatArray]], FloatArray]:
    """A scale u on which tails fall exponentially: to it, back with ``dy / du``, ``du / dy``.

    It is the logarithm of positive responses and the logit of those in (0, 1); real ones, with
    their powers as tails, have ``u = asinh((y - m) / s)``.
    """
    tiny = np.finfo(float).tiny
    if ends[0] == -np.inf:
        m, s = mean.mean(axis=0), deviation.min(axis=0)

        def from_sinh(
            u: FloatArray, chunk: slice, owner: IntArray
        ) -> tuple[FloatArray, FloatArray]:
            unit = s[chunk][owner, None]
            return m[chunk][owner, None] + unit * np.sinh(u), unit * np.cosh(u)

        # Half the slope: the poles of a density with tails of powers are near the real line.
        return lambda y: np.arcsinh((y - m) / s), from_sinh, 0.5 / np.hypot(s, mean - m)
    if ends[1] == np.inf:

        def from_log(u: FloatArray, chunk: slice, owner: IntArray) -> tuple[FloatArray, FloatArray]:
            return np.exp(u), np.exp(u)

        return lambda y: np.log(np.maximum(y, tiny)), from_log, 1.0 / mean

    def from_logit(u: FloatArray, chunk: slice, owner: IntArray) -> tuple[FloatArray, FloatArray]:
        y = 1.0 / (1.0 + np.exp(-u))
        return y, y / (1.0 + np.exp(u))

    def logit(y: FloatArray) -> FloatArray:
        inside = np.clip(y, tiny, 1.0 - 0.5 * np.finfo(float).eps)
        return np.log(inside) - np.log1p(-inside)

    return logit, from_logit, 1.0 / (mean * (1.0 - mean))


def log_densities(
    family: Family, theta: FloatArray, X: FloatArray, rule: ResponseRule
) -> FloatArray:
    """``log p(y | x)`` at every node (m, q) of a rule that is for inputs X (d, n)."""
    inputs = np.repeat(X[:, rule.owner], rule.y.shape[1], axis=1)
    return family.rowwise(theta, inputs, known_responses(family, rule))[2].reshape(rule.y.shape)


def known_responses(family: Family, rule: ResponseRule) -> Encoded:
    """Nodes (m q,) over the response as the family encodes them: two equal bounds, if it has any.

    A family of censored responses by itself says nothing of how they are censored, and families
    that share a rule may encode responses in different ways.
    """
    y = rule.y.ravel()
    return y * (1.0 + 1.0j) if family.likelihood.is_censored else y


def _chunks(n: int, n_rows: int) -> Iterator[slice]:
    """Slices of n inputs, each with about `_ROWS` rows where one input has at most `n_rows`."""
    size = max(1, _ROWS // n_rows)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _sums(family: Family, X: FloatArray) -> Iterator[tuple[slice, ResponseRule]]:
    """Rules for class responses: every class is a node with weight 1."""
    assert family.likelihood.support is not None
    classes = family.likelihood.support(family.n_classes)
    for chunk in _chunks(X.shape[1], classes.size):
        n = chunk.stop - chunk.start
        y = np.tile(classes, (n, 1))
        yield chunk, ResponseRule(np.arange(n), y, np.ones(y.shape), True)


def _ends(law: Any, mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts (k, n) below and above which a distribution has almost no mass, by doubling.

    Quantiles of so small a probability are beyond what scipy finds for counts.
    """
    ends = []
    for sign, tail in ((-1.0, law.cdf), (1.0, law.sf)):
        reach = 1.0 + deviation
        while np.any(more := tail(mean + sign * reach) > _TAIL):
            reach = np.where(more, 2.0 * reach, reach)
        ends.append(mean + sign * reach)
    smallest, largest = law.support()
    return np.maximum(np.floor(ends[0]), smallest), np.minimum(np.ceil(ends[1]), largest)


def _counts(first: FloatArray, last: FloatArray) -> Iterator[tuple[slice, ResponseRule]]:
    """Counts from `first` (n,) to `last` (n,) with weight 1, one panel per input."""
    size = int((last - first).max()) + 1
    for chunk in _chunks(first.size, size):
        y, end = first[chunk, None] + np.arange(size), last[chunk, None]
        weight = np.where(y <= end, 1.0, 0.0)
        yield chunk, ResponseRule(np.arange(len(y)), np.minimum(y, end), weight, True)


def _panels(
    low: FloatArray, high: FloatArray, step: FloatArray
) -> Iterator[tuple[slice, ResponseRule]]:
    """Panels for atoms (k, n) that reach from `low` to `high`, from left to right.

    A panel that starts inside the reach of an atom is at most its `step` wide; one that starts on
    its left ends where the reach begins, or inside after such a width.
    """
    panels = np.ceil((high - low) / step) + 2.0
    # Beyond the range of floats there are no panels; who sums the densities says so.
    n_panels = int(np.sum(np.where(np.isfinite(panels), panels, 1.0), axis=0).max())
    for chunk in _chunks(low.shape[1], n_panels * ORDER):
        yield chunk, _rule(low[:, chunk], high[:, chunk], step[:, chunk], n_panels)


def _rule(low: FloatArray, high: FloatArray, step: FloatArray, n_panels: int) -> ResponseRule:
    """Gauss-Legendre nodes on such panels."""
    edges = [low.min(axis=0)]
    end = high.max(axis=0)
    for _ in range(n_panels):
        at = edges[-1]
        if np.all(at >= end):
            break
        longest = np.where(at < high, np.maximum(step, low - at), np.inf)
        edges.append(np.minimum(at + longest.min(axis=0), end))
    edges[-1] = end
    grid = np.stack(edges, axis=1)
    length = np.diff(grid, axis=1)
    owner, panel = np.nonzero(length > 0.0)
    half = 0.5 * length[owner, panel, None]
    return ResponseRule(owner, grid[owner, panel, None] + half * (1.0 + NODES), half * _MASSES)
