"""Starts from parameters that are known: a truth, a mixing measure, a smaller fit, one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, cycle, islice
from typing import Any, ClassVar

import numpy as np

from moestat.base.door import doors
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_floats, positive_int, real_in, unknown
from moestat.estimation.rules import MOST_FITS
from moestat.estimation.starts.scale import Scale, into_box
from moestat.model.family import Family
from moestat.solvers.problem import Problem

_SIZES = (0.2, 1.5)
"""Smallest and largest size of a move of copies, in units of random predictors (`RandomStarts`):
from copies that have hardly parted to atoms that are nowhere near."""


@doors
@dataclass(frozen=True)
class TruthStarts:
    """Around the truth, as the papers start.

    The fitted atoms are assigned to the true ones at random with no Voronoi cell empty; then
    every parameter gets independent Gaussian noise.  Blocks that only the fitted family has, such
    as free masses, are 0 in the truth.

    Parameters
    ----------
    truth_family : Family
        Family of the truth, with k* experts.
    truth : ndarray of shape (P*,)
        Its packed parameters.
    count : int
        Number of starts.
    noise : float or mapping of str to float
        Standard deviation of the noise, in the units of the parameters; by block if it is a
        mapping, and 0 for blocks that it leaves out.
    decay : float or mapping of str to float
        The noise is multiplied by ``n^-decay``: what a start that comes nearer the truth with the
        sample size does to a rate.  A mapping as that of `noise`.

    Notes
    -----
    Pham et al. (2026), Sec. 5, "Initialization".  The paper says "a small variance" and no number;
    Yan et al. (2025), App. E.1.2, says "near their ground-truth values".  The default of `noise` is
    a choice: a tenth of the order, 1, of the parameters of these truths.
    """

    truth_family: Family
    truth: FloatArray = field(repr=False)
    count: int = 1
    noise: float | Mapping[str, float] = 0.1
    decay: float | Mapping[str, float] = 0.0
    name: str = "truth"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_floats("truth", self.truth, (self.truth_family.n_params,))
        positive_int("starts: truth", self.count, maximum=MOST_FITS)
        for key, value in (("noise", self.noise), ("decay", self.decay)):
            for each in value.values() if isinstance(value, Mapping) else (value,):
                real_in(f"starts: {key}", each, 0.0)

    def check_blocks(self, family: Family) -> None:
        """Refuse noise or decay of a block that the fitted family does not have."""
        for key, value in (("noise", self.noise), ("decay", self.decay)):
            _by_block(key, value, family)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family = problem.family
        k, k_true = family.n_experts, self.truth_family.n_experts
        fitted = family.with_experts(k_true)
        atoms, shared = fitted.split(fitted.embed(self.truth_family, self.truth))
        n = float(problem.data.weight.sum())
        noise = _by_block("noise", self.noise, family) * n ** -_by_block(
            "decay", self.decay, family
        )
        starts = np.empty((self.count, family.n_params))
        for start in starts:
            if k >= k_true:
                extra = rng.integers(0, k_true, size=k - k_true)
                cells = rng.permutation(np.concatenate([np.arange(k_true), extra]))
            else:
                cells = rng.choice(k_true, size=k, replace=False)
            start[:] = family.join(self._atoms(family, atoms, cells), shared)
            start += noise * rng.standard_normal(start.size)
        return starts

    def _atoms(self, family: Family, atoms: FloatArray, cells: IntArray) -> FloatArray:
        """The fitted atoms (k, C) around true ones (k*, C), of which they are in the cells (k,)."""
        return atoms[cells]


def _by_block(key: str, value: float | Mapping[str, float], family: Family) -> FloatArray:
    """A number, or a number by block, for every parameter (P,)."""
    if not isinstance(value, Mapping):
        return np.full(family.n_params, float(value))
    spread = np.zeros(family.n_params)
    for name, each in value.items():
        if name not in family.blocks:
            raise ValueError(f"starts: {key}: {unknown('block', name, family.blocks)}")
        spread[family.blocks[name]] = each
    return spread


@doors
@dataclass(frozen=True)
class MeasureStarts(TruthStarts):
    """Around mixing measures that are the truth's.

    As `TruthStarts`, with the true atom's mass shared by the fitted atoms of its Voronoi cell, so
    that without noise the density is the true one.  With a `decay` of 1/4 these starts are as far
    from the truth as an estimate with two atoms in a cell is, whatever the sample size: fits are
    cheaper then, but end in maxima near the truth, which are not always the highest.  Gates
    without free masses have nothing to share.

    Parameters
    ----------
    truth_family, truth, count, noise, decay
        As of `TruthStarts`.

    Notes
    -----
    That masses add up over a Voronoi cell is what the losses compare, as of Pham et al. (2026),
    eq. (4).

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> theta = [1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 1.0, -1.0]
    >>> X, y = sample(F, theta, n=500, rng=0)
    >>> fit(F.with_experts(3), X, y, starts=[MeasureStarts(F, theta)], rng=0).certificate.start
    'measure 0'
    """

    name: str = "measure"

    def _atoms(self, family: Family, atoms: FloatArray, cells: IntArray) -> FloatArray:
        return share_masses(family, atoms, cells)


def share_masses(family: Family, atoms: FloatArray, cells: IntArray) -> FloatArray:
    """Copies (k, C) of atoms (k*, C), one for each of the cells (k,), that share their masses."""
    shared = atoms[cells]
    if family.mass_column is not None:
        shared[:, family.mass_column] -= np.log(np.bincount(cells)[cells])
    return shared


@dataclass(frozen=True)
class CopyStarts:
    """A fit with fewer experts, with copies of its atoms, all of which are moved at random.

    The copies share the masses of their atoms.  Every allocation of the further atoms to those of
    the fit comes in turn, and the size of the moves is random.

    Parameters
    ----------
    family : Family
        That of the smaller fit.
    theta : ndarray of shape (P*,)
        Its parameters, in the coordinates in which the larger one is fitted.
    count : int
        Number of starts.
    """

    family: Family
    theta: FloatArray = field(repr=False)
    count: int = 1
    name: str = "copies"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int(f"starts: {self.name}", self.count, maximum=MOST_FITS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        noise = Scale(problem).noise(problem.family, rng, self.count)
        size = np.exp(rng.uniform(np.log(_SIZES[0]), np.log(_SIZES[1]), (self.count, 1)))
        return self.copies(problem.family) + size * noise

    def copies(self, family: Family) -> FloatArray:
        """Parameters (count, P) of the larger family with the density of the fit."""
        atoms, shared = self.family.split(self.theta)
        k = len(atoms)
        extra = cycle(combinations_with_replacement(range(k), family.n_experts - k))
        cells = [np.array([*range(k), *more]) for more in islice(extra, self.count)]
        copied = [family.join(share_masses(family, atoms, each), shared) for each in cells]
        return into_box(family, np.array(copied))


@doors
@dataclass(frozen=True)
class GivenStarts:
    """Starting values of the user's own.

    Parameters
    ----------
    points : array_like of shape (count, P)
        Packed parameters of the family that is fitted, one start per row.

    Raises
    ------
    ValueError
        If a value is nan or infinite, there is no row, or, when a fit begins, P is another.

    Examples
    --------
    >>> import numpy as np
    >>> from moestat import family, fit
    >>> F = family("gaussian", n_experts=1)
    >>> F = family("multinomial", n_experts=1, n_classes=2)
    >>> own = GivenStarts(np.zeros((1, F.n_params)))
    >>> fit(F, [0, 1, 2, 3, 4], [1, 2, 1, 2, 2], starts=[own]).certificate.start
    'given 0'
    """

    points: Any
    name: str = "given"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        points = as_floats("starts: points", self.points, (None, None))
        if not len(points):
            raise ValueError("starts: points must hold at least one row")
        object.__setattr__(self, "points", points)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        n_params = self.points.shape[1]
        if n_params != problem.family.n_params:
            raise ValueError(
                f"starts: points have {n_params} parameters, the family {problem.family.n_params}"
            )
        return self.points.copy()
