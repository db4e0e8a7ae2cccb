"""Voronoi losses: each one file of data for one engine; a new loss is registered here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moestat.base.door import door
from moestat.base.registry import Registry, configured
from moestat.metrics.losses import (
    attention_dense,
    attention_l1,
    attention_l2r,
    attention_l3,
    block_exponents,
    competition_l1,
    competition_l2,
    competition_top_d,
    gaussian_softmax_d,
    mlmoe_d1,
    mlmoe_d2r,
    mlmoe_d2r_identified,
    mlmoe_d2r_orbit,
    mlmoe_d3,
    softmax_d1,
    softmax_d2r,
)
from moestat.metrics.losses._cells import CellErrors, cell_errors
from moestat.metrics.losses._engine import LossTo, evaluate
from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss, VoronoiResult
from moestat.metrics.losses._scaling import Scaling
from moestat.model.measure import MixingMeasure

__all__ = [
    "BlockTerm",
    "CellErrors",
    "LOSSES",
    "LossTo",
    "Scaling",
    "VoronoiLoss",
    "VoronoiResult",
    "cell_errors",
    "make_loss",
    "voronoi_loss",
    "voronoi_terms",
]

LOSSES: Registry[VoronoiLoss] = Registry("loss", "moestat.losses")
LOSSES.register(mlmoe_d1.LOSS)
LOSSES.register(softmax_d1.LOSS)
LOSSES.register(softmax_d2r.LOSS)
LOSSES.register(mlmoe_d2r.LOSS)
LOSSES.register(mlmoe_d2r_orbit.LOSS)
LOSSES.register(mlmoe_d2r_identified.LOSS)
LOSSES.register(mlmoe_d3.LOSS)
LOSSES.register(competition_l1.LOSS)
LOSSES.register(competition_l2.LOSS)
LOSSES.register(competition_top_d.LOSS)
LOSSES.register(gaussian_softmax_d.LOSS)
LOSSES.register(attention_l1.LOSS)
LOSSES.register(attention_l1.PARTIAL)
LOSSES.register(attention_l1.SOFTMAX)
LOSSES.register(attention_l1.SOFTMAX_PARTIAL)
LOSSES.register(attention_l2r.LOSS)
LOSSES.register(attention_l2r.SOFTMAX)
LOSSES.register(attention_l3.LOSS)
LOSSES.register(attention_l3.PARTIAL)
LOSSES.register(attention_l3.SOFTMAX)
LOSSES.register(attention_l3.SOFTMAX_PARTIAL)
LOSSES.register(attention_dense.LOSS)
LOSSES.register(attention_dense.PARTIAL)
LOSSES.register(block_exponents.LOSS)


def make_loss(loss: str | Mapping[str, object] | VoronoiLoss) -> VoronoiLoss:
    """A loss from its name, or from its table in a spec.

    Parameters
    ----------
    loss : str, mapping or VoronoiLoss
        A name in `LOSSES`; a table with a ``name`` and the loss's options; or a loss, which is
        returned as it is.  Options: ``r`` for a loss with a free order; ``masses``
        (``"normalised"`` or ``"given"``) for the losses of competition; ``active``, the gate's
        number of active experts, for top-K competition; ``r4`` for cells of four atoms of the
        Gaussian softmax loss.

    Returns
    -------
    VoronoiLoss
        The loss.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    ValueError
        If the table has no name, or an option that is unknown or out of range.

    Examples
    --------
    >>> make_loss("D1").over_exponent
    2.0
    >>> make_loss({"name": "softmax-D2r", "r": 4}).over_exponent
    4.0
    >>> make_loss({"name": "competition-top-D", "active": 2}).active
    2
    """
    if isinstance(loss, VoronoiLoss):
        return loss
    options: dict[str, Any] = dict(loss) if isinstance(loss, Mapping) else {"name": loss}
    free_order = "r" in options
    r = options.pop("r", None)
    chosen = configured(LOSSES, options)
    return chosen.with_order(r) if free_order else chosen


@door()
def voronoi_terms(
    estimate: MixingMeasure,
    truth: MixingMeasure,
    loss: str | Mapping[str, object] | VoronoiLoss = "D1",
    **options: object,
) -> VoronoiResult:
    """A Voronoi loss with its parts: cells, masses, blocks, translation, coverage.

    Parameters
    ----------
    estimate, truth, loss, **options
        As in `voronoi_loss`.

    Returns
    -------
    VoronoiResult
        The value and its parts; rates per cell and per block (`cell_errors`) are often clearer
        than the rate of the sum, which mixes terms of different orders.

    Raises
    ------
    ValueError
        As `voronoi_loss`.

    Notes
    -----
    Pham et al. (2026), eqs. (3), (4), (9) and (12); Nguyen et al. (2024) for the softmax gate;
    Nguyen et al. (2025),
    eqs. (6) and (14), and Pham et al. (2024), eq. (9), for competition; Nguyen et al. (2023) for
    the Gaussian likelihood with a softmax gate.  Infima over translations and factors are found
    by search, which gives an upper bound; those over hidden units and signs are exact.

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
    table: str | Mapping[str, object] | VoronoiLoss = loss
    if options:
        given = dict(loss) if isinstance(loss, Mapping) else {"name": getattr(loss, "name", loss)}
        table = {**given, **options}
    return evaluate(make_loss(table), estimate, truth)


