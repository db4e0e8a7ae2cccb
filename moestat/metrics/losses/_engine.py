"""The one engine that evaluates every Voronoi loss; a loss itself is data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import short
from moestat.metrics.losses._gaps import pair_gaps
from moestat.metrics.losses._loss import MASS_LEVELS, BlockTerm, VoronoiLoss, VoronoiResult
from moestat.metrics.losses._problem import Translations
from moestat.metrics.losses._scaling import Orbit
from moestat.model.measure import MixingMeasure


def check_measures(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> None:
    """Raise ValueError unless the loss can compare these measures."""
    for role, measure in (("estimate", estimate), ("truth", truth)):
        if not isinstance(measure, MixingMeasure):
            raise ValueError(f"{role} must be a MixingMeasure, got {type(measure).__name__}")
        if loss.joint and not measure.expert_blocks:
            raise ValueError(
                f"loss {loss.name!r} takes all blocks of the expert in one norm, but {role} does "
                "not say which they are: take it from Family.measure, or set expert_blocks"
            )
        if measure.symmetry.free:
            raise ValueError(
                f"the expert of {role} leaves {measure.symmetry.free} undetermined, and no loss "
                "takes an infimum over that"
            )
        needed = dict.fromkeys([*(measure.expert_blocks if loss.joint else ()), *loss.blocks])
        if set(needed) != set(measure.atoms):
            blocks = ", ".join(needed)
            raise ValueError(
                f"loss {loss.name!r} needs the blocks {blocks} ({loss.source}); {role} has "
                f"{', '.join(measure.atoms)}: the gate must be the one this loss was made for"
            )
        if loss.scaling is not None:
            name = loss.scaling.blocks[-1]
            values = measure.atoms[name]
            if values.ndim != 1 or not values[0] > 0.0 or np.any(values != values[0]):
                raise ValueError(
                    f"loss {loss.name!r}: block {name!r} must hold one positive value that all "
                    f"atoms share, got {short(values.tolist())} in {role}"
                )
    if estimate.symmetry != truth.symmetry or (
        loss.joint and set(estimate.expert_blocks) != set(truth.expert_blocks)
    ):
        raise ValueError("estimate and truth must be of the same expert with the same options")
    for name, block in truth.atoms.items():
        fitted, true = estimate.atoms[name].shape, block.shape
        if fitted[1:] != true[1:]:
            raise ValueError(
                f"estimate and truth must have the same sizes, but block {name!r} has "
                f"shape {fitted} in the estimate and {true} in the truth"
            )
    for term in loss.terms:
        axes = 1 + term.summed_axes + term.vector_axes
        named = not term.joint and not term.log_mass
        if named and truth.atoms[term.block].ndim != axes:
            shape = truth.atoms[term.block].shape
            raise ValueError(f"block {term.block!r} must have {axes} axes, got shape {shape}")


def term_gaps(
    loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure
) -> dict[str, FloatArray]:
    """Estimate less truth of every pair of atoms, by block, and by name for a joint term."""
    gaps = pair_gaps(estimate, truth)
    for term in loss.terms:
        if term.log_mass:
            fitted, true = (np.log(masses) for masses in _masses(loss, estimate, truth))
            gaps[term.block] = fitted[:, None] - true
        if term.joint:
            parts = [gaps[name] for name in truth.expert_blocks]
            rows = [part.reshape(*part.shape[:2], -1) for part in parts]
            gaps[term.block] = np.concatenate(rows, axis=-1)
    return gaps


def _masses(
    loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure
) -> tuple[FloatArray, FloatArray]:
    """Masses of the estimate and the truth as the loss reads them."""
    if loss.masses is None:
        return np.ones(estimate.n_atoms), np.ones(truth.n_atoms)
    if loss.masses == "given":
        return estimate.masses, truth.masses
    # A common factor of all masses (a shift of gamma or beta0) leaves the density unchanged, so
    # it is fixed here by giving both measures the same total.  It must not be minimised over:
    # the second sum of the loss has the masses as weights, so that scaling them to 0 makes it
    # vanish and a bad estimate would be charged the truth's total mass at most (the convention
    # gamma_k* = 0 of Pham et al. (2026), A.3, in turn depends on the labels when k > k*).
    return estimate.masses * (truth.total_mass / estimate.total_mass), truth.masses


def _parts(
    loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure, moves: Iterable[str]
) -> dict[str, Any]:
    """The fields of a `Problem` in which the blocks `moves` move."""
    masses, true_masses = _masses(loss, estimate, truth)
    k, true_k = masses.size, true_masses.size
    n_levels = len(loss.exponents(loss.terms[0]))
    fixed_squares = np.zeros((k, true_k))
    fixed_costs = np.zeros((n_levels, k, true_k))
    moving: list[FloatArray] = []
    powers: list[tuple[float, ...]] = []
    all_gaps = term_gaps(loss, estimate, truth)
    for term in loss.terms:
        gaps, exponents = all_gaps[term.block], loss.exponents(term)
        if term.block in moves:
            moving.append(gaps.reshape(k, true_k, -1))
            powers.append(exponents)
            continue
        if term.in_cells:
            fixed_squares += np.sum(gaps.reshape(k, true_k, -1) ** 2, axis=-1)
        for level, exponent in enumerate(exponents[:1] if term.exact_only else exponents):
            fixed_costs[level] += block_cost(term, gaps, exponent)
    widths = [part.shape[-1] for part in moving]
    return {
        "masses": masses,
        "true_masses": true_masses,
        "exponents": np.array(powers).reshape(-1, n_levels).T,
        "fixed_squares": fixed_squares,
        "fixed_costs": fixed_costs,
        "moving": np.concatenate([np.zeros((k, true_k, 0)), *moving], axis=-1),
        "starts": np.array([sum(widths[:b]) for b in range(len(widths))], dtype=np.int64),
        "weights": masses if loss.weighted else np.ones(k),
        "mass_level": MASS_LEVELS[loss.mass_cells],
    }


def _problem(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> Translations:
    return Translations(**_parts(loss, estimate, truth, loss.translated))


def _check_distinct(loss: VoronoiLoss, truth: MixingMeasure) -> None:
    """Refuse a truth with two equal atoms, whose mass one cell would lack and another have twice.

    Where no masses are compared, and among all representatives of a truth, they are one atom.
    """
    compared = loss.masses is not None and loss.mass_cells != "none"
    if not compared or loss.represent is not None or truth.n_atoms == 1:
        return
    same = _problem(loss, truth, truth)
    cells = same.cells(np.zeros((1, same.moving.shape[-1])))[0]
    for j, cell in enumerate(cells.tolist()):
        if cell != j:
            raise ValueError(
                f"truth: atoms {cell} and {j} are equal; give one atom that has the mass of both"
            )


def _scale(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> float:
    """The factor that the scaling of the loss chooses, 1 without one."""
    if loss.scaling is None:
        return 1.0
    blocks = loss.scaling.blocks
    # The search starts from the truth's scale, so that the estimate's own cannot matter.
    match = float(truth.atoms[blocks[-1]][0] / estimate.atoms[blocks[-1]][0])
    estimate = scaled(estimate, blocks, match)
    rows = [
        estimate.atoms[term.block].reshape(estimate.n_atoms, -1)
        for term in loss.terms
        if term.block in blocks
    ]
    orbit = Orbit(**_parts(loss, estimate, truth, blocks), path=np.concatenate(rows, axis=-1))
    return match * loss.scaling.choose(orbit)


def scaled(measure: MixingMeasure, blocks: tuple[str, ...], scale: float) -> MixingMeasure:
    """The measure with some blocks multiplied by a factor."""
    atoms = {name: scale * x if name in blocks else x for name, x in measure.atoms.items()}
    return replace(measure, atoms=atoms)


def block_cost(term: BlockTerm, gaps: FloatArray, exponent: FloatArray | float) -> FloatArray:
    """Sum over classes of ``|gap|^exponent``; `gaps` has the term's axes last."""
    lead = gaps.ndim - term.summed_axes - term.vector_axes
    split = lead + term.summed_axes
    norms = np.sqrt(np.sum(gaps.reshape((*gaps.shape[:split], -1)) ** 2, axis=-1))
    norms = norms.reshape((*gaps.shape[:lead], -1))
    return np.sum(norms ** np.asarray(exponent)[..., None], axis=-1)


