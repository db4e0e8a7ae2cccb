"""The one engine that evaluates every Voronoi loss; a loss itself is data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat._types import FloatArray, Gate, IntArray
from moestat._validate import real_in
from moestat.losses._problem import Translations
from moestat.losses._scaling import Orbit, Scaling
from moestat.mixing import MixingMeasure

__all__ = [
    "BlockTerm",
    "VoronoiLoss",
    "VoronoiResult",
    "block_cost",
    "check_measures",
    "evaluate",
    "scaled",
]


@dataclass(frozen=True)
class BlockTerm:
    """How one block of an atom enters a Voronoi loss.

    Parameters
    ----------
    block : str
        Name of the block in the mixing measure.
    vector_axes : int
        Number of trailing axes inside one Euclidean norm: 1 for ``alpha`` (k, d), 0 for
        ``beta`` (k,).
    summed_axes : int
        Number of axes between the atoms and the norm, over which norms are summed: 1 (classes)
        for ``a`` (k, K - 1, d) and ``b`` (k, K - 1).
    """

    block: str
    vector_axes: int
    summed_axes: int = 0


@dataclass(frozen=True)
class VoronoiLoss:
    """A Voronoi loss between mixing measures, as data.

    With the Voronoi cells ``A_j`` of the true atoms, masses m_i and exponent ``kappa_j`` =
    `exact_exponent` where ``|A_j| <= 1`` and `over_exponent` where ``|A_j| > 1``, the loss is
    ``sum_j |sum_(i in A_j) m_i - m*_j| + sum_j sum_(i in A_j) m_i sum_terms |delta_ij|^kappa_j``,
    minimised over a common translation of the blocks in `translated`, or taken at the common
    factor of some blocks that `scaling` chooses.

    Parameters
    ----------
    name : str
        Name in the registry.
    terms : tuple of BlockTerm
        The blocks that enter, which must be all blocks of the measures, up to the last block of
        `scaling`.
    exact_exponent, over_exponent : float
        Exponents in cells of one atom and of several.
    translated : tuple of str
        Blocks over whose common translation the infimum is taken; their terms have no summed
        axes.
    source : str
        Paper and equation.
    free_order : bool
        Whether the order r is the caller's choice; then both exponents are r.
    scaling : Scaling or None
        Blocks of the estimate that are multiplied by a common factor first, and which factor;
        None for a loss that takes the estimate as it is.

    Raises
    ------
    ValueError
        If there are both translated and scaled blocks.
    """

    name: str
    terms: tuple[BlockTerm, ...]
    exact_exponent: float
    over_exponent: float
    translated: tuple[str, ...]
    source: str
    free_order: bool = False
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        if self.translated and self.scaling is not None:
            raise ValueError(f"loss {self.name!r}: blocks are translated or scaled, not both")

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of all blocks that the measures must have."""
        names = [term.block for term in self.terms]
        return tuple(dict.fromkeys([*names, *(self.scaling.blocks if self.scaling else ())]))

    def check_gate(self, gate: Gate) -> None:
        """Raise unless what this loss does not see is invisible in the gate's density, too.

        Two gates may have the same blocks, so that their measures do not tell them apart.

        Parameters
        ----------
        gate : Gate
            Gate of the fitted model.

        Raises
        ------
        ValueError
            If the loss takes an infimum over translations or factors that change the density.

        Examples
        --------
        >>> from moestat.gates import GATES
        >>> from moestat.losses import LOSSES
        >>> LOSSES["D2r-orbit"].check_gate(GATES["sigmoid-inner"])
        >>> LOSSES["D2r-orbit"].check_gate(GATES["sigmoid-euclidean"])
        Traceback (most recent call last):
        ...
        ValueError: loss 'D2r-orbit' does not see a common factor of alpha, beta, tau, but it \
changes the density of gate 'sigmoid-euclidean'
        """
        factors = self.scaling.blocks if self.scaling else ()
        for what, blocks, free in (
            ("shift", self.translated, gate.translations),
            ("factor", factors, gate.scaling),
        ):
            if not set(blocks) <= set(free):
                raise ValueError(
                    f"loss {self.name!r} does not see a common {what} of {', '.join(blocks)}, but "
                    f"it changes the density of gate {gate.name!r}"
                )

    def with_order(self, r: float) -> VoronoiLoss:
        """The same loss with the order r >= 1 in every cell.

        Raises
        ------
        ValueError
            If the loss has no free order, or r < 1.
        """
        if not self.free_order:
            raise ValueError(f"r: loss {self.name!r} has fixed exponents and takes no order r")
        order = real_in("r", r, 1.0)
        return replace(self, exact_exponent=order, over_exponent=order)


