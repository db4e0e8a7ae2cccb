"""Voronoi losses: each one file of data for one engine; a new loss is registered here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moestat._registry import Registry
from moestat.losses import (
    mlmoe_d1,
    mlmoe_d2r,
    mlmoe_d2r_identified,
    mlmoe_d2r_orbit,
    mlmoe_d3,
    softmax_d1,
    softmax_d2r,
)
from moestat.losses._cells import CellErrors, cell_errors
from moestat.losses._engine import BlockTerm, VoronoiLoss, VoronoiResult, evaluate
from moestat.losses._scaling import Scaling
from moestat.mixing import MixingMeasure

__all__ = [
    "BlockTerm",
    "CellErrors",
    "LOSSES",
    "Scaling",
    "VoronoiLoss",
    "VoronoiResult",
    "cell_errors",
    "make_loss",
    "voronoi_loss",
    "voronoi_terms",
]

LOSSES: Registry[VoronoiLoss] = Registry("loss")
LOSSES.register(mlmoe_d1.LOSS)
LOSSES.register(softmax_d1.LOSS)
LOSSES.register(softmax_d2r.LOSS)
LOSSES.register(mlmoe_d2r.LOSS)
LOSSES.register(mlmoe_d2r_orbit.LOSS)
LOSSES.register(mlmoe_d2r_identified.LOSS)
LOSSES.register(mlmoe_d3.LOSS)


def make_loss(loss: str | Mapping[str, Any] | VoronoiLoss) -> VoronoiLoss:
    """A loss from its name, or from its table in a spec.

    Parameters
    ----------
    loss : str, mapping or VoronoiLoss
        A name in `LOSSES`; a table with a ``name`` and, for a loss with a free order, ``r``; or
        a loss, which is returned as it is.

    Returns
    -------
    VoronoiLoss
        The loss.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    ValueError
        If the table has no name or an unknown option, or r is below 1 or not taken by this loss.

    Examples
    --------
    >>> make_loss("D1").over_exponent
    2.0
    >>> make_loss({"name": "softmax-D2r", "r": 4}).over_exponent
    4.0
    """
    if isinstance(loss, VoronoiLoss):
        return loss
    options: dict[str, Any] = dict(loss) if isinstance(loss, Mapping) else {"name": loss}
    if "name" not in options:
        raise ValueError(f"loss: the table needs a name; known: {', '.join(LOSSES)}")
    chosen = LOSSES[options.pop("name")]
    unknown = sorted(set(options) - {"r"})
    if unknown:
        raise ValueError(f"loss {chosen.name!r} does not take these options: {', '.join(unknown)}")
    return chosen.with_order(options["r"]) if "r" in options else chosen


def voronoi_terms(
    estimate: MixingMeasure,
    truth: MixingMeasure,
    loss: str | Mapping[str, Any] | VoronoiLoss = "D1",
    **options: Any,
) -> VoronoiResult:
    """A Voronoi loss with its parts: cells, masses, blocks, translation, coverage.

    Parameters
    ----------
    estimate : MixingMeasure
        Fitted measure with k atoms.
    truth : MixingMeasure
        True measure with k* atoms and the same blocks.
    loss : str, mapping or VoronoiLoss
        The loss, as `make_loss` takes it.
    **options
        ``r``, the order of a loss that has a free one.

    Returns
    -------
    VoronoiResult
        The value and its parts; rates per cell and per block (`cell_errors`) are often clearer
        than the rate of the sum, which mixes terms of different orders.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    ValueError
        If the measures do not have the blocks of the loss or differ in size, or r is not valid, or
        the loss is up to a scale and a temperature is not positive or not shared by all atoms.

    Notes
    -----
    mlmoe (003), eqs. (3), (4), (9) and (12); arXiv 2310.14188 for the softmax gate.  Infima over
    translations and factors are found by search, which gives an upper bound.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    >>> truth = F.measure([0, 0, 1, 0, 1, 0, 1, -1, 2, -1])
    >>> fit = F.measure([0, 0, 1, 0, 1, 0, 1, -1, 2.5, -1])
    >>> terms = voronoi_terms(fit, truth)
    >>> terms.value, terms.block_errors["b"].tolist(), terms.empty_cells
    (0.5, [0.0, 0.5], 0)
    """
    table: Any = loss
    if options:
        given = dict(loss) if isinstance(loss, Mapping) else {"name": getattr(loss, "name", loss)}
        table = {**given, **options}
    return evaluate(make_loss(table), estimate, truth)


def voronoi_loss(
    estimate: MixingMeasure,
    truth: MixingMeasure,
    loss: str | Mapping[str, Any] | VoronoiLoss = "D1",
    **options: Any,
) -> float:
    """A Voronoi loss between an estimated and the true mixing measure.

    Parameters
    ----------
    estimate : MixingMeasure
        Fitted measure with k atoms.
    truth : MixingMeasure
        True measure with k* atoms and the same blocks.
    loss : str, mapping or VoronoiLoss
        The loss, as `make_loss` takes it: ``"D1"`` for the sigmoid gate; ``"softmax-D1"`` and
        ``"softmax-D2r"`` for the softmax gate; ``"D3"`` for the Euclidean score with a
        temperature; for the inner product with a temperature ``"D2r"`` as published,
        ``"D2r-orbit"`` with the estimate at the best common factor of alpha, beta and tau, and
        ``"D2r-identified"`` with it at the truth's tau, which is not scored.
    **options
        ``r``, the order of a loss that has a free one.

    Returns
    -------
    float
        The loss; 0 exactly when the measures agree up to the invariances of the gate.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    ValueError
        If the measures do not have the blocks of the loss or differ in size, or r is not valid, or
        the loss is up to a scale and a temperature is not positive or not shared by all atoms.

    Notes
    -----
    mlmoe (003), eq. (4): with cells ``A_j`` of eq. (3) and exponents 1 in cells of one atom, 2
    in larger ones,
    ``D1 = sum_j |sum_(i in A_j) exp(gamma_i) - exp(gamma*_j)| + sum_j sum_(i in A_j) exp(gamma_i)
    (|dalpha|^kappa + |dbeta|^kappa + sum_l |da_l|^kappa + |db_l|^kappa)``.
    D3 (eq. (12)) adds ``|dtau|^kappa``; D2r (eq. (9)) has the exponent r in every cell instead.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> truth = F.measure([0, 1, 0, 1, 0, 0, -1, 2])
    >>> fit = F.measure([3, 6, 0, 1, 3, 5, -1, 2])
    >>> round(voronoi_loss(fit, truth, "softmax-D1"), 9)
    0.0

    The same density of the inner-product gate, with all of alpha, beta and tau doubled:

    >>> F = family("multinomial", gate="sigmoid-inner", n_experts=1, n_classes=2)
    >>> truth, fit = F.measure([0, 1, 3, 0, 0, 0.5]), F.measure([0, 2, 6, 0, 0, 1])
    >>> [voronoi_loss(fit, truth, name) for name in ("D2r", "D2r-orbit", "D2r-identified")]
    [10.25, 0.0, 0.0]
    """
    return voronoi_terms(estimate, truth, loss, **options).value
