"""Facts behind the verdicts on Pham et al. (2026)."""

from __future__ import annotations

from experiments.claims import equations, lipschitz
from experiments.claims.fact import POSITIVE, Fact
from experiments.claims.kinds import Identity, Inequality, Sequence, Witness
from experiments.claims.rules import EVERYWHERE, SPECIAL
from experiments.claims.witnesses import classes
from experiments.mlmoe import independence

__all__ = ["FACTS"]

_READING = "The class is that of Sec. 3 with A.1 to A.4; masses exp(gamma) as printed in eq. (4)."

FACTS = (
    Fact(
        "opposite-scores",
        "Two gates with opposite scores see one number only",
        "mlmoe",
        ("Proposition 1", "Theorem 1"),
        _READING,
        "s_2 = -s_1 and sigma(-s) = exp(-s) sigma(s), so the two gates are a softmax in"
        " gamma_1 - gamma_2 + s_1: (gamma_1 - e, beta_1 + e, beta_2 - e) has the same density for"
        " every e.",
        "Truths with k* = 2 and s_2 = -s_1, of measure zero; Table 2's sigmoid truth is one of"
        " them.  Only gate parameters move, so that nothing follows for the experts.",
        "Assume s_i is not -s_j for i different from j.",
        (Witness(classes.OPPOSITE_SCORES),),
        SPECIAL,
    ),
    Fact(
        "parallel-gates",
        "Two gates with equal or opposite slopes leave room for a third",
        "mlmoe",
        ("Proposition 1", "Theorem 1", "Sec. 4.2", "Theorem 3"),
        _READING,
        "alpha_1 = alpha_2 = alpha, t = exp(alpha x), B_i = exp(beta_i): the ratio of the gates is"
        " a multiple of (1 + B_2 t) / (1 + B_1 t).  Give the last gate B in place of B_2, and the"
        " first expert a further atom with the gate B: its sigma cancels the last gate, so that"
        " masses u / B_1 and v / B give ((u + v) + (u B + v B_1) t) / (1 + B_1 t), the same"
        " ratio where B_2 = (u B + v B_1) / (u + v).  With alpha_2 = -alpha_1 the same holds for"
        " 1 / B_2, the last gate being the mirror image.  With the Euclidean score t ="
        " exp(|alpha - x| / tau), for two gates at one position.",
        "Truths with k* = 2 and alpha_2* = alpha_1* or -alpha_1* (a common position with the"
        " Euclidean score), of measure zero, which A.1 to A.4 allow; k >= k* + 1.  As v falls to 0"
        " the measure runs into the truth.  Only the gates move, so that nothing follows for the"
        " experts.",
        "Assume alpha_i* is neither alpha_j* nor -alpha_j* for i different from j, which covers"
        " opposite-scores, too.",
        (
            Witness(classes.PARALLEL_GATES),
            Witness(classes.OPPOSITE_SLOPES),
            Witness(classes.PARALLEL_GATES_EUCLIDEAN),
        ),
        SPECIAL,
    ),
    Fact(
        "second-order-classes",
        "Two classes, one input: the bound by D1 holds near almost every truth, with cells of any"
        " size",
        "mlmoe",
        ("Theorem 1",),
        "The class is that of Sec. 3 with A.1 to A.4; masses exp(gamma) up to a common factor,"
        " which the density does not show.  K = 2, d = 1, k* = 2, and measures all of whose atoms"
        " are near the true ones.",
        "Where alpha_1*, alpha_2*, a_1* and a_2* are linearly independent over the rationals, the"
        " derivatives of the density up to second order in all atoms are linearly independent but"
        " for the two in (alpha, b) and (beta, a), which are one function: by their poles at"
        " complex inputs.  In a cell of several atoms the coefficients of the pure second"
        " derivatives are the sums of m_i delta_i^2 / 2, which D1 holds, so that d >= c D1.  The"
        " constant c is small: the least singular value of these functions is below 1e-14 on"
        " [-2, 2].  With cells of three a search in double precision takes d for 0 there, and no"
        " sample of a size to be had tells it from 0.  Written out in docs/theory/short_proofs.md.",
        "All truths outside a set of measure zero.  No measure near such a truth has its density"
        " but for a common factor of the masses, see common-factor; swapped-experts and resonance"
        " are truths in that set.",
        "",
        (Inequality(independence.SECOND_ORDER),),
    ),
    Fact(
        "swapped-experts",
        "Two classes whose experts are each other's gates leave a curve of measures",
        "mlmoe",
        ("Proposition 1", "Theorem 1", "eq. (5)", "Table 1, exact-specified experts"),
        _READING + "  Here masses up to a common factor, which is kinder.  K = 2 classes.",
        "The first expert has the scores of the second gate, the second expert those of the first:"
        " with A = exp(-s_1), B = exp(-s_2) the probability of the first class is 1 / (1 + (m_1 B +"
        " m_2 A) / (m_1 + m_2)).  Put p A for A in the first gate and the second expert, q B for B"
        " in the second gate and the first expert, and masses r_1, r_2 of the same total: it stays"
        " where r_1 q = m_1 and r_2 p = m_2.  So the ratio of the masses is free, and beta and b"
        " follow it.  With both experts' scores negated it is the probability of the other class.",
        "Truths with K = 2, k* = 2 and (a_1, b_1) = (alpha_2, beta_2), (a_2, b_2) = (alpha_1,"
        " beta_1), or both negated, any number of inputs, of measure zero; all cells hold one atom."
        "  No slope is 0, none are equal or opposite within the gates, and class slopes are"
        " distinct.  Gates and experts move.",
        "Assume that the experts' scores are not those of the gates exchanged, up to a common sign;"
        " or say for almost every truth.",
        (Witness(classes.SWAPPED_EXPERTS),),
        SPECIAL,
    ),
    Fact(
        "resonance",
        "Gate slopes in the ratio 1 to 2 or 1 to 3 let two cells of two cancel to fourth order",
        "mlmoe",
        ("Theorem 1", "eq. (5)", "Table 1, over-specified experts"),
        _READING + "  K = 2 classes, one input, k* = 2 and cells of two and two, k = 4.",
        "alpha = (1, 2), class slopes 1 and -1, intercepts 0, masses 1: with N the numerator and D"
        " the sum of the gates, f = N - P D obeys d2f/dbeta_1^2 + d2f/db_2^2 = df/dbeta_1 +"
        " df/dbeta_2 - df/db_1 + df/db_2, an identity of rational functions of e^x.  So beta_1 +-"
        " eps in the first cell and b_2 +- eps in the second, with means moved by -eps^2/2, -eps^2"
        "/2, eps^2/2, -eps^2/2 in beta_1, beta_2, b_1, b_2, are at a distance of order eps^4, where"
        " D1 is of order eps^2.  For alpha = (1, 3) the displacement of (beta_1, b_1) is (2, -1)"
        " eps and that of b_2 is 3^(1/2) eps: the one positive semidefinite member of a line of"
        " relations.  By Le Cam's two points these parameters are estimated at n^(-1/8) at best.",
        "Truths with these ratios, of measure zero; no slope is 0, none are equal or opposite"
        " within the gates or within the experts.  Slopes in the ratio 1 to 1.9 show nothing of it."
        "  How many such relations there are is not known.",
        "Say for almost every truth, see second-order-classes.",
        tuple(Sequence(path, power=2) for path in classes.RESONANCES),
        SPECIAL,
    ),
    Fact(
        "constant-gate",
        "A gate without slope shows the product of mass and gate only",
        "mlmoe",
        ("Assumption A.4", "Proposition 1", "Theorem 1"),
        _READING,
        "alpha_1 = 0: the first gate is the constant exp(gamma_1) sigma(beta_1), kept by"
        " (beta_1 + e, gamma_1 + log sigma(beta_1) - log sigma(beta_1 + e)).",
        "Truths with alpha_j* = 0 for one j, of measure zero, which A.4 allows as long as another"
        " alpha is not 0.",
        "Assume alpha_j* is not 0 for every j.",
        (Witness(classes.CONSTANT_GATE),),
        SPECIAL,
    ),
    Fact(
        "common-factor",
        "A common factor of the masses cancels in the gates",
        "mlmoe",
        ("Assumption A.3", "Proposition 1", "Theorem 1"),
        "A.3 sets gamma_k* = 0 for the truth; the class of fitted measures is read as printed,"
        " without such a condition, and the loss takes masses as given.",
        "gamma_i + t for all i, any t: the gates are ratios, the density stays, and the first sum"
        " of"
        " eq. (4) is |exp(t) - 1| times the total mass.",
        "Every truth.  It is a convention of normalisation that is missing, not mathematics: the"
        " sentence as meant has the fitted measure normalised like the truth.",
        "Pin one gamma of the fitted measure too, or scale its masses to the truth's total: moestat"
        " does the latter in every other check.",
        (Witness(classes.COMMON_FACTOR),),
    ),
    Fact(
        "constant-experts",
        "A true expert without slopes is a mean of two others",
        "mlmoe",
        ("Theorem 1", "eq. (5)", "Theorem 3", "Table 1", "Sec. 3, on the softmax gate"),
        _READING,
        "a_1* = 0: its class probabilities p are a constant vector, p = (p + d)/2 + (p - d)/2, two"
        " experts with slopes 0 under the true gate at half the mass each, for any gate.",
        "Truths with a_j* = 0 for one j, of measure zero, which A.1 to A.4 allow; k >= k* + 1.",
        "Assume that a_j* is not 0 for every j; for K >= 3 classes this is not enough, see"
        " equal-slopes.",
        tuple(map(Witness, classes.MIXED_CONSTANTS)),
        SPECIAL,
    ),
    Fact(
        "shared-gate",
        "Of two true experts without slopes under one gate the mean alone is seen",
        "mlmoe",
        ("Proposition 1", "Theorem 1", "eq. (5)", "Theorem 3", "Table 1, exact-specified experts"),
        _READING + "  A.2 asks for distinct experts; gates may coincide, as long as one slope is"
        " not 0.",
        "a_1* = a_2* = 0 and equal (alpha, beta): the two experts enter by exp(gamma_1) p_1 +"
        " exp(gamma_2) p_2 only, and with equal masses p_1 + d, p_2 - d has the same density for"
        " any d.  All Voronoi cells hold one atom.",
        "Truths with two such experts, k = k*, of measure zero; for softmax they are in Regime 2.",
        "Assume distinct gates, or class slopes of each expert pairwise distinct; a_j* not 0 is not"
        " enough for K >= 3, see shared-slopes.",
        tuple(map(Witness, classes.SHARED_GATE)),
        SPECIAL,
    ),
    Fact(
        "equal-slopes",
        "A true expert two of whose classes share a slope is a mean of two others",
        "mlmoe",
        ("Theorem 1", "eq. (5)", "Theorem 3", "Table 1, Regime 1 of softmax included"),
        _READING + "  K >= 3 classes.",
        "Class slopes (a, a, 0), any a: the class probabilities are (e^b1, e^b2) e^(ax) and 1 over"
        " 1 + (e^b1 + e^b2) e^(ax).  The atoms (e^b1 + d, e^b2 - d) and (e^b1 - d, e^b2 + d) have"
        " the same denominator, and their mean is the true expert: under its gate at half its mass"
        " each they have the truth's density.",
        "Truths with a_js* = a_jt* for one expert and two classes s, t, of measure zero, which A.1"
        " to A.4 allow and Regime 1 of softmax does; k >= k* + 1.  constant-experts is the case of"
        " all slopes equal.",
        "Assume that the K class slopes of each expert (the last one is 0) are pairwise distinct.",
        tuple(map(Witness, classes.EQUAL_SLOPES)),
        SPECIAL,
    ),
    Fact(
        "shared-slopes",
        "Of two true experts with class slopes (a, a, 0) under one gate the mean is seen",
        "mlmoe",
        ("Theorem 1", "eq. (5)", "Theorem 3", "Table 1, exact-specified, softmax Regime 1 too"),
        _READING + "  K >= 3 classes, gates that coincide.",
        "Two experts with equal masses, one gate, one slope a in two classes and one sum e^b1 +"
        " e^b2: only the sums of their odds enter, and (+d, -d) in one with (-d, +d) in the other"
        " keeps these.  All Voronoi cells hold one atom.",
        "Truths with two such experts, k = k*, of measure zero; for softmax they are in Regime 1.",
        "Assume pairwise distinct class slopes, or distinct gates.",
        tuple(map(Witness, classes.SHARED_SLOPES)),
        SPECIAL,
    ),
    Fact(
        "single-expert",
        "With one true expert the gate is 1, whatever its parameters",
        "mlmoe",
        ("Assumption A.4", "Proposition 1", "Theorem 1", "Theorem 3"),
        _READING,
        "k* = 1, alpha_1* not 0, as A.4 asks: exp(gamma) sigma(s) over itself is 1, so that (gamma,"
        " alpha, beta), and tau, are free.",
        "Every truth with k* = 1.  The expert is identified.",
        "Assume k* >= 2.",
        (Witness(classes.SINGLE_EXPERT), Witness(classes.SINGLE_EXPERT_EUCLIDEAN)),
        SPECIAL,
        measure=POSITIVE,
    ),
    Fact(
        "temperature-scale",
        "Under an inner product with a temperature, (alpha, beta, tau) has a free scale",
        "mlmoe",
        ("Sec. 4.1", "Theorem 2", "Lemma 1, App. A.2", "Table 1"),
        "The class is that of Sec. 4.1, with a compact set that holds a neighbourhood of the"
        " truth.",
        "(alpha, beta, tau) times any common factor is the same density.  Two such measures are"
        " at a"
        " positive distance in D2r for every r, so that by Le Cam's two points the minimax risk"
        " stays above a constant, which is more than the n^(-1/2) of Theorem 2.  The conclusion of"
        " Lemma 1 is then true, so the implication is, too.",
        "Every truth.  Experts do not move: slow experts do not follow from it.",
        "Set tau = 1, or one norm.  Then Theorem 2's reason is gone, see the explorer's case"
        " mlmoe-2-identified.",
        (Witness(classes.TEMPERATURE_SCALE),),
        EVERYWHERE,
    ),
    Fact(
        "positions-outside",
        "A position outside the inputs shows |alpha| + beta only, for one input",
        "mlmoe",
        ("Sec. 4.2", "Theorem 3"),
        "d = 1 and a bounded set of inputs; positions alpha anywhere in a compact set.",
        "For alpha left of all inputs |alpha - x| = x - alpha, so (alpha + t, beta + t) is the same"
        " density; for alpha right of them (alpha + t, beta - t).",
        "d = 1 only: for d >= 2 |alpha - x| is not linear on any open set.  There the truths with a"
        " position outside are a set of positive measure; Table 4's truth is one of them.",
        "Assume alpha_j* within the interior of the inputs' support, or d >= 2.",
        (Witness(classes.POSITIONS_OUTSIDE),),
        SPECIAL,
        measure=POSITIVE,
    ),
    Fact(
        "class-holds-truth",
        "The class of at most k atoms holds the truth, with or without masses",
        "mlmoe",
        ("Sec. 3, Benefits of the modified sigmoid gate", "eq. (2)", "Proposition 2"),
        "The class of eq. (2) has any number k' <= k of atoms.",
        "The plain gate is the modified one with gamma = 0, which is a compact set of masses, and"
        " k' = k* is allowed: the truth is in the class, and Proposition 2 holds there as it"
        " stands.  What is lost without masses is the limit of a measure two of whose atoms run"
        " into one; no estimator has to go there.",
        "Every truth.",
        "Say that fits with exactly k > k* atoms do not converge.",
        (Identity(equations.MLMOE_PLAIN_GATE),),
    ),
    Fact(
        "sums-of-gates",
        "Two gates that run into one do not add up to a gate, unless it is constant",
        "mlmoe",
        ("Sec. 3, Benefits of the modified sigmoid gate", "Yan et al. (2025), Sec. 3, App. C.1.1"),
        "Sigmoid gates without masses, both atoms with the limit's (alpha, beta), or its (A, b).",
        "sigma(q + c1) + sigma(q + c2) = sigma(q + c) for all q in an interval holds for all q,"
        " both sides being analytic; as q grows the left side tends to 2 and the right one to 1.",
        "Every truth whose score varies with the input.",
        "",
        (Identity(equations.ATTENTION_SUMS_OF_GATES, claimed=False),),
    ),
    Fact(
        "temperature-equation",
        "Eq. (8) lacks a 1/tau",
        "mlmoe",
        ("eq. (8)", "eq. (11)", "App. A.2"),
        "u = sigma((alpha x + beta)/tau) f(a x + b).",
        "du/dtau = -(1/tau)(alpha' du/dalpha + beta du/dbeta), by Euler's theorem on homogeneous"
        " functions.  The proof in App. A.2 uses this one.",
        "Every parameter.",
        "Put the second term into the bracket.",
        (Identity(equations.MLMOE_8, claimed=False), Identity(equations.MLMOE_8_WITH_1_TAU)),
    ),
    Fact(
        "entropy-of-classes",
        "Densities of classes are Lipschitz in the parameters, so that grids of them are covers",
        "mlmoe",
        ("Lemma 2, App. B.1",),
        "Bounded parameters and inputs |x| <= B; the model of Sec. 3.",
        "Shares of exp(l_i) obey sum_i |dpi_i| = E|dl - E dl| <= max |dl|.  With l = gamma + log"
        " sigma(alpha x + beta) and with the experts' own scores, sum_s |p - p'| <= max_i (|dgamma|"
        " + B |dalpha| + |dbeta|) + max_is (B |da| + |db|): Lipschitz with constant 1.  A grid of"
        " mesh eps on a bounded set of P parameters has of order eps^-P points, so that log N <= P"
        " log(C/eps); [p - eps, p + eps], cut at 0, are brackets of width 2 K eps in L1, and"
        " squared Hellinger distances are at most half of that in L1.  Written out in"
        " docs/theory/short_proofs.md.",
        "Every bounded set.",
        "",
        (Inequality(lipschitz.MLMOE_LEMMA_2),),
    ),
)