@dataclass(frozen=True)
class VoronoiResult:
    """A Voronoi loss and the parts it is made of.

    ``value == mass_errors.sum() + sum(block_errors[name].sum() for name in block_errors)``.

    Parameters
    ----------
    value : float
        The loss.
    translation : mapping of str to ndarray
        Block -> the common vector t that was taken off the estimate, ``estimate - t ~ truth``;
        empty for a loss without translations.
    assignment : ndarray of shape (k,)
        True atom whose cell holds each fitted atom.
    cell_sizes : ndarray of shape (k*,)
        Number of fitted atoms in each cell.
    mass_errors : ndarray of shape (k*,)
        ``|sum_(i in A_j) m_i - m*_j|``, with the estimate's masses scaled to the truth's total.
    block_errors : mapping of str to ndarray of shape (k*,)
        Contribution of each block and cell to the value.
    empty_cells : int
        Cells without a fitted atom.  They add only their mass to the value.
    coverage : float
        Sum over true atoms of the Euclidean distance to the nearest fitted atom, after the
        translation or scaling.  Unlike the loss it sees how far an empty cell is from the
        estimate.
    loss : VoronoiLoss
        The loss that was evaluated.
    scale : float
        Factor by which the scaled blocks of the estimate were multiplied, 1 for a loss without
        scaling.  0 says that the infimum is only approached as the factor goes to 0; then the
        parts are those of the limit, in which the scaled blocks are 0.
    """

    value: float
    translation: Mapping[str, FloatArray]
    assignment: IntArray
    cell_sizes: IntArray
    mass_errors: FloatArray
    block_errors: Mapping[str, FloatArray]
    empty_cells: int
    coverage: float
    loss: VoronoiLoss
    scale: float = 1.0


def check_measures(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> None:
    """Raise ValueError unless the loss can compare these measures."""
    for role, measure in (("estimate", estimate), ("truth", truth)):
        if not isinstance(measure, MixingMeasure):
            raise ValueError(f"{role} must be a MixingMeasure, got {type(measure).__name__}")
        if set(loss.blocks) != set(measure.atoms):
            blocks = ", ".join(loss.blocks)
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
                    f"atoms share, got {values.tolist()} in {role}"
                )
    for term in loss.terms:
        fitted, true = estimate.atoms[term.block].shape, truth.atoms[term.block].shape
        if fitted[1:] != true[1:]:
            raise ValueError(
                f"estimate and truth must have the same sizes, but block {term.block!r} has "
                f"shape {fitted} in the estimate and {true} in the truth"
            )
        axes = 1 + term.summed_axes + term.vector_axes
        if len(true) != axes:
            raise ValueError(f"block {term.block!r} must have {axes} axes, got shape {true}")


def _parts(
    loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure, moves: Iterable[str]
) -> dict[str, Any]:
    """The fields of a `Problem` in which the blocks `moves` move."""
    # A common factor of all masses (a shift of gamma or beta0) leaves the density unchanged, so
    # it is fixed here by giving both measures the same total.  It must not be minimised over:
    # the second sum of the loss has the masses as weights, so that scaling them to 0 makes it
    # vanish and a bad estimate would be charged the truth's total mass at most (the convention
    # gamma_k* = 0 of mlmoe (003), A.3, in turn depends on the labels when k > k*).
    masses = estimate.masses * (truth.total_mass / estimate.total_mass)
    k, true_k = masses.size, truth.n_atoms
    exponents = (float(loss.exact_exponent), float(loss.over_exponent))
    fixed_squares = np.zeros((k, true_k))
    fixed_costs = np.zeros((2, k, true_k))
    moving: list[FloatArray] = []
    for term in loss.terms:
        gaps = estimate.atoms[term.block][:, None] - truth.atoms[term.block][None]
        if term.block in moves:
            moving.append(gaps.reshape(k, true_k, -1))
            continue
        fixed_squares += np.sum(gaps.reshape(k, true_k, -1) ** 2, axis=-1)
        for side, exponent in enumerate(exponents):
            fixed_costs[side] += block_cost(term, gaps, exponent)
    widths = [part.shape[-1] for part in moving]
    return {
        "masses": masses,
        "true_masses": truth.masses,
        "exponents": exponents,
        "fixed_squares": fixed_squares,
        "fixed_costs": fixed_costs,
        "moving": np.concatenate([np.zeros((k, true_k, 0)), *moving], axis=-1),
        "starts": np.array([sum(widths[:b]) for b in range(len(widths))], dtype=np.int64),
    }


