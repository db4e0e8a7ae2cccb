"""The exponents that the theory knows for a block, and how wide an interval may be beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from moestat.rates.bounds import margin_of

__all__ = ["KNOWN", "known_exponents", "left_out", "margin"]

KNOWN: Mapping[str, tuple[Fraction, ...]] = {
    # Cells of one; of several; and by the facts resonance, flat-competitor and flat-neuron.
    "loss": (Fraction(-1, 2), Fraction(-1, 4), Fraction(-1, 8)),
    "expert": (Fraction(-1, 2), Fraction(-1, 4), Fraction(-1, 8)),
    # Fact edge-neuron, beside those of junction.
    "dense-L3": (Fraction(-1, 2), Fraction(-1, 3), Fraction(-1, 4)),
    "dense-L5": (Fraction(-1, 2), Fraction(-1, 3), Fraction(-1, 4)),
    # Intercepts of lines in cells of one, under competition, and of two to four (gauss-hermite).
    "b": tuple(Fraction(-1, q) for q in (2, 4, 8, 12, 16)),
    # Slopes and variances of lines in cells of one to four have the square root of these errors.
    "a": tuple(Fraction(-1, q) for q in (2, 4, 6, 8)),
    "nu": tuple(Fraction(-1, q) for q in (2, 4, 6, 8)),
    # Densities and regression functions: the parametric rate, or its root.
    "density": (Fraction(-1, 2), Fraction(-1, 4)),
}
"""Exponents of n by block, the fastest first; each is that of a fact or a theorem on this page."""
_DENSITIES = ("hellinger", "regression-error", "total variation")


def known_exponents(block: str) -> Sequence[Fraction]:
    """The exponents that the theory knows for a block or a quantity.

    Examples
    --------
    >>> [str(each) for each in known_exponents("dense-L3")]
    ['-1/2', '-1/3', '-1/4']
    """
    return KNOWN["density" if block in _DENSITIES else block if block in KNOWN else "loss"]


def margin(exponent: Fraction, block: str = "loss") -> float:
    """The half-width up to which an interval tells an exponent from the nearest known one.

    Parameters
    ----------
    exponent : Fraction
        Predicted exponent of n.
    block : str
        Block or quantity whose error it is.

    Returns
    -------
    float
        That of `moestat.rates.bounds.margin_of` beside `known_exponents` and 0.

    Examples
    --------
    >>> margin(Fraction(-1, 2)), margin(Fraction(-1, 4)), round(margin(Fraction(-1, 8), "b"), 3)
    (0.125, 0.0625, 0.021)
    """
    return margin_of(exponent, [Fraction(0), *known_exponents(block)])


def left_out(interval: tuple[float, float], block: str = "loss") -> tuple[Fraction, ...]:
    """The known exponents that an interval excludes.

    Examples
    --------
    >>> [str(each) for each in left_out((-0.55, -0.45))]
    ['-1/4', '-1/8']
    """
    low, high = interval
    return tuple(each for each in known_exponents(block) if not low <= each <= high)