def _sorted(measure: MixingMeasure) -> tuple[MixingMeasure, IntArray]:
    """The measure with its atoms in an order that does not depend on their labels."""
    order = np.lexsort([measure.masses, *measure.coordinates().T[::-1]])
    return measure.in_order(order), order


def _centred(
    measure: MixingMeasure, blocks: tuple[str, ...]
) -> tuple[MixingMeasure, dict[str, FloatArray]]:
    """The measure with the mean over atoms of the blocks taken off, and those means."""
    if not blocks:
        return measure, {}
    means = {name: np.mean(measure.atoms[name], axis=0) for name in blocks}
    atoms = {
        name: block - means[name] if name in means else block
        for name, block in measure.atoms.items()
    }
    return replace(measure, atoms=atoms), means


def _shifted(
    loss: VoronoiLoss, gaps: Mapping[str, FloatArray], t: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Gaps of each term with its part of the translation t taken off, and those parts."""
    shifted, shifts, used = dict(gaps), {}, 0
    for term in loss.terms:
        if term.block in loss.translated:
            shape = gaps[term.block].shape[2:]
            size = int(np.prod(shape))
            shifts[term.block] = t[used : used + size].reshape(shape)
            used += size
            shifted[term.block] = gaps[term.block] - shifts[term.block]
    return shifted, shifts


@dataclass(frozen=True)
class LossTo:
    """A loss between one truth and many estimates: what is the truth's alone is computed once."""

    loss: VoronoiLoss
    truth: MixingMeasure

    def terms(self, estimate: MixingMeasure) -> VoronoiResult:
        """The loss of an estimate, with its parts, as `evaluate`."""
        check_measures(self.loss, estimate, self.truth)
        return _compare(self.loss, estimate, self.truth, *self._centred)

    @cached_property
    def _centred(self) -> tuple[MixingMeasure, dict[str, FloatArray]]:
        """The truth without the means of translated blocks, and those means."""
        _check_distinct(self.loss, self.truth)
        return _centred(self.truth, self.loss.translated)


def evaluate(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> VoronoiResult:
    """A Voronoi loss between an estimate and the truth, with its parts.

    Fitted atom i falls in the cell of the nearest true atom, by the Euclidean distance in all
    coordinates; ties (up to rounding) go to the lowest index.  The estimate's masses are scaled
    to the truth's total, unless the loss takes them as given.  For a loss with translated or
    scaled blocks the cells depend on the translation t or the factor c, which are searched (see
    Notes).  Distances are infima over the symmetries of the expert: its hidden units in any
    order, and signs that do not matter.

    Notes
    -----
    Cells: Pham et al. (2026), eq. (3).  The value does not depend on the labels of the fitted
    atoms, on a common factor of their masses, or on a common shift of translated blocks.  With
    translated blocks the value is an upper bound of the infimum, found by search.  In one dimension
    it is exact up to 1e-9 of the atoms' spread.  In more dimensions it is exact where the minimiser
    keeps its cells, as it does near the truth; where the infimum sits at a jump of the loss, far
    from the truth, it was found up to 1% too large in random tests.

    A common factor has one dimension.  The boundaries between cells are known in closed form, and
    between two of them the loss is convex, so that every interval is searched to its minimum.
    The value is an upper bound of the infimum: it may miss what happens between boundaries closer
    than 1e-9 (relative).  It does not depend on the estimate's own scale, because the search
    starts from the truth's.
    """
    return LossTo(loss, truth).terms(estimate)


def _compare(
    loss: VoronoiLoss,
    estimate: MixingMeasure,
    truth: MixingMeasure,
    centred: MixingMeasure,
    true_mean: dict[str, FloatArray],
) -> VoronoiResult:
    """`evaluate`, of measures that fit together, with the truth that is `centred`."""
    estimate, order = _sorted(estimate)
    if loss.represent is not None:
        truth = loss.represent(estimate, truth)
        centred, true_mean = _centred(truth, loss.translated)
    scale = _scale(loss, estimate, truth)
    if loss.scaling is not None:
        estimate = scaled(estimate, loss.scaling.blocks, scale)
    estimate, fitted_mean = _centred(estimate, loss.translated)
    truth = centred
    problem = _problem(loss, estimate, truth)
    t = problem.search()
    cells = problem.cells(t[None])[0]
    if loss.represent is not None:
        cells = np.arange(estimate.n_atoms)
    level = problem.level(cells[None])[0]
    sizes = np.bincount(cells, minlength=truth.n_atoms)
    if isinstance(loss.over_exponent, tuple) and sizes.max() > 1 + len(loss.over_exponent):
        raise ValueError(
            f"loss {loss.name!r} has exponents for cells of up to {1 + len(loss.over_exponent)} "
            f"atoms, but {sizes.max()} fitted atoms share a cell ({loss.source})"
        )
    gaps, translation = _shifted(loss, term_gaps(loss, estimate, truth), t)
    translation = {
        name: shift + fitted_mean[name] - true_mean[name] for name, shift in translation.items()
    }
    squares = np.zeros((estimate.n_atoms, truth.n_atoms))
    block_errors: dict[str, FloatArray] = {}
    for term in loss.terms:
        gap = gaps[term.block]
        if term.in_cells:
            squares += np.sum(gap.reshape(*squares.shape, -1) ** 2, axis=-1)
        exponent = np.array(loss.exponents(term))[level]
        cost = problem.weights * block_cost(term, gap[np.arange(cells.size), cells], exponent)
        if term.exact_only:
            cost = np.where(level > 0, 0.0, cost)
        errors = np.bincount(cells, weights=cost, minlength=truth.n_atoms)
        block_errors[term.block] = errors.astype(np.float64)
    in_cell = np.bincount(cells, weights=problem.masses, minlength=truth.n_atoms)
    mass_errors = np.abs(in_cell - problem.true_masses)
    mass_errors[sizes <= problem.mass_level if problem.mass_level else slice(0)] = 0.0
    if loss.masses is None:
        mass_errors = np.zeros(truth.n_atoms)
    if loss.active is not None:
        total = mass_errors + np.sum(list(block_errors.values()), axis=0)
        out = np.argsort(-total, kind="stable")[loss.active :]
        for errors in (mass_errors, *block_errors.values()):
            errors[out] = 0.0
    assignment = np.empty_like(cells)
    assignment[order] = cells
    return VoronoiResult(
        value=float(mass_errors.sum() + sum(part.sum() for part in block_errors.values())),
        translation=translation,
        assignment=assignment,
        cell_sizes=sizes,
        mass_errors=mass_errors,
        block_errors=block_errors,
        empty_cells=int(np.sum(sizes == 0)),
        coverage=float(np.sum(np.sqrt(squares.min(axis=0)))),
        loss=loss,
        scale=scale,
    )
