"""Records of a Voronoi loss and of its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import positive_int, real_in, short
from moestat.metrics.losses._scaling import Scaling
from moestat.model.measure import MixingMeasure
from moestat.model.members import Gate

# Cells of more atoms than this have their masses compared.
MASS_LEVELS = {"all": 0, "shared": 1, "none": 1 << 30}


@dataclass(frozen=True)
class BlockTerm:
    """How one block of an atom enters a Voronoi loss."""

    block: str
    """Name of the block in the mixing measure, or a name of the term's own when it is `joint`."""
    vector_axes: int
    """Number of trailing axes inside one Euclidean norm: 1 for ``alpha`` (k, d), 0 for
    ``beta`` (k,)."""
    summed_axes: int = 0
    """Number of axes between the atoms and the norm, over which norms are summed: 1 (classes) for
    ``a`` (k, K - 1, d) and ``b`` (k, K - 1)."""
    joint: bool = False
    """Whether the term is one Euclidean norm over all blocks of the expert, whatever they are."""
    over_share: float = 1.0
    """Factor of the loss's exponents in cells of several atoms."""
    in_cells: bool = True
    """Whether the block is part of the distance that makes the cells."""
    exact_only: bool = False
    """Whether the block enters in cells of one atom only."""
    log_mass: bool = False
    """Whether the block is the logarithm of the masses, as the loss reads them."""


@dataclass(frozen=True)
class VoronoiLoss:
    """A Voronoi loss between mixing measures, as data.

    With the Voronoi cells ``A_j`` of the true atoms, masses m_i and exponent ``kappa_j`` =
    `exact_exponent` where ``|A_j| <= 1`` and `over_exponent` where ``|A_j| > 1``, the loss is
    ``sum_j |sum_(i in A_j) m_i - m*_j| + sum_j sum_(i in A_j) m_i sum_terms |delta_ij|^kappa_j``,
    minimised over a common translation of the blocks in `translated`, or taken at the common
    factor of some blocks that `scaling` chooses.  Every difference ``delta_ij`` is taken at the
    best of the expert's symmetries, such as an order of its hidden units.

    Raises
    ------
    ValueError
        If there are both translated and scaled blocks, or either in a loss without masses or of
        some cells only, or an unknown kind of masses.
    """

    name: str
    """Name in the registry."""
    terms: tuple[BlockTerm, ...]
    """The blocks that enter, which must be all blocks of the measures, up to the last
    block of `scaling`."""
    exact_exponent: float
    """Exponent in cells of one atom."""
    over_exponent: float | tuple[float, ...]
    """Exponent in cells of several atoms; a tuple has one for cells of two atoms, three and so on,
    and the loss refuses larger cells."""
    translated: tuple[str, ...]
    """Blocks over whose common translation the infimum is taken; their terms have no
    summed axes."""
    source: str
    """Paper and equation."""
    free_order: bool = False
    """Whether the order r is the caller's choice; then both exponents are r."""
    scaling: Scaling | None = None
    """Blocks of the estimate that are multiplied by a common factor first, and which factor; None
    for a loss that takes the estimate as it is."""
    masses: str | None = "normalised"
    """``"normalised"`` when the estimate's masses are scaled to the truth's total first,
    ``"given"`` when they are taken as they are, None when the loss has no masses: then all
    ``m_i`` are 1 and the first sum is left out."""
    weighted: bool = True
    """Whether the costs of an atom have its mass as a factor."""
    mass_cells: str = "all"
    """Cells whose masses are compared: "all", "shared" (those of several atoms) or "none"."""
    represent: Callable[[MixingMeasure, MixingMeasure], MixingMeasure] | None = field(
        default=None, repr=False
    )
    """``represent(estimate, truth)``: the member of a set of truths that is nearest to the
    estimate, atom by atom; it takes the place of the truth, and its atoms are the cells."""
    active: int | None = None
    """Number of cells that enter, those with the largest sums: the maximum over all subsets of this
    many cells.  None for all."""
    unseen: tuple[str, ...] = ()
    """Blocks of the measures that the loss does not compare, as they are not identified."""
    gates: tuple[str, ...] = ()
    """Names of the gates that the loss was made for; empty for any with its blocks."""
    options: Mapping[str, object] = field(default_factory=dict, hash=False)
    """Options that made this variant of the loss."""
    configure: Callable[..., VoronoiLoss] | None = field(default=None, repr=False)
    """``configure(**options)``: another variant; None for a loss without options but `r`."""
    reference: Callable[..., float] | None = field(default=None, repr=False, compare=False)
    """``reference(estimate, truth, cells, **options)``: the printed formula in plain NumPy for
    given cells, of measures whose masses, translation and factor are as the loss compares them;
    every registered loss has one, and tests compare the engine with it."""

    def __post_init__(self) -> None:
        if self.translated and self.scaling is not None:
            raise ValueError(f"loss {self.name!r}: blocks are translated or scaled, not both")
        if self.masses not in ("normalised", "given", None):
            raise ValueError(f"masses must be 'normalised' or 'given', got {short(self.masses)}")
        if self.mass_cells not in MASS_LEVELS:
            raise ValueError(
                f"mass_cells must be one of {list(MASS_LEVELS)}: {short(self.mass_cells)}"
            )
        if self.active is not None:
            positive_int("active", self.active)
        moves = self.translated or self.scaling is not None
        if moves and (self.masses is None or self.active is not None):
            raise ValueError(f"loss {self.name!r}: an infimum takes the masses and all cells")

    @property
    def joint(self) -> bool:
        """Whether all blocks of the expert enter in one norm."""
        return any(term.joint for term in self.terms)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of all blocks that the measures must have, besides those of a joint term."""
        names = [term.block for term in self.terms if not term.joint and not term.log_mass]
        scaled = self.scaling.blocks if self.scaling else ()
        return tuple(dict.fromkeys([*names, *scaled, *self.unseen]))

    def exponents(self, term: BlockTerm) -> tuple[float, ...]:
        """Exponents of one term in cells of one atom, of two, and so on; the last for all more."""
        over = (
            self.over_exponent if isinstance(self.over_exponent, tuple) else (self.over_exponent,)
        )
        return (float(self.exact_exponent), *(term.over_share * float(power) for power in over))

    def check_gate(self, gate: Gate) -> None:
        """Raise unless moves that do not change this loss do not change the gate's density either.

        Two gates may have the same blocks, so that their measures do not tell them apart.

        Parameters
        ----------
        gate : Gate
            Gate of the fitted model.

        Raises
        ------
        ValueError
            If the loss takes an infimum over translations or factors that change the density, or
            takes masses as given although a common factor does not change it, or was made for
            other gates or for another number of active experts.

        Examples
        --------
        >>> from moestat.model.gates import GATES
        >>> from moestat.metrics.losses import LOSSES
        >>> LOSSES["D2r-orbit"].check_gate(GATES["sigmoid-inner"])
        >>> LOSSES["D2r-orbit"].check_gate(GATES["sigmoid-euclidean"])
        Traceback (most recent call last):
        ...
        ValueError: loss 'D2r-orbit' does not see a common factor of alpha, beta, tau, but it \
