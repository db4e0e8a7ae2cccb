"""Voronoi loss of the Gaussian mixture of linear experts with a softmax gate.

``D = inf_t sum_j |sum_(i in A_j) exp(beta0_i) - exp(beta0*_j)| + sum_j sum_(i in A_j) exp(beta0_i)
cost_ij``, where, with ``dbeta1 = beta1_i - t - beta1*_j``, ``cost_ij = |dbeta1| + |da| + |db| +
|dnu|`` in a cell of one atom, and ``|dbeta1|^r + |db|^r + |da|^(r / 2) + |dnu|^(r / 2)`` in a cell
of m > 1 atoms, with r = rbar(m).

rbar(m) is the order up to which a system of polynomial equations must be taken before it has
trivial solutions only; rbar(2) = 4 and rbar(3) = 6.  For m >= 4 only rbar(m) >= 7 is known, and the
loss refuses estimates with such a cell.  The option ``r4`` is the order to take in cells of four,
on the caller's responsibility; larger cells are always refused.

In place of an infimum over a common shift of beta0, which is a common factor of the masses, these
are scaled to the truth's total, as in all losses.  Where the masses differ from the truth's by D in
sum, that adds at most D, so that the value is between the infimum and about twice it: rates are
the same.  While t is searched, cells that the loss refuses count with the last known order.

Source: Nguyen et al. (2023), whose text was not at hand; what is taken from it comes second-hand.
The orders of two and three atoms give the rates n^(-1/8) and n^(-1/12) that Nguyen et al. (2025),
Sec. 3 and App. J, quotes.  Which blocks have r and which r / 2 is as in the program published with
the paper (CRPE-SGaME, discrepancies.py), as are one norm per block and the variance as nu.  That
program takes no infimum over t, and has no order for cells of four.
"""

from __future__ import annotations

from dataclasses import replace

from moestat.base.validate import real_in
from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum

_ORDERS = (4.0, 6.0)  # rbar of two and of three atoms


def configure(r4: float | None = None) -> VoronoiLoss:
    """The loss with an order for cells of four."""
    if r4 is None:
        return LOSS
    order = real_in("r4", r4, 7.0)
    return replace(LOSS, over_exponent=(*_ORDERS, order), options={"r4": order})


def reference(estimate, truth, cells, r4=None):
    """The display above, with r of the size of the cell."""

    def cost(gap, size):
        beta1, a, b, nu = (norm(gap[name]) for name in ("beta1", "a", "b", "nu"))
        if size == 1:
            return beta1 + a + b + nu
        r = {2: 4.0, 3: 6.0, 4: r4}[size]
        return beta1**r + b**r + a ** (r / 2) + nu ** (r / 2)

    return weighted_sum(estimate, truth, cells, cost)


LOSS = VoronoiLoss(
    name="gaussian-softmax-D",
    terms=(
        BlockTerm("beta1", vector_axes=1),
        BlockTerm("a", vector_axes=1, over_share=0.5),
        BlockTerm("b", vector_axes=0),
        BlockTerm("nu", vector_axes=0, over_share=0.5),
    ),
    exact_exponent=1.0,
    over_exponent=_ORDERS,
    translated=("beta1",),
    source="Nguyen et al. (2023), loss of the over-specified setting; option r4 for cells of 4",
    gates=("softmax",),
    configure=configure,
    reference=reference,
)
