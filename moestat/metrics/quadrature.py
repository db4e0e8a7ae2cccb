"""Quadrature over the response at each input, for one or several conditional densities.

Classes and counts are summed.  A continuous response is integrated by Gauss-Legendre rules on
panels that are at most a few standard deviations of the narrowest atom there wide, so that atoms
far apart or of very different widths cost no more than their number; a response that is not normal
is so on the scale of its logarithm, its logit or, with tails of powers, of asinh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from moestat.base.types import Encoded, FloatArray, IntArray
from moestat.metrics.count_rules import count_rules
from moestat.metrics.panels import ResponseRule, chunks, panels_of
from moestat.model.family import Family

_REACH = 8.9  # standard deviations about each mean; a normal variable leaves them once in 1e18
_PANEL = 3.0  # standard deviations per panel of the coarsest rule; six make just over two reaches
_TAIL = 1e-18  # probability beyond the ends, of counts and of positive responses


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
        yield from panels_of(
            mean - _REACH * deviation, mean + _REACH * deviation, width * deviation
        )
        return
    frozen = [law_at(other.predictors(theta, X)) for other, theta in laws]
    if family.likelihood.counts:
        rules = count_rules(frozen, pairs, width)
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
    for chunk, rule in panels_of(to(low), to(high), steps):
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


def _sums(family: Family, X: FloatArray) -> Iterator[tuple[slice, ResponseRule]]:
    """Rules for class responses: every class is a node with weight 1."""
    assert family.likelihood.support is not None
    classes = family.likelihood.support(family.n_classes)
    for chunk in chunks(X.shape[1], classes.size):
        n = chunk.stop - chunk.start
        y = np.tile(classes, (n, 1))
        yield chunk, ResponseRule(np.arange(n), y, np.ones(y.shape), True)
