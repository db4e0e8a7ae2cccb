"""Voronoi loss D2r of what the density of the inner-product gate determines.

The estimate is read as ``(c alpha_i, c beta_i)`` with ``c = tau* / tau``, and tau is not scored:
up to the truth's tau*, these are the ratios (alpha / tau, beta / tau).

Source: Pham et al. (2026), eq. (9), with the invariance behind eq. (8).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses import mlmoe_d2r
from moestat.metrics.losses._reference import weighted_sum
from moestat.metrics.losses._scaling import Scaling, matched


def reference(estimate, truth, cells, r=2.0):
    """Equation (9) without its term of tau."""

    def cost(gap, size):
        return mlmoe_d2r.cost(gap, r, blocks=("alpha", "beta"))

    return weighted_sum(estimate, truth, cells, cost)


LOSS = replace(
    mlmoe_d2r.LOSS,
    name="D2r-identified",
    terms=tuple(term for term in mlmoe_d2r.LOSS.terms if term.block != "tau"),
    source="Pham et al. (2026), eq. (9), at the truth's tau",
    scaling=Scaling(("alpha", "beta", "tau"), matched),
    reference=reference,
)
