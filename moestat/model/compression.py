"""Compression: a few weighted samples in place of many.

Samples that are equal are one sample with a weight.  For one input and discrete responses more is
possible: the log-likelihood of a class is a sum of a smooth function of x over that class's
samples.  On each panel of the x-axis the empirical measure of a class is replaced by its own Gauss
quadrature: m nodes with positive weights that integrate every polynomial of degree 2 m - 1 exactly
as the samples do.  A panel with at most m distinct samples is kept as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_design, as_floats, as_plain_array, as_weights, positive_int
from moestat.compiler.jit import compile_loop
from moestat.model.family import Family

__all__ = ["Compressed", "compress", "gauss_compress"]

_DISTINCT = 1e-13
"""Square of a distance of points, over half a panel, from which on they are two."""

_SAVING = 4
"""Rows over nodes below which nothing is gained."""

_POINTS = 24
"""Chebyshev points per panel that an error bound looks at."""


@dataclass(frozen=True)
class Compressed:
    """Weighted samples that stand for more; make one with `compress`.

    Examples
    --------
    >>> short = compress([0.0, 1.0, 0.0, 1.0], [1, 2, 1, 1])
    >>> short.X[:, 0].tolist(), short.y.tolist(), short.weight.tolist()
    ([0.0, 1.0, 1.0], [1, 1, 2], [2.0, 1.0, 1.0])
    """

    X: FloatArray
    """Inputs; shape (m, d)."""
    y: np.ndarray
    """Responses, as they were given; shape (m,)."""
    weight: FloatArray
    """Positive weights; their sum is that of the data; shape (m,)."""
    n_rows: int
    """Rows of the data."""
    nodes: int = 0
    """Gauss nodes per class and panel; 0 when only ties were grouped and nothing is lost."""
    panels: FloatArray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    """Ends of the panels; shape (p, 2)."""
    classes: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    """Responses that occur; shape (K,)."""
    mass: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    """Weight of each class on each panel; shape (K, p)."""

    @property
    def lossless(self) -> bool:
        """Whether every log-likelihood is kept exactly, up to rounding."""
        return self.nodes == 0

    def error_bound(self, family: Family, theta: ArrayLike) -> float:
        """Bound on the error of the log-likelihood at `theta`, in natural-log units.

        Parameters
        ----------
        family : Family
            A family with one input.
        theta : array_like of shape (P,)
            Packed parameters.

        Returns
        -------
        float
            The bound; 0 where only ties were grouped.

        Notes
        -----
        Data and nodes integrate polynomials of degree 2 m - 1 alike, so the error of a class on a
        panel is at most twice its weight times the distance of ``log p(class | x)`` from such a
        polynomial.  That distance is bounded by the sum of the absolute Chebyshev coefficients
        from degree 2 m on, which are computed at 24 points of the panel; the two highest count
        tenfold, for what lies beyond.  A kink inside a panel lets them decay slowly, and shows.

        Examples
        --------
        >>> import numpy as np
        >>> from moestat import family, sample
        >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
        >>> short = compress(*sample(F, [0, 0, 3, 1], 100_000, rng=0))
        >>> short.weight.size < 3000, short.error_bound(F, [0, 0, 3, 1]) < 1e-9
        (True, True)
        """
        vector = as_floats("theta", theta, (family.n_params,))
        if self.lossless:
            return 0.0
        angle = (np.arange(_POINTS) + 0.5) * np.pi / _POINTS
        transform = 2.0 / _POINTS * np.cos(np.outer(np.arange(_POINTS), angle))
        centre, half = self.panels.mean(axis=1), np.diff(self.panels, axis=1)[:, 0] / 2.0
        x = centre[:, None] + half[:, None] * np.cos(angle)
        beyond = np.ones(_POINTS - 2 * self.nodes)
        beyond[-2:] = 10.0
        bound = 0.0
        for label, mass in zip(self.classes, self.mass, strict=True):
            value = family.log_density(vector, x.ravel(), np.full(x.size, label))
            tail = np.abs(value.reshape(x.shape) @ transform[2 * self.nodes :].T) @ beyond
            bound += 2.0 * float(mass @ tail)
        return bound

    def summary(self, family: Family | None = None, theta: ArrayLike | None = None) -> str:
        """One line: how many samples stand for how many, and what is lost at `theta`.

        Examples
        --------
        >>> compress([0.0, 1.0, 0.0], [1, 2, 1]).summary()
        '3 rows as 2: ties grouped, nothing lost'
        """
        line = f"{self.n_rows} rows as {self.weight.size}: "
        if self.lossless:
            return line + "ties grouped, nothing lost"
        line += f"{self.nodes} Gauss nodes per class on {len(self.panels)} panels"
        if family is None:
            return line
        if theta is None:
            raise ValueError("theta is missing: the error of the log-likelihood is that at theta")
        return line + f", log-likelihood to within {self.error_bound(family, theta):.1g}"


@door()
def compress(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    panels: int = 256,
    nodes: int = 4,
    edges: Sequence[float] = (),
) -> Compressed:
    """Fewer weighted samples with the same log-likelihoods.

    Equal rows become one.  With one input and discrete responses the samples of a class on a
    panel are then replaced by Gauss nodes with their moments, where that saves a factor of four.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; (n,) when d = 1.
    y : array_like of shape (n,)
        Responses.  Integers are discrete.
    sample_weight : array_like of shape (n,), optional
        Non-negative weights.
    panels : int
        Panels on the range of the input; 0 groups ties only.
    nodes : int
        Gauss nodes per class and panel, at most 8.
    edges : array_like of shape (e,)
        Places where the log-density has a kink, such as the positions of a Euclidean gate: panels
        end there.

    Returns
    -------
    Compressed
        X, y and weight for `moestat.fit`, and what is lost.

    Raises
    ------
    ValueError
        If shapes do not fit, or values are not finite.

    Notes
    -----
    Better than the projection onto Chebyshev nodes by Lagrange's polynomials, whose weights may
    be negative: the degree of exactness is doubled, and all weights are positive.

    Examples
    --------
    >>> from moestat import compress, family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> theta = F.pack({"beta0": [0.2, 0], "beta1": [-2, 0], "a": [[1], [0]], "b": [[2], [1]]})
    >>> X, y = sample(F, theta, 50_000, rng=0)
    >>> short = compress(X, y, panels=32)
    >>> print(short.summary())
    50000 rows as 256: 4 Gauss nodes per class on 32 panels
    >>> short.error_bound(F, theta) < 1e-8
    True
    """
    design = as_design(X)
    response = as_plain_array("y", y)
    if response.dtype == object:
        response = as_plain_array("y", response.tolist())
    if response.ndim != 1 or response.size != design.shape[1]:
        raise ValueError(
            f"y must have shape ({design.shape[1]},), one entry for each row of X, got"
            f" {response.shape}"
        )
    value = as_floats("y", response, (None,))
    weight = as_weights(sample_weight, value.size)
    n_panels, nodes = positive_int("panels", panels, 0), positive_int("nodes", nodes)
    if nodes > 8:
        raise ValueError(f"nodes must be at most 8, got {nodes}")
    kinks = as_floats("edges", edges, (None,))
    n_rows, used = value.size, weight > 0
    design = design[:, used]
    value = value[used]
    weight = weight[used]
    classes, index = np.unique(value, return_inverse=True)
    smooth = n_panels > 0 and design.shape[0] == 1 and np.issubdtype(response.dtype, np.integer)
    # Few places of X need no quadrature: equal rows in one lose nothing.
    if not smooth or np.unique(design[0]).size < _SAVING * n_panels * nodes:
        return _group_ties(design, value, weight, n_rows, response.dtype)

    x = design[0]
    inside = np.unique(kinks[(kinks > x.min()) & (kinks < x.max())])
    ends = np.concatenate([[x.min()], inside, [np.nextafter(x.max(), np.inf)]])
    parts = []
    borders = []
    masses = []
    for low, high in pairwise(ends):
        at = np.flatnonzero((x >= low) & (x < high))
        if not at.size:
            continue
        if np.ptp(x[at]) == 0.0:
            parts.append((x[at], index[at], weight[at]))
            continue
        count = max(1, round(n_panels * (high - low) / (ends[-1] - ends[0])))
        parts.append(gauss_compress(x[at], index[at], weight[at], count, nodes))
        border = np.linspace(x[at].min(), x[at].max(), count + 1)
        borders.append(np.stack([border[:-1], border[1:]], axis=1))
        panel = np.clip(np.searchsorted(border, x[at], side="right") - 1, 0, count - 1)
        mass = np.zeros((classes.size, count))
        np.add.at(mass, (index[at], panel), weight[at])
        masses.append(mass)
    node, label, share = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Compressed(
        X=node[:, None],
        y=classes[label].astype(response.dtype),
        weight=share,
        n_rows=n_rows,
        nodes=nodes,
        panels=np.concatenate(borders),
        classes=classes.astype(response.dtype),
        mass=np.concatenate(masses, axis=1),
    )


def gauss_compress(
    x: FloatArray, y: IntArray, weight: FloatArray, n_panels: int, n_nodes: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Nodes, classes and positive weights with the moments of the data, class by panel.

    At most ``n_panels * n_nodes`` rows per class.  One pass sums Legendre polynomials over the rows
    of each class and panel.  The modified Chebyshev algorithm of Wheeler (1974) makes of such
    moments the three-term recurrence of the polynomials orthogonal under the empirical measure, and
    Golub and Welsch (1969) of that the nodes.
    """
    low, high = float(x.min()), float(x.max())
    # Equal inputs lie at the left end of panels of any width.
    width = (high - low) / n_panels or 1.0
    moments = np.zeros(((int(y.max()) + 1) * n_panels, 2 * n_nodes))
    _add_moments(x, y, weight, low, width, n_panels, moments)
    n_groups, mass = len(moments), moments[:, 0]
    diagonal, offset = _recurrence(moments.T)
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
    masses = shares[keep]
    return (
        position[keep],
        np.broadcast_to(classes, keep.shape)[keep],
        masses * (mass.sum() / masses.sum()),
    )


