"""The rate calculator: a family and the sizes of its Voronoi cells in, predicted exponents out.

What it returns is what the papers state, exponents of n with log factors left out; whether a
statement holds is another matter, which the claims of the five papers judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from moestat.base.validate import positive_int, short
from moestat.model.family import Family
from moestat.theory.polynomial_systems import rbar

_HALF = Fraction(-1, 2)
_QUARTER = Fraction(-1, 4)
_NONE = Fraction(0)
_Exponent = Callable[[str, int], Fraction]


@dataclass(frozen=True)
class CellExponents:
    """Predicted exponents of the errors in one Voronoi cell.

    Parameters
    ----------
    size : int
        Fitted atoms in the cell.
    blocks : mapping of str to Fraction
        Block -> exponent of n of its error; 0 for slower than any power.  In a cell of several
        atoms the single masses are not estimated, and their block is left out.
    expert : Fraction
        Exponent of the error of the expert in sup norm.
    mass : Fraction or None
        Exponent of the error of the cell's total mass; None where nothing is stated.
    """

    size: int
    blocks: dict[str, Fraction]
    expert: Fraction
    mass: Fraction | None


@dataclass(frozen=True)
class PredictedExponents:
    """What a theorem predicts for a family.  Build one with `predicted_exponents`.

    Parameters
    ----------
    cells : tuple of CellExponents
        One per true atom, in the order given.
    loss : str
        Name of the Voronoi loss of the theorem.
    loss_exponent : Fraction or None
        Its exponent; None where the theorem is a lower bound on the risk.
    source : str
        Paper and theorem.
    condition : str
        What the theorem asks for beyond the family.
    """

    cells: tuple[CellExponents, ...]
    loss: str
    loss_exponent: Fraction | None
    source: str
    condition: str = ""


@dataclass(frozen=True)
class _Theorem:
    """A theorem: where it applies, and the exponent of a block in a cell of m atoms."""

    gates: tuple[str, ...]
    likelihood: str
    exponent: _Exponent
    loss: str
    source: str
    experts: tuple[str, ...] = ("linear",)
    regime: str | None = None
    condition: str = ""
    largest: int | None = None

    @property
    def is_lower_bound(self) -> bool:
        """Whether it bounds the risk from below, and states nothing of masses and the loss."""
        return self.exponent in (_slow, _slow_over)


def _regular(block: str, m: int) -> Fraction:
    return _HALF if m == 1 else _QUARTER


def _parametric(block: str, m: int) -> Fraction:
    return _HALF


def _slow(block: str, m: int) -> Fraction:
    return _NONE


def _slow_over(block: str, m: int) -> Fraction:
    return _HALF if m == 1 else _NONE


def _gaussian_softmax(block: str, m: int) -> Fraction:
    """In cells of m > 1: order rbar(m) for gates and intercepts, half of it for the others."""
    if m == 1:
        return _HALF
    return Fraction(-1, 2 * rbar(m) if block in ("beta1", "b") else rbar(m))


_IDENTIFIABLE = "strongly identifiable experts (Definition 1)"
_THEOREMS = (
    _Theorem(("sigmoid",), "multinomial", _regular, "D1", "Pham et al. (2026), Theorem 1"),
    _Theorem(
        ("sigmoid-inner",),
        "multinomial",
        _slow,
        "D2r",
        "Pham et al. (2026), Theorem 2",
    ),
    _Theorem(
        ("sigmoid-euclidean",), "multinomial", _regular, "D3", "Pham et al. (2026), Theorem 3"
    ),
    _Theorem(
        ("softmax",),
        "multinomial",
        _regular,
        "softmax-D1",
        "Pham et al. (2026), Table 1, of Nguyen et al. (2024)",
        regime="1",
        condition="every true expert has a slope that is not 0",
    ),
    _Theorem(
        ("softmax",),
        "multinomial",
        _slow,
        "softmax-D2r",
        "Pham et al. (2026), Table 1, of Nguyen et al. (2024)",
        regime="2",
        condition="some true expert has slopes 0 only",
    ),
    _Theorem(
        ("softmax",),
        "gaussian",
        _gaussian_softmax,
        "gaussian-softmax-D",
        "Nguyen et al. (2025), App. J, remark (iii), of Nguyen et al. (2023); rbar(m) = 2m",
    ),
    _Theorem(
        ("competition", "competition-normalised", "competition-free"),
        "gaussian",
        _regular,
        "competition-L2",
        "Nguyen et al. (2025), Theorem J.1",
    ),
    _Theorem(
        ("competition", "competition-normalised", "competition-free"),
        "gaussian",
        _regular,
        "competition-L1",
        "Nguyen et al. (2025), Theorem 3.2",
        experts=("ffn", "activation", "polynomial"),
        condition="experts that are algebraically independent (Sec. 3)",
    ),
    _Theorem(
        ("competition-top",),
        "gaussian",
        _regular,
        "competition-top-D",
        "Pham et al. (2024), Theorem 4.2",
        experts=("linear", "ffn", "activation", "polynomial"),
        largest=1,
    ),
    _Theorem(
        ("sigmoid-quadratic",),
        "least-squares",
        _regular,
        "L1",
        "Yan et al. (2025), Theorem 1",
        experts=("activation",),
        regime="sparse",
        condition=_IDENTIFIABLE,
    ),
    _Theorem(
        ("sigmoid-quadratic",),
        "least-squares",
        _slow,
        "L2r",
        "Yan et al. (2025), Theorem 2",
        experts=("polynomial",),
        regime="sparse",
    ),
    _Theorem(
        ("sigmoid-quadratic",),
        "least-squares",
        _parametric,
        "L3",
        "Yan et al. (2025), Theorem 3",
        experts=("activation", "polynomial"),
        regime="dense",
        condition="weakly identifiable experts (Definition 2)",
    ),
    _Theorem(
        ("sigmoid-partial",),
        "least-squares",
        _regular,
        "L4",
        "Yan et al. (2025), Theorem 4",
        experts=("activation", "polynomial"),
        regime="sparse",
        condition="partial-strongly identifiable experts (Definition 3)",
    ),
    _Theorem(
        ("sigmoid-partial",),
        "least-squares",
        _parametric,
        "L5",
        "Yan et al. (2025), Theorem 5",
        experts=("activation", "polynomial"),
        regime="dense",
        condition="partial-weakly identifiable experts (Definition 4)",
    ),
    *(
        _Theorem(
            ("softmax-quadratic",),
            "least-squares",
            exponent,
            loss,
            "Yan et al. (2025), Table 1, of its reference [1]",
            experts=(expert,),
            regime=regime,
        )
        for regime in ("sparse", "dense")
        for expert, exponent, loss in (
            ("activation", _regular, "softmax-L1"),
            ("polynomial", _slow_over, "softmax-L2r"),
        )
    ),
)


def predicted_exponents(
    family: Family, cells: Iterable[int], regime: str | None = None
) -> PredictedExponents:
    """Exponents of n that the papers predict, cell by cell and block by block.

    Parameters
    ----------
    family : Family
        Gate, expert and likelihood; its number of atoms does not matter.
    cells : iterable of int
        For each true atom, how many fitted atoms are in its Voronoi cell.
    regime : str, optional
        For gates whose theory has two regimes: ``"1"`` or ``"2"`` for the multinomial softmax
        gate (Nguyen et al. (2024)), ``"sparse"`` or ``"dense"`` for quadratic gates (Yan et al.
        (2025), Sec. 3).

    Returns
    -------
    PredictedExponents
        Exponents, loss, citation and condition.

    Raises
    ------
    ValueError
        If no theorem of the papers covers the family, the regime or a cell.

    Notes
    -----
    A theorem bounds the error from above, so that an estimator may be faster at a given truth.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=3)
    >>> found = predicted_exponents(F, cells=(1, 2))
    >>> {block: str(exponent) for block, exponent in found.cells[1].blocks.items()}
    {'beta1': '-1/8', 'b': '-1/8', 'a': '-1/4', 'nu': '-1/4'}
    >>> found.source
    'Nguyen et al. (2025), App. J, remark (iii), of Nguyen et al. (2023); rbar(m) = 2m'
    """
    sizes = [positive_int(f"cells[{j}]", size) for j, size in enumerate(cells)]
    if not sizes:
        raise ValueError("cells must have one size per true atom, got none")
    theorem = _theorem_on(family, regime)
    if theorem.largest is not None and max(sizes) > theorem.largest:
        raise ValueError(
            f"{theorem.source} is on cells of {theorem.largest} only, got cells of {max(sizes)}"
        )
    return PredictedExponents(
        tuple(_cell(family, theorem, size) for size in sizes),
        theorem.loss,
        None if theorem.is_lower_bound else _HALF,
        theorem.source,
        theorem.condition,
    )


def _theorem_on(family: Family, regime: str | None) -> _Theorem:
    gate = family.gate.name
    expert = family.expert.name
    likelihood = family.likelihood.name
    found = [
        theorem
        for theorem in _THEOREMS
        if gate in theorem.gates and likelihood == theorem.likelihood and expert in theorem.experts
    ]
    if not found:
        raise ValueError(
            f"no theorem of the papers covers {likelihood} {expert} experts under the gate {gate!r}"
        )
    for theorem in found:
        if theorem.regime == regime:
            return theorem
    allowed = [theorem.regime for theorem in found if theorem.regime is not None]
    wanted = " or ".join(map(repr, allowed)) or "None, since there is one regime"
    raise ValueError(f"regime must be {wanted} for the gate {gate!r}, got {short(regime)}")


def _cell(family: Family, theorem: _Theorem, size: int) -> CellExponents:
    # Gates that are not normalised have the centre of the score as their mass.
    mass_block = family.gate.mass
    blocks = {
        name: theorem.exponent(name, size)
        for name in family.blocks
        if name != mass_block or (size == 1 and not theorem.is_lower_bound)
    }
    expert = {
        name
        for channel in family.expert.channels(
            family.n_features, family.likelihood.n_responses(family.n_classes)
        )
        for name in (channel.intercept, channel.slope)
    }
    return CellExponents(
        size=size,
        blocks=blocks,
        expert=max(value for name, value in blocks.items() if name in expert),
        mass=None if theorem.is_lower_bound else _HALF,
    )
