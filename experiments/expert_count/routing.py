"""Routing probabilities under uniform noise, and gates."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["routing_probabilities", "softmax"]


def routing_probabilities(h: FloatArray) -> FloatArray:
    """Probability that each score plus its own uniform noise on [0, 1] is the largest.

    Given its own noise r, expert m wins with ``prod_k clip(h_m + r - h_k, 0, 1)``: a polynomial
    in r between the points where a factor begins or ends, which Gauss-Legendre quadrature with
    (M + 1) / 2 nodes integrates exactly.

    Parameters
    ----------
    h : ndarray of shape (M,)
        Scores.

    Returns
    -------
    ndarray of shape (M,)
        Probabilities, with sum 1.

    Examples
    --------
    >>> routing_probabilities(np.array([0.0, 0.5])).tolist()
    [0.125, 0.875]
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(h) // 2 + 1)
    found = np.empty(len(h))
    for m, own in enumerate(h):
        others = np.delete(h, m)
        ends = np.clip(np.concatenate([others - own, others - own + 1.0]), 0.0, 1.0)
        cuts = np.unique(np.concatenate([[0.0, 1.0], ends]))
        half = np.diff(cuts)[:, None] / 2
        r = cuts[:-1, None] + half * (1 + nodes)
        wins = np.clip(own + r[..., None] - others, 0.0, 1.0).prod(axis=-1)
        found[m] = np.sum(half * weights * wins)
    return found


def softmax(h: FloatArray) -> FloatArray:
    """Gates of one vector of scores.

    Parameters
    ----------
    h : ndarray of shape (M,)
        Scores.

    Returns
    -------
    ndarray of shape (M,)
        Shares of exp(h).

    Examples
    --------
    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    e = np.exp(h - h.max())
    return e / e.sum()
