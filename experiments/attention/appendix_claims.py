"""Claims of Yan et al. (2025), appendices: lemmas of proofs, and the partial score."""

from __future__ import annotations

from experiments.attention.claims import ERROR, FULL, HALF, NAMED, PARTIAL, QUARTER, RATE_NOTE
from experiments.claims.claim import Claim
from experiments.claims.kinds import Bound, Orbit, Slope
from experiments.claims.rules import SUPPORTS
from experiments.claims.scope import Models, Scope

__all__ = ["CLAIMS"]

CLAIMS = (
    Claim(
        "attention.lemma-1",
        "Lemma 1, App. B.1 (after van de Geer, Theorems 7.4 and 9.2)",
        "A tail bound of the error of the regression function from an entropy integral.",
        quotes="van de Geer (2000), Theorems 7.4 and 9.2",
    ),
    Claim(
        "attention.lemma-2",
        "Lemma 2, App. B.3, eq. (39)",
        "For polynomial experts and every r, the infimum of the distance over L2r <= eps,"
        " relative to L2r, goes to 0 with eps.",
        FULL,
        "L2r",
        checks=(Bound("attention-2", SUPPORTS),),
        note="The distance is 0 along the sequence, for every r alike.",
        proved=("polynomial-split",),
    ),
    Claim(
        "attention.proposition-3",
        "Proposition 3, eq. (51)",
        "Partial score, sparse regime: the error of the regression function falls at"
        " (log n / n)^(1/2).",
        PARTIAL,
        "L2",
        {"density": HALF},
        quotes="van de Geer (2000), Theorems 7.4 and 9.2",
        follows=("entropy-of-regressions",),
        checks=tuple(
            Slope("attention_partial", f"sigmoid, sparse, {expert}", ERROR, HALF)
            for expert in ("gelu", "linear")
        ),
    ),
    Claim(
        "attention.corollary-2",
        "Corollary 2",
        "Partial score, dense regime: it converges to the best approximations by more than N*"
        " atoms at (log n / n)^(1/2).",
        PARTIAL,
        "L2",
        {"density": HALF},
        quotes="van de Geer (2000), Theorems 7.4 and 9.2",
        follows=("entropy-of-regressions",),
        checks=tuple(
            Slope("attention_partial", f"sigmoid, dense, {expert}", ERROR, HALF)
            for expert in ("gelu", "linear")
        ),
        note="These approximations are exact, so the error to the truth is the one measured.",
    ),
    Claim(
        "attention.definition-3.networks",
        "Definition 3, Examples",
        f"{NAMED} are partial-strongly identifiable.",
        PARTIAL,
        note="As printed, with derivatives in (A, c).",
        fails=("opposite-gates", "four-atoms"),
    ),
    Claim(
        "attention.definition-3.networks.eta",
        "Definition 3, Examples",
        f"{NAMED} are partial-strongly identifiable, with eta in place of c.",
        PARTIAL,
        note="The printed exponents are in N^q, as those of eta are.",
        fails=("opposite-gates", "four-atoms"),
    ),
    Claim(
        "attention.definition-3.polynomial",
        "Definition 3, after the Examples",
        "Polynomial experts are partial-strongly identifiable.",
        PARTIAL,
        note="With eta in place of c.",
        fails=("opposite-gates", "shared-derivative"),
    ),
    Claim(
        "attention.theorem-4",
        "Theorem 4, eq. (53)",
        f"For partial-strongly identifiable experts, such as {NAMED}, the L2 distance is at"
        " least a constant times L4.",
        PARTIAL,
        "L4",
        {"loss": HALF},
        (Bound("attention-4"),),
        note="The explorer's GELU experts have no output weight.",
        vacuous=("opposite-gates",),
        examples=("shared-weights", "dead-neuron"),
        at_closure=("zero-expert",),
    ),
    Claim(
        "attention.theorem-4.polynomial",
        "App. C.1.2, Sample efficiency comparison",
        "Polynomial experts are estimated to eps from eps^-4 samples.",
        PARTIAL,
        "L4",
        {"over": QUARTER},
        (Bound("attention-4-linear"),),
        fails=("polynomial-split",),
    ),
    Claim(
        "attention.theorem-4.rate",
        "Theorem 4, display",
        "L4 of the least-squares estimate falls at (log n / n)^(1/2).",
        PARTIAL,
        "L4",
        {"loss": HALF, "exact": HALF, "over": QUARTER},
        (Slope("attention_partial", "sigmoid, sparse, gelu", "loss", HALF),),
        note=RATE_NOTE,
        vacuous=("opposite-gates",),
        examples=("shared-weights",),
    ),
    Claim(
        "attention.definition-4.networks",
        "Definition 4, Examples",
        f"{NAMED} are partial-weakly identifiable.",
        PARTIAL,
        fails=("opposite-gates", "four-atoms"),
    ),
    Claim(
        "attention.definition-4.polynomial",
        "Definition 4, Examples",
        "Polynomial experts are partial-weakly identifiable.",
        PARTIAL,
        fails=("opposite-gates", "shared-derivative"),
    ),
    Claim(
        "attention.theorem-5",
        "Theorem 5, eq. (54)",
        "For partial-weakly identifiable experts, the distance to the best approximations is at"
        " least a constant times L5.",
        PARTIAL,
        "L5",
        {"loss": HALF},
        (Bound("attention-5"),),
        note="As printed L5 is to one best approximation of many.",
        vacuous=("opposite-gates",),
        examples=("edge-neuron", "shared-weights", "polynomial-split"),
    ),
    Claim(
        "attention.theorem-5.rate",
        "Theorem 5, display",
        "The least L5 of the estimate to a best approximation falls at (log n / n)^(1/2).",
        PARTIAL,
        "dense-L5",
        {"loss": HALF},
        tuple(
            Slope("attention_partial", f"sigmoid, dense, {expert}", "dense-L5", HALF)
            for expert in ("relu", "linear")
        ),
        vacuous=("opposite-gates",),
        examples=("edge-neuron", "junction"),
    ),
    Claim(
        "attention.proposition-4",
        "Proposition 4, App. C.2.2",
        "Partial score: two measures with one regression function are equal.",
        PARTIAL,
        "L5",
        checks=(Orbit("attention-5", over=True),),
        note="For lines and for networks with an output weight every truth has such a partner.",
        fails=("polynomial-split", "shared-weights", "complements"),
    ),
    Claim(
        "attention.theorem-4.repaired",
        "Theorem 4, repaired",
        "In a neighbourhood of the truth, all fitted atoms near true ones, the bound by L4 holds"
        " for"
        " GELU networks without output weight, gates of over-specified atoms at A = 0.",
        PARTIAL,
        "L4",
        checks=(Bound("attention-4"),),
        note="Where the closure of the parameters holds alpha = beta = 0 it is false of all"
        " measures: an atom whose expert is 0 has the truth's function at any distance, see the"
        " fact zero-expert.",
        scope=Scope(
            Models("least-squares", ("sigmoid-partial",), ("gelu",)),
            place="App. C.1.2",
            conditions=("A = 0",),
            near=True,
        ),
        repairs="attention.theorem-4",
    ),
)