@compile_loop
def _add_moments(x, y, weight, low, width, n_panels, moments):
    """Add to moments (classes times panels, 2 m) the rows' monic Legendre polynomials."""
    degree = moments.shape[1]
    for t in range(x.size):
        place = (x[t] - low) / width
        panel = int(place)
        panel = panel if panel < n_panels else n_panels - 1
        local = 2.0 * (place - panel) - 1.0
        group = y[t] * n_panels + panel
        before = 0.0
        current = weight[t]
        moments[group, 0] += current
        for j in range(1, degree):
            following = local * current - (j - 1) ** 2 / (4.0 * (j - 1) ** 2 - 1.0) * before
            before = current
            current = following
            moments[group, j] += current


def _recurrence(moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Diagonals and off-diagonals (groups, m) of Jacobi matrices, from moments (2 m, groups).

    Where a measure has fewer points than nodes, or they are closer than rounding tells, an
    off-diagonal of 0 ends the recurrence: the rule is exact.
    """
    degree, n_groups = moments.shape
    order = np.arange(degree, dtype=float)[:, None]
    legendre = order**2 / (4.0 * order**2 - 1.0)
    diagonal, squares = np.zeros((2, degree // 2, n_groups))
    before = np.zeros_like(moments)
    current = moments
    slope = np.zeros(n_groups)
    norm, alive = np.ones(n_groups), np.ones(n_groups, dtype=bool)
    for k in range(degree // 2):
        if k:
            at, following = slice(k, degree - k), np.zeros_like(moments)
            following[at] = current[k + 1 : degree - k + 1] + legendre[at] * current[k - 1 : -k - 1]
            following[at] -= diagonal[k - 1] * current[at] + squares[k - 1] * before[at]
            before, current = current, following
        last = norm
        norm = current[k]
        last_slope = slope
        alive &= norm > (_DISTINCT * last if k else 0.0)
        slope = np.divide(current[k + 1], norm, out=np.zeros(n_groups), where=alive)
        diagonal[k] = np.where(alive, slope - last_slope, 0.0)
        squares[k] = np.divide(norm, last, out=np.zeros(n_groups), where=alive)
    return diagonal.T, np.sqrt(squares.T)


def _group_ties(
    X: FloatArray, y: FloatArray, weight: FloatArray, n_rows: int, dtype: np.dtype[np.generic]
) -> Compressed:
    """Equal rows as one."""
    rows, owner = np.unique(np.vstack([X, y]).T, axis=0, return_inverse=True)
    total = np.bincount(owner.ravel(), weights=weight).astype(np.float64)
    return Compressed(np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(dtype), total, n_rows)
