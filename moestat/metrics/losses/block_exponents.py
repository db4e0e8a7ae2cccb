"""Voronoi loss with an exponent for each block, as `moestat.theory.rates` finds them.

``sum_j |sum_(i in A_j) m_i - m*_j| + sum_j sum_(i in A_j) m_i sum_blocks |delta_ij|^r``, with the
exponent r of the block in cells of one atom and in cells of several.

Source: the form of Pham et al. (2026), eq. (4), with exponents of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moestat.base.validate import real_in
from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum

__all__ = ["LOSS", "block_exponents"]


def reference(estimate, truth, cells, over, vectors=(), summed=(), **_):
    """The formula for given cells, atom by atom."""

    def cost(gap, size):
        total = 0.0
        for name, power in over.items():
            pieces = gap[name] if name in summed else [gap[name]]
            total += sum(norm(piece) ** (1.0 if size == 1 else power) for piece in pieces)
        return total

    return weighted_sum(estimate, truth, cells, cost)


def block_exponents(
    over: Mapping[str, float],
    exact: float = 1.0,
    vectors: Sequence[str] = (),
    summed: Sequence[str] = (),
    translated: Sequence[str] = (),
    masses: str | None = "normalised",
    left_out: Sequence[str] = (),
) -> VoronoiLoss:
    """The loss of given exponents.

    Parameters
    ----------
    over : mapping of str to float
        Block -> exponent in cells of several atoms, at least 1.
    exact : float
        Exponent in cells of one atom.
    vectors : sequence of str
        Blocks with an axis of inputs, inside one norm.
    summed : sequence of str
        Blocks with an axis of classes before it, over which norms are summed.
    translated : sequence of str
        Blocks over whose common translation the infimum is taken.
    masses : {"normalised", "given"} or None
        As in `VoronoiLoss`.
    left_out : sequence of str
        Blocks that are not compared.
    """
    powers = {name: real_in(f"over: {name}", power) for name, power in over.items()}
    exact = real_in("exact", exact)
    largest = max(powers.values())
    return VoronoiLoss(
        name="block-exponents",
        terms=tuple(
            BlockTerm(
                name,
                vector_axes=int(name in vectors),
                summed_axes=int(name in summed),
                over_share=power / largest,
            )
            for name, power in powers.items()
        ),
        exact_exponent=exact,
        over_exponent=largest,
        translated=tuple(translated),
        masses=masses,
        unseen=tuple(left_out),
        source="exponents of one's own, in the form of Pham et al. (2026), eq. (4)",
        options={
            "over": powers,
            "exact": exact,
            "vectors": list(vectors),
            "summed": list(summed),
            "translated": list(translated),
            "masses": masses,
            "left_out": list(left_out),
        },
        configure=block_exponents,
        reference=reference,
    )


LOSS = block_exponents(
    {"alpha": 2.0, "beta": 2.0, "a": 2.0, "b": 2.0}, vectors=("alpha", "a"), summed=("a", "b")
)
