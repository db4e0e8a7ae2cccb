"""Every statement of the five papers on rates as a `Claim`, paper by paper."""

from __future__ import annotations

from moestat.papers.attention import claims as attention
from moestat.papers.claims.claim import Claim
from moestat.papers.compete import claims as compete
from moestat.papers.compete import training_claims as training
from moestat.papers.expert_count import claims as expert_count
from moestat.papers.mlmoe import claims as mlmoe

__all__ = ["CLAIMS"]


CLAIMS: dict[str, Claim] = {}
"""Claims by id, paper by paper."""
for _claim in (
    *mlmoe.CLAIMS,
    *attention.CLAIMS,
    *compete.CLAIMS,
    *training.CLAIMS,
    *expert_count.CLAIMS,
):
    if _claim.id in CLAIMS:
        raise ValueError(f"two claims are called {_claim.id!r}")
    CLAIMS[_claim.id] = _claim
