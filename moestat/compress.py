"""Compression: a few weighted samples with the moments of many.

For one input and discrete responses the log-likelihood of a class is a sum of a smooth function
of x over that class's samples.  On each panel of the x-axis the empirical measure of a class is
replaced by its own Gauss quadrature: m nodes with positive weights that integrate every
polynomial of degree 2 m - 1 exactly as the samples do.  A panel with at most m distinct samples
is kept as it is.
"""

from __future__ import annotations

import numpy as np

from moestat._types import FloatArray, IntArray

__all__ = ["gauss_compress"]


def gauss_compress(
    x: FloatArray, y: IntArray, weight: FloatArray, n_panels: int, n_nodes: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Nodes, classes and positive weights with the moments of the data, class by panel.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Input.
    y : ndarray of shape (n,)
        Class indices.
    weight : ndarray of shape (n,)
        Non-negative sample weights.
    n_panels, n_nodes : int
        Panels of equal width, and nodes m per class and panel.

    Returns
    -------
    x, y, weight : ndarray of shape (m',)
        At most ``n_panels * n_nodes`` samples per class; the total weight is unchanged.

    Notes
    -----
    Stieltjes' procedure gives the three-term recurrence of the polynomials orthogonal under the
    empirical measure, Golub and Welsch (1969) the nodes from its Jacobi matrix.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.random(5000), np.zeros(5000, dtype=np.int64)
    >>> node, label, w = gauss_compress(x, y, np.ones(5000), n_panels=2, n_nodes=3)
    >>> node.size, bool(np.isclose(w @ node**5, np.sum(x**5)))
    (6, True)
    """
    low, high = float(x.min()), float(x.max())
    width = (high - low) / n_panels
    panel = np.minimum(((x - low) / width).astype(np.int64), n_panels - 1)
    group = y * n_panels + panel
    n_groups = (int(y.max()) + 1) * n_panels
    local = 2.0 * (x - low - panel * width) / width - 1.0

    def total(values: FloatArray) -> FloatArray:
        sums = np.bincount(group, weights=values, minlength=n_groups)
        return sums.astype(np.float64)

    mass = total(weight)
    diagonal = np.zeros((n_groups, n_nodes))
    offset = np.zeros((n_groups, n_nodes))
    previous = np.zeros_like(local)
    scale = np.sqrt(np.where(mass > 0, mass, 1.0))
    current = 1.0 / scale[group]
    for j in range(n_nodes):
        measure = weight * current
        diagonal[:, j] = total(measure * current * local)
        following = (local - diagonal[group, j]) * current - offset[group, j] * previous
        norm = np.sqrt(np.maximum(total(weight * following**2), 0.0))
        # Fewer distinct samples than nodes: the recurrence ends and the rule is exact.
        norm = np.where(norm > 1e-9, norm, 0.0)
        if j + 1 < n_nodes:
            offset[:, j + 1] = norm
            previous, current = current, following / np.where(norm > 0, norm, np.inf)[group]
    jacobi = np.zeros((n_groups, n_nodes, n_nodes))
    along = np.arange(n_nodes)
    jacobi[:, along, along] = diagonal
    jacobi[:, along[1:], along[:-1]] = offset[:, 1:]
    jacobi[:, along[:-1], along[1:]] = offset[:, 1:]
    nodes, vectors = np.linalg.eigh(jacobi)
    shares = mass[:, None] * vectors[:, 0, :] ** 2
    panels = np.tile(np.arange(n_panels), n_groups // n_panels)[:, None]
    position = low + (panels + (np.clip(nodes, -1.0, 1.0) + 1.0) / 2.0) * width
    classes = np.repeat(np.arange(n_groups // n_panels), n_panels)[:, None]
    keep = shares > 1e-14 * mass.sum()
    kept = shares[keep]
    return (
        position[keep],
        np.broadcast_to(classes, keep.shape)[keep],
        kept * (mass.sum() / kept.sum()),
    )
