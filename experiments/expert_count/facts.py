"""Facts behind the verdicts on Duy et al. (n.d.): what short proofs decide."""

from __future__ import annotations

from experiments.claims.fact import Fact
from experiments.claims.kinds import Inequality
from experiments.claims.rules import EVERYWHERE, SPECIAL
from experiments.expert_count.trials import TRIALS

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
        tuple(Inequality(TRIALS[f"lemma-{number}"]) for number in (1, 17, 21, 25, 26)),
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
        tuple(Inequality(TRIALS[f"lemma-{number}"]) for number in (4, 5, 7, 9)),
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
        tuple(Inequality(TRIALS[f"lemma-{number}"]) for number in (10, 11, 16)),
    ),
    Fact(
        "first-signal",
        "The steps until an expert finds its signal are of exact order M^2 sigma_0^0.9 / eta",
        "expert-count",
        ("Lemma 14", "(13)"),
        "T^(m), the first step with a gradient of at least M^2 sigma_0^1.8, on the path of Lemma"
        " 12's"
        " main term: z moves by eta g / |g|, g = c z^2 / M^2 over units and signals, c of order"
        " 1 / (K P), routes and gates 1 / M, J, K, P of logarithmic order.  Remainders of Lemma 12,"
        " sigma_0^2.5, are below sigma_0^2 / M^2 for M up to sigma_0^-0.2; Lemmas 10 and 11 need M"
        " up to sigma_0^-0.125.",
        "|g| passes M^2 sigma_0^1.8 once the largest |z| is of order M^2 sigma_0^0.9, and not"
        " before.  Weights move by eta a step, so that this takes (c' M^2 sigma_0^0.9 - |z(0)|) /"
        " eta steps at least; and the best unit moves by eta / (P J K)^(1/2) at least as soon as no"
        " |z| is larger, which holds after a time of order sigma_0 / eta, since negative units"
        " only rise to 0: of order M^2 sigma_0^0.9 / eta steps at most.  That is below T_1 ="
        " sigma_0^0.5 / eta exactly up to M of order sigma_0^-0.2.  (13) has M^2 sigma_0^2 where"
        " the order is sigma_0^2 / M^2, which is where 0.075 is from.  Written out in"
        " docs/theory/short_proofs.md.",
        "Every start with a positive product with a signal, as Lemma 6 has it.",
        "M = O(sigma_0^-0.125), as far as Lemmas 10 and 11 go; main term: O(sigma_0^-0.2).",
        (Inequality(TRIALS["lemma-14"]), Inequality(TRIALS["lemma-14.only-when"])),
        EVERYWHERE,
    ),
    Fact(
        "first-stage",
        "The updates of the first stage, and that only the best unit grows along its own signal",
        "expert-count",
        ("Lemma 12", "Lemma 13", "(11)"),
        "n = Omega(d) and sigma_0 >= d^(-1/3), so that n^(-1/2) and d^(-1/2) are at most of order"
        " sigma_0^1.5; M up to order sigma_0^-0.075, eta <= x_0 / 2 for Lemma 13, J, K and P of"
        " logarithmic order.  A unit has the same start in all patches.",
        "Up to T_1 gates are 1 / M (1 + O(M^3 sigma_0^2)), routes 1 / M (1 + O(M^5 sigma_0^2)), by"
        " the true orders in Lemmas 10 and 11, and l' = -1/2 + O(sigma_0^1.5): a relative error of"
        " order M^5 sigma_0^2, below sigma_0^1.5 for M up to sigma_0^-0.1.  With these constants"
        " the gradient is a fixed sum over the sample: E[alpha^3] n / (K P) + O(n^(1/2)) along v,"
        " by Hoeffding, and O(n^(1/2)) along c and for the confounded patches, whose labels have"
        " mean 0.  Noise patches add sigma_0 d^(-1/2), a sample's own noise 1 / n, and the routes"
        " n^(-1/2) sigma_0 (Lemma 9).  This is Lemma 12.  Where a product is of order sigma_0 the"
        " remainder sigma_0^2.5 is a relative error M^2 sigma_0^0.5, below 1 / M.  For two products"
        " in one patch, x the best, 1/y - 1/x falls by a factor of e^(-eta / x0) at most, whatever"
        " their growth; with Lemma 6's margin G = delta / (3 M J^2 K^2) this is y = O(G^-1"
        " sigma_0).  For c and the noise Lemma 27 as repaired has S of order M^2 sigma_0^0.5 and"
        " any G.  This is Lemma 13.  Written out in docs/theory/short_proofs.md.",
        "Every path of Algorithm 1 on the events of Lemmas 4 to 7 and 9.",
        "",
        (Inequality(TRIALS["lemma-12"]), Inequality(TRIALS["lemma-13"])),
    ),
    Fact(
        "frobenius-share",
        "No step of length eta gives every one of P patches nearly all of eta",
        "expert-count",
        ("Lemma 14, second sentence", "(14)", "Lemma 15", "Lemma 18", "Theorem 1, (57), (77)"),
        "Definition 1, which has P >= 3 patches; eq. (5) divides by the Frobenius norm of the"
        " gradient over units and patches.",
        "If the gradient of one unit along v is at least (1 - s) times the norm in each of P"
        " patches, then P (1 - s)^2 <= 1: false for P >= 2 as s = sigma_0^0.2 tends to 0.  Step"
        " (14) bounds the norm by a sum over units and leaves the sum over patches out.  Nor can"
        " the products be (1 - s) eta t in each patch, since |W(t) - W(0)|_F <= eta t.  Right: by"
        " Lemma 13 and (12), (13) with the sum over patches, all of the gradient but O(M^2"
        " sigma_0^2) is that of the best unit along its signal, so that the vector of its P"
        " gradients has a length of at least 1 - s of the norm; these are of one sign, so that the"
        " products add up over patches to at least (1 - s) eta (t - T^(m)).  The share of one"
        " patch is not shown, and need not be P^(-1/2) = .5: in a run at P = 4 shares are between"
        " .01 and .92.",
        "Every sample with P >= 2 patches.",
        "Say that the sum over patches is at least (1 - sigma_0^0.2) eta (t - T^(m)).",
        (Inequality(TRIALS["lemma-14.alignment"]),),
        EVERYWHERE,
    ),
    Fact(
        "cubes-of-patches",
        "With sigma(z) = z^3 the output of an expert is the sum of cubes that Lemma 19 prints",
        "expert-count",
        ("Lemma 19",),
        "The activation is z^3, by the derivatives used; Definition 1's patches.",
        "sigma(<w, alpha y v>) = alpha^3 y sigma(<w, v>), and y eps = 1 or -1 on the two parts of a"
        " cluster: the displays.  What is left out of the output are the patch of c, J terms, and"
        " the noise patches, J P at most, each the cube of a product of order sigma_0.",
        "Every sample and every weight.",
        "",
        (Inequality(TRIALS["lemma-19"]),),
    ),
    Fact(
        "quadratic-growth",
        "Two sequences of quadratic growth keep their order, with the constant 2 (1 + G) / G",
        "expert-count",
        ("Lemma 27", "proofs of Lemmas 13 and 18"),
        "C_t >= 0, x0 >= y0 S (1 + G), and |x' - x| <= eta.",
        "eta C_t <= (x' - x) / x^2 <= (1 + eta / x0)(1/x - 1/x'), which adds up to (1 + eta / x0) /"
        " x0 at most, and 1/y - 1/y' <= S eta C_t.  So 1/y_T >= (G - eta / x0) / ((1 + G) y0), and"
        " eta <= G x0 / 2 gives y_T <= 2 (1 + G) / G y0.  As printed no constant serves all G and"
        " A:"
        " for G = 1 - h, A = x0 (1 + h) the condition allows eta of order x0 / h, one step with"
        " C = 0.9 / x0^2 passes A, and y_T G / y0 is of order 1/h.  Lemma 13 applies it at G = 2,"
        " where no eta meets the condition, and Lemma 18 at G = 1.",
        "G near 1 and A near x0; for eta <= G x0 / 2 none.",
        "Ask for eta <= G x0 / 2 and say 2 (1 + G) / G.",
        (Inequality(TRIALS["lemma-27"]), Inequality(TRIALS["lemma-27.printed"])),
        SPECIAL,
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
        (Inequality(TRIALS["lemma-8"]),),
    ),
)
