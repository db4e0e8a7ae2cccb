"""Voronoi loss D2r up to the common factor that the inner-product gate leaves free.

``inf_(c > 0) D2r(G(c), G*)`` with ``G(c) = sum_i exp(gamma_i) delta_(c alpha_i, c beta_i, c tau,
a_i, b_i)``, which has the density of G for every c: what is left of the published loss when the
estimate is read in its best representative.  The infimum is found by search and is an upper
bound.  It may be approached only as c goes to 0; then the loss is its limit, and no
representative attains it.

Source: Pham et al. (2026), eq. (9), with the invariance behind eq. (8).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses import mlmoe_d2r
from moestat.metrics.losses._scaling import Scaling, infimum

LOSS = replace(
    mlmoe_d2r.LOSS,
    name="D2r-orbit",
    source="Pham et al. (2026), eq. (9), infimum over the common factor of alpha, beta, tau",
    scaling=Scaling(("alpha", "beta", "tau"), infimum),
)
