"""Facts behind the verdicts on Duy et al. (n.d.): what short proofs decide."""

from __future__ import annotations

from experiments.claims.fact import Fact
from experiments.claims.kinds import Inequality

__all__ = ["FACTS"]

FACTS = (
    Fact(
        "noisy-routing",
        "Routing probabilities under uniform noise are Lipschitz in the scores",
        "expert-count",
        ("Lemma 1", "Lemma 17", "Lemma 21", "Lemma 25", "Lemma 26"),
        "Noise independent and uniform on [0, 1], M >= 2 experts.",
        "p_m is an integral of a product of M - 1 factors in [0, 1], each 1-Lipschitz in a"
        " difference of scores: |p - p'| <= 2 (M - 1) |h - h'| <= M^2 |h - h'|.  Lemma 25 is"
        " Lemma 1 for two exchanged scores, and in Lemma 26 the noise makes up for less than 1."
        "  Gates: dpi_m = pi_m (dh_m - sum_j pi_j dh_j), and a ratio of gates is exp(h_m - h_j)."
        "  Each proof is written out in docs/theory/short_proofs.md.",
        "Every vector of scores; probabilities are computed exactly, as integrals of polynomials.",
        "",
        tuple(Inequality(f"lemma-{number}") for number in (1, 17, 21, 25, 26)),
    ),
    Fact(
        "concentration",
        "Draws of the data, of the weights and of the routes stay near their means",
        "expert-count",
        ("Lemma 4", "Lemma 5", "Lemma 7", "Lemma 9"),
        "Definition 1; the order hides logarithms of n, d, M, J and 1/delta.  In Lemma 9 the mean"
        " is over the routing noise of one step, at given weights; its first display has a bar out"
        " of place.",
        "Sums of n independent terms of size at most B deviate by more than B sqrt(2 n log(2 S /"
        " delta)) with probability at most delta for S sums (Hoeffding): Lemma 4 with B from the"
        " ends of the amplitudes' laws, Lemma 9 with B = 3 (max |<w, x>|)^2 max |<x, v>| and for"
        " the router 2 max |f| max |<x, v>|, which are of order (sigma_0 + eta t)^2 and ^3."
        "  Norms of N(0, I/d) exceed (1 + 2 sqrt(u/d) + 2 u/d)^(1/2) with probability e^-u"
        " (Laurent and Massart (2000)), and a normal inner product its standard deviation times"
        " sqrt(2 log(2 S / delta)) with probability delta / S: Lemmas 5 and 7.  Each proof is"
        " written out in docs/theory/short_proofs.md; draws are counted as a check of the writing.",
        "Every law of Definition 1.",
        "",
        tuple(Inequality(f"lemma-{number}") for number in (4, 5, 7, 9)),
    ),
    Fact(
        "short-steps",
        "Normalised steps cannot leave the first stage's region, and noise less than 1 keeps gates",
        "expert-count",
        ("Lemma 10", "Lemma 11", "Lemma 16"),
        "T_1 = sigma_0^(1/2) / eta, eta_r of order M^2 eta, J and P of logarithmic order, and M at"
        " most of order sigma_0^-0.075.",
        "|w(t) - w(0)| <= eta t, so |<w, x>| <= |<w(0), x>| + eta t |x|, which is of order"
        " sigma_0^0.5 up to T_1; |f| <= J P times its cube; |l' + 1/2| <= |s| / 4; the router's"
        " gradient is at most 2 max |f| |x|, so |theta| <= 2 eta_r t max |f| |x|, |h| <= P |theta|"
        " |x|, |pi - 1/M| <= (exp(2 |h|) - 1) / M, and |P - 1/M| <= M^2 |h| by Lemma 1.  An expert"
        " is chosen only with a score above the largest less 1, so its gate is at least 1/(e M),"
        " and up to T_2 weights have moved by at most M^-2.  Each proof is written out in"
        " docs/theory/short_proofs.md.",
        "Every sample and every path of Algorithm 1.",
        "",
        tuple(Inequality(f"lemma-{number}") for number in (10, 11, 16)),
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