def _problem(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> Translations:
    return Translations(**_parts(loss, estimate, truth, loss.translated))


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
    return MixingMeasure(measure.masses, atoms)


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
    atoms = {name: block[order] for name, block in measure.atoms.items()}
    return MixingMeasure(measure.masses[order], atoms), order


def _centred(
    measure: MixingMeasure, blocks: tuple[str, ...]
) -> tuple[MixingMeasure, dict[str, FloatArray]]:
    """The measure with the mean over atoms of the blocks taken off, and those means."""
    means = {name: np.mean(measure.atoms[name], axis=0) for name in blocks}
    atoms = {
        name: block - means[name] if name in means else block
        for name, block in measure.atoms.items()
    }
    return MixingMeasure(measure.masses, atoms), means


def evaluate(loss: VoronoiLoss, estimate: MixingMeasure, truth: MixingMeasure) -> VoronoiResult:
    """A Voronoi loss between an estimate and the truth, with its parts.

    Fitted atom i falls in the cell of the nearest true atom, by the Euclidean distance in all
    coordinates; ties (up to rounding) go to the lowest index.  The estimate's masses are scaled
    to the truth's total.  For a loss with translated or scaled blocks the cells depend on the
    translation t or the factor c, which are searched (see Notes).

    Parameters
    ----------
    loss : VoronoiLoss
        The loss, as data.
    estimate, truth : MixingMeasure
        Measures with k and k* atoms and the same blocks.

    Returns
    -------
    VoronoiResult
        The value and its parts.

    Raises
    ------
    ValueError
        If the blocks are not those of the loss, or have different sizes, or a scaled loss meets
        a scale that is not positive or not shared by all atoms.

    Notes
    -----
    Cells: mlmoe (003), eq. (3).  The value does not depend on the labels of the fitted atoms, on
    a common factor of their masses, or on a common shift of translated blocks.  With translated
    blocks the value is an upper bound of the infimum, found by search.  In one dimension it is
    exact up to 1e-9 of the atoms' spread.  In more dimensions it is exact where the minimiser
    keeps its cells, as it does near the truth; where the infimum sits at a jump of the loss, far
    from the truth, it was found up to 1% too large in random tests.

    A common factor has one dimension.  The walls between cells are known in closed form, and
    between two of them the loss is convex, so that every interval is searched to its minimum.
    The value is an upper bound of the infimum: it may miss what happens between walls closer
    than 1e-9 (relative).  It does not depend on the estimate's own scale, because the search
    starts from the truth's.

    Examples
    --------
    >>> import numpy as np
    >>> from moestat.losses._engine import BlockTerm, VoronoiLoss, evaluate
    >>> from moestat.mixing import MixingMeasure
    >>> loss = VoronoiLoss("example", (BlockTerm("b", 0),), 1, 2, (), "example")
    >>> truth = MixingMeasure(np.array([1.0, 1.0]), {"b": np.array([0.0, 4.0])})
    >>> fit = MixingMeasure(np.array([1.0, 0.5, 0.5]), {"b": np.array([0.5, 4.0, 4.2])})
    >>> round(evaluate(loss, fit, truth).value, 12)
    0.52
    """
    check_measures(loss, estimate, truth)
    estimate, order = _sorted(estimate)
    scale = _scale(loss, estimate, truth)
    if loss.scaling is not None:
        estimate = scaled(estimate, loss.scaling.blocks, scale)
    estimate, fitted_mean = _centred(estimate, loss.translated)
    truth, true_mean = _centred(truth, loss.translated)
    problem = _problem(loss, estimate, truth)
    t = problem.search()
    cells = problem.cells(t[None])[0]
    exponent = np.array(problem.exponents)[problem.over(cells[None])[0]]
    sizes = np.bincount(cells, minlength=truth.n_atoms)
    translation: dict[str, FloatArray] = {}
    block_errors: dict[str, FloatArray] = {}
    used = 0
    squares = np.zeros((estimate.n_atoms, truth.n_atoms))
    for term in loss.terms:
        gaps = estimate.atoms[term.block][:, None] - truth.atoms[term.block][None]
        if term.block in loss.translated:
            size = gaps[0, 0].size
            shift = t[used : used + size].reshape(gaps.shape[2:])
            used += size
            translation[term.block] = shift + fitted_mean[term.block] - true_mean[term.block]
            gaps = gaps - shift
        squares += np.sum(gaps.reshape(*squares.shape, -1) ** 2, axis=-1)
        cost = problem.masses * block_cost(term, gaps[np.arange(cells.size), cells], exponent)
        errors = np.bincount(cells, weights=cost, minlength=truth.n_atoms)
        block_errors[term.block] = errors.astype(np.float64)
    in_cell = np.bincount(cells, weights=problem.masses, minlength=truth.n_atoms)
    mass_errors = np.abs(in_cell - truth.masses)
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