changes the density of gate 'sigmoid-euclidean'
        """
        if self.gates and gate.name not in self.gates:
            raise ValueError(
                f"loss {self.name!r} was made for {' and '.join(map(repr, self.gates))} "
                f"({self.source}), not for gate {gate.name!r}"
            )
        if self.active is not None and gate.n_active != self.active:
            raise ValueError(
                f"loss {self.name!r} has active = {self.active}, but gate {gate.name!r} has "
                f"{gate.n_active}: they must be the same number"
            )
        if self.masses == "given" and gate.mass in gate.translations:
            raise ValueError(
                f"loss {self.name!r} takes the masses as given, but a common factor of them does "
                f"not change the density of gate {gate.name!r}: take masses = 'normalised'"
            )
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
        return replace(self, exact_exponent=order, over_exponent=order, options={"r": order})


@dataclass(frozen=True)
class VoronoiResult:
    """The value of a Voronoi loss and its parts.

    ``value == mass_errors.sum() + sum(block_errors[name].sum() for name in block_errors)``.
    """

    value: float
    """The loss."""
    translation: Mapping[str, FloatArray]
    """Block -> the common vector t that was taken off the estimate, ``estimate - t ~ truth``; empty
    for a loss without translations."""
    assignment: IntArray
    """True atom whose cell holds each fitted atom; shape (k,)."""
    cell_sizes: IntArray
    """Number of fitted atoms in each cell; shape (k*,)."""
    mass_errors: FloatArray
    """``|sum_(i in A_j) m_i - m*_j|``, with the estimate's masses scaled to the truth's total
    unless the loss takes them as given; 0 for a loss without masses; shape (k*,)."""
    block_errors: Mapping[str, FloatArray]
    """Contribution of each block and cell to the value; 0 for a cell that does not
    enter; shape (k*,)."""
    empty_cells: int
    """Cells without a fitted atom.  They add only their mass to the value."""
    coverage: float
    """Sum over true atoms of the Euclidean distance to the nearest fitted atom, after the
    translation or scaling.  Unlike the loss it sees how far an empty cell is from the estimate."""
    loss: VoronoiLoss
    """The loss that was evaluated."""
    scale: float = 1.0
    """Factor by which the scaled blocks of the estimate were multiplied, 1 for a loss without
    scaling.  0 says that the infimum is only approached as the factor goes to 0; then the parts
    are those of the limit, in which the scaled blocks are 0."""
