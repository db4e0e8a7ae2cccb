"""Facts behind the verdicts on Duy et al. (n.d.): what short proofs decide."""

from __future__ import annotations

from moestat.papers.claims.checks import Inequality
from moestat.papers.claims.fact import Fact

__all__ = ["FACTS"]

FACTS = (
    Fact(
        "noisy-routing",
        "Routing probabilities under uniform noise are Lipschitz in the scores",
        "expert-count",
        ("Lemma 1", "Lemma 25", "Lemma 26"),
        "Noise independent and uniform on [0, 1], M >= 2 experts.",
        "dp_m/dh_j is minus the density of a tie of m and j, at most 1; so |p - p'| <= 2 (M - 1)"
        " |h - h'| <= M^2 |h - h'|.  Lemma 25 is Lemma 1 for two exchanged scores, and in Lemma 26"
        " the noise makes up for less than 1.",
        "Every vector of scores; probabilities are computed exactly, as integrals of polynomials.",
        "",
        tuple(Inequality(f"lemma-{number}") for number in (1, 25, 26)),
    ),
    Fact(
        "router-gradients",
        "The router's gradients add up to 0",
        "expert-count",
        ("Lemma 8",),
        "The gradient of Algorithm 1 through pi of the chosen expert only.",
        "It is proportional to 1(m_i = m) - pi_m, which sums to 0 over m.",
        "Every sample and every parameter.",
        "",
        (Inequality("lemma-8"),),
    ),
)
