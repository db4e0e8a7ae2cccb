"""The dendrogram of a mixing measure: one fit with too many experts, atoms merged one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.figures import new_axes
from moestat.base.types import FloatArray
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.inference.inner_fit import inner_fit
from moestat.model.family import Family, check_family
from moestat.solvers.rules import TINY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["Dendrogram", "dendrogram", "has_dendrogram"]


@dataclass(frozen=True, repr=False)
class Dendrogram:
    """Merged measures of a fit with k experts, from k atoms down to one.

    Parameters
    ----------
    merges : tuple of (int, int)
        The two atoms of the previous measure that were merged; the new atom is the last one.
    heights : ndarray of shape (k - 1,)
        Dissimilarity of each merged pair: of the measure with k, k - 1, ..., 2 atoms.
    params : tuple of ndarray
        Packed parameters of the measures with k, k - 1, ..., 1 atoms.
    log_likelihood : ndarray of shape (k,)
        Log-likelihoods of these measures, without a new fit.
    nobs : float
        Number of samples.
    """

    merges: tuple[tuple[int, int], ...]
    heights: FloatArray
    params: tuple[FloatArray, ...] = field(repr=False)
    log_likelihood: FloatArray = field(repr=False)
    nobs: float = field(repr=False)

    @property
    def criterion(self) -> FloatArray:
        """The selection criterion of k, ..., 2 atoms, shape (k - 1,), lower is better.

        ``-(h + log(n) l / n)`` with the height h of the next merger and the log-likelihood l.
        """
        mean = self.log_likelihood[:-1] / self.nobs
        return -(self.heights + np.log(self.nobs) * mean)

    @property
    def n_experts(self) -> int:
        """The number of experts that the criterion chooses, at least 2."""
        k = len(self.params)
        return k - int(np.argmin(self.criterion))

    def __str__(self) -> str:
        k, chosen = len(self.params), self.n_experts
        lines = [
            f"Dendrogram of {k} experts: the criterion chooses {chosen}",
            "experts  next merger (experts from 1)  dissimilarity     criterion",
        ]
        for j, (pair, height) in enumerate(zip(self.merges, self.heights, strict=True)):
            merged = " and ".join(str(i + 1) for i in pair)
            lines.append(f"{k - j:>7d}  {merged:<28s}  {height:>13.4g}  {self.criterion[j]:>12.4f}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Axes | None = None) -> Axes:
        """Heights against the number of atoms.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, which are also returned; by default those of a new figure.
        """
        axes: Axes = new_axes() if ax is None else ax
        k = len(self.params)
        axes.semilogy(np.arange(k, 1, -1), np.maximum(self.heights, TINY), "o-")
        axes.axvline(self.n_experts, linestyle=":", color="0.5")
        axes.set_xticks(np.arange(k, 1, -1))
        axes.set(xlabel="number of atoms", ylabel="dissimilarity of the next merger")
        return axes


def has_dendrogram(family: Family) -> bool:
    """Whether merging two experts is defined: normal linear ones behind a softmax gate."""
    axes = family.likelihood.name, family.gate.name, family.expert.name
    return axes == ("gaussian", "softmax", "linear")


@door()
def dendrogram(
    family: Family | Fitted,
    theta: ArrayLike | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> Dendrogram:
    """Merge the atoms of a fit with too many softmax-gated Gaussian experts.

    Parameters
    ----------
    family : MoEResults or Family
        A fit, whose data and standardised parameters are taken; or the family: Gaussian
        likelihood, softmax gate and linear experts, with k >= 2.
    theta : ndarray of shape (P,)
        Packed parameters of the fit, over data in units in which inputs and response have
        standard deviations near 1: the dissimilarity adds squared and plain differences.
    X, y : array_like of shape (n, d), (n,)
        The data.

    Returns
    -------
    Dendrogram
        The measures, heights and selection criterion.

    Raises
    ------
    ValueError
        If the family is another one or has one expert.

    Notes
    -----
    Hai, Mai, Nguyen, Ho, Nguyen and Drovandi (2025), arXiv 2510.12744.  Atoms i and j are
    ``(exp(-beta0_i) + exp(-beta0_j))^-1 (|beta1_i - beta1_j|^2 + (b_i - b_j)^2 + |a_i - a_j| +
    |nu_i - nu_j|)`` apart: what converges at half the rate enters squared.  Masses
    sum to 1 here.  Merged atoms have the sum of the masses and the averages of the parameters,
    weighted by the masses.  The theory is on a compact parameter space: a maximum with an expert
    that fits noise far away has a large height there, and the criterion then keeps that expert.

    Examples
    --------
    >>> from moestat import Uniform, family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> truth = F.pack(
    ...     {"beta0": [0, 0], "beta1": [4, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.1]}
    ... )
    >>> X, y = sample(F, truth, n=2000, rng=0, design=Uniform(-1, 1))
    >>> G = F.with_experts(4)
    >>> tree = dendrogram(fit(G, X, y, rng=0))
    >>> tree.heights.size, tree.criterion.size
    (3, 3)
    """
    weight = np.ones(np.asarray(y).shape[:1])
    grouped = False
    if isinstance(family, Fitted):
        inner = inner_fit(family)
        begin = inner.data.begin
        grouped = begin is not None and begin.size < inner.data.size
        family, theta, X, weight = inner.family, inner.theta, inner.data.X.T, inner.data.weight
        y = family.likelihood.decode(inner.data.y)
    check_family("family", family)
    if not has_dendrogram(family):
        axes = family.likelihood.name, family.gate.name, family.expert.name
        raise ValueError(
            "dendrogram is available only for the gaussian likelihood with the softmax gate and"
            f" linear experts, got {' / '.join(axes)}"
        )
    if family.likelihood.effects is not None:
        raise ValueError("dendrogram is not available for fits with random effects")
    if grouped:
        raise ValueError(
            "dendrogram is not available for fits with groups: its criterion is that of"
            " independent rows; use select to choose the number of experts"
        )
    k = family.n_experts
    if k < 2:
        raise ValueError("dendrogram needs a fit with at least 2 experts, got 1")
    names = ("beta0", "beta1", "a", "b", "nu")
    if theta is None or X is None or y is None:
        raise ValueError("theta, X and y must be given with a family")
    blocks = family.unpack(theta)
    # Masses sum to 1, so that nothing depends on which atom is the reference.
    blocks["beta0"] = blocks["beta0"] - np.logaddexp.reduce(blocks["beta0"])
    atoms = [{name: blocks[name][i] for name in names} for i in range(k)]
    measures, merges, heights = [np.asarray(theta, dtype=np.float64)], [], []
    while len(atoms) > 1:
        height, i, j = min(
            (_distance(atoms[i], atoms[j]), i, j) for j in range(len(atoms)) for i in range(j)
        )
        heights.append(height)
        merges.append((i, j))
        merged = _merge(atoms[i], atoms[j])
        atoms = [atom for t, atom in enumerate(atoms) if t not in (i, j)] + [merged]
        model = family.with_experts(len(atoms))
        packed = model.pack({name: [atom[name] for atom in atoms] for name in names})
        measures.append(model.pin(packed))
    values = [
        float(weight @ family.with_experts(k - s).log_density(params, X, y))
        for s, params in enumerate(measures)
    ]
    return Dendrogram(
        tuple(merges),
        np.array(heights),
        tuple(measures),
        np.array(values),
        float(np.sum(weight)),
    )


def _distance(one: Mapping[str, FloatArray], other: Mapping[str, FloatArray]) -> float:
    mass = np.exp(-np.logaddexp(-one["beta0"], -other["beta0"]))
    squared = np.sum((one["beta1"] - other["beta1"]) ** 2) + (one["b"] - other["b"]) ** 2
    plain = np.linalg.norm(one["a"] - other["a"]) + abs(one["nu"] - other["nu"])
    return float(mass * (squared + plain))


def _merge(one: Mapping[str, FloatArray], other: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    total = np.logaddexp(one["beta0"], other["beta0"])
    share = np.exp(one["beta0"] - total)
    mixed = {name: share * one[name] + (1.0 - share) * other[name] for name in one}
    return {**mixed, "beta0": total}
