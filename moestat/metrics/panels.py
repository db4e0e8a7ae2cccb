"""Panels: rules that integrate, or sum, functions of the response at several inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray, IntArray

ORDER = 12
"""Gauss-Legendre nodes per panel."""
NODES, _MASSES = np.polynomial.legendre.leggauss(ORDER)
"""The nodes (q,) on [-1, 1]; their weights."""

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


def chunks(n: int, n_rows: int) -> Iterator[slice]:
    """Slices of n inputs, each with about `_ROWS` rows where one input has at most `n_rows`."""
    size = max(1, _ROWS // n_rows)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def panels_of(
    low: FloatArray, high: FloatArray, step: FloatArray
) -> Iterator[tuple[slice, ResponseRule]]:
    """Panels for atoms (k, n) that reach from `low` to `high`, from left to right.

    A panel that starts inside the reach of an atom is at most its `step` wide; one that starts on
    its left ends where the reach begins, or inside after such a width.
    """
    panels = np.ceil((high - low) / step) + 2.0
    # Beyond the range of floats there are no panels; who sums the densities says so.
    n_panels = int(np.sum(np.where(np.isfinite(panels), panels, 1.0), axis=0).max())
    for chunk in chunks(low.shape[1], n_panels * ORDER):
        yield chunk, rule_on(low[:, chunk], high[:, chunk], step[:, chunk], n_panels)


def rule_on(low: FloatArray, high: FloatArray, step: FloatArray, n_panels: int) -> ResponseRule:
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