@door()
def voronoi_loss(
    estimate: MixingMeasure,
    truth: MixingMeasure,
    loss: str | Mapping[str, object] | VoronoiLoss = "D1",
    **options: object,
) -> float:
    """A Voronoi loss between an estimated and the true mixing measure.

    Parameters
    ----------
    estimate : MixingMeasure
        Fitted measure with k atoms.
    truth : MixingMeasure
        True measure with k* atoms and the same blocks.  Where the loss compares masses,
        two of them may not be equal.
    loss : str, mapping or VoronoiLoss
        The loss, as `make_loss` takes it: ``"D1"`` for the sigmoid gate; ``"softmax-D1"`` and
        ``"softmax-D2r"`` for the softmax gate; ``"D3"`` for the Euclidean score with a
        temperature; for the inner product with a temperature ``"D2r"`` as published,
        ``"D2r-orbit"`` with the estimate at the best common factor of alpha, beta and tau, and
        ``"D2r-identified"`` with it at the truth's tau, which is not scored.  With a Gaussian
        likelihood: ``"gaussian-softmax-D"`` for linear experts and the softmax gate;
        ``"competition-L1"`` for competition, ``"competition-L2"`` for linear experts only, and
        ``"competition-top-D"`` for top-K competition.  With quadratic gates: ``"L1"``, ``"L2r"``
        and ``"L3"``, ``"L4"`` and ``"L5"`` for partial scores, the same after ``"softmax-"``, and
        ``"dense-L3"`` and ``"dense-L5"`` to the set of best approximations.
    **options
        Options of the loss, such as ``r`` of one with a free order.

    Returns
    -------
    float
        The loss; 0 exactly when the measures agree up to the invariances of the gate.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    ValueError
        If the measures do not have the blocks of the loss or differ in size or expert, or an
        option is not valid, or the loss is up to a scale and a temperature is not positive or not
        shared by all atoms, or a cell has more atoms than the loss has exponents for.

    Notes
    -----
    Pham et al. (2026), eq. (4): with cells ``A_j`` of eq. (3) and exponents 1 in cells of one atom,
    2 in larger ones,
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

    Competition with every atom of the truth twice has the truth's density; the printed loss with
    unit masses does not see that:

    >>> F = family("gaussian", gate="competition", n_experts=2)
    >>> truth = F.measure([1, 2, 0, -1, -1, 0])
    >>> fit = F.with_experts(4).measure([1, 2, 0, 1, 2, 0, -1, -1, 0, -1, -1, 0])
    >>> voronoi_loss(fit, truth, "competition-L1", masses="given")
    2.0
    >>> voronoi_loss(fit, truth, "competition-L1")
    0.0
    """
    return voronoi_terms(estimate, truth, loss, **options).value


def __dir__() -> list[str]:
    return sorted(__all__)
