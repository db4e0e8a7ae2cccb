"""Every statement of the five papers on rates as a `Claim`, and every `Fact` behind verdicts."""

from __future__ import annotations

from experiments.attention import appendix_claims as attention_appendix
from experiments.attention import claims as attention
from experiments.attention import facts as attention_facts
from experiments.claims.claim import Claim
from experiments.claims.fact import Fact
from experiments.compete import claims as compete
from experiments.compete import facts as compete_facts
from experiments.compete import training_claims as training
from experiments.expert_count import claims as expert_count
from experiments.expert_count import facts as expert_count_facts
from experiments.mlmoe import claims as mlmoe
from experiments.mlmoe import facts as mlmoe_facts
from experiments.mlmoe import sentence_claims as mlmoe_sentences

__all__ = ["CLAIMS", "FACTS"]


CLAIMS: dict[str, Claim] = {}
"""Claims by id, paper by paper."""
for _claim in (
    *mlmoe.CLAIMS,
    *mlmoe_sentences.CLAIMS,
    *attention.CLAIMS,
    *attention_appendix.CLAIMS,
    *compete.CLAIMS,
    *training.CLAIMS,
    *expert_count.CLAIMS,
):
    if _claim.id in CLAIMS:
        raise ValueError(f"two claims are called {_claim.id!r}")
    CLAIMS[_claim.id] = _claim

FACTS: dict[str, Fact] = {}
"""Facts by name, paper by paper."""
for _fact in (
    *mlmoe_facts.FACTS,
    *attention_facts.FACTS,
    *compete_facts.FACTS,
    *expert_count_facts.FACTS,
):
    if _fact.name in FACTS:
        raise ValueError(f"two facts are called {_fact.name!r}")
    FACTS[_fact.name] = _fact
