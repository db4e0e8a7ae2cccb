"""Facts behind the verdicts on Yan et al. (2025)."""

from __future__ import annotations

from experiments.attention.definitions import FAMILIES
from experiments.claims import equations, lipschitz
from experiments.claims.fact import POSITIVE, Fact
from experiments.claims.kinds import Identity, Inequality, Sequence, Witness
from experiments.claims.rules import EVERYWHERE, SPECIAL
from experiments.claims.witnesses import quadratic_gates, regressions

__all__ = ["FACTS"]

FACTS = (
    Fact(
        "zero-gate",
        "No expert is strongly identifiable",
        "attention",
        ("Definition 1", "Theorem 1"),
        "Definition 1 as printed: the first family is taken at A = b = 0.",
        "F = sigma(x'Ax + b'x + c) E.  At A = b = 0 the gate is constant, d2F/db db' ="
        " sigma''(c) xx' E and dF/dA = sigma'(c) xx' E: proportional, whatever E is.",
        "Every expert, every c.",
        "Leave d2F/db2 out of the family, or bound A away from 0; for A free the rate then depends"
        " on the value of the gate, see quadratic-gates.",
        (Identity(equations.ATTENTION_ZERO_GATE), Sequence(regressions.OPPOSITE_SLOPES)),
        EVERYWHERE,
    ),
    Fact(
        "quadratic-gates",
        "Two quadratic gates add up to a constant one but for the fourth to sixth power",
        "attention",
        ("Definition 1", "Theorem 1", "Sec. 4.1.1, remark (i)"),
        "The sparse regime, one input, any expert; A free in a neighbourhood of 0.",
        "sigma(c_1 + b_1 x + A_1 x^2) + sigma(c_2 + b_2 x + A_2 x^2) with sigma(c_1) + sigma(c_2) ="
        " S = sigma(c*), b of order eps and A of order eps^2: the coefficients of x to x^3 vanish"
        " for one choice of b_2, A_1, A_2.  That of x^4 is a polynomial in S and (sigma(c_1) -"
        " sigma(c_2))^2, which has one zero between 0 and S^2 if S > 1 - 3^(-1/2) = .4226, and none"
        " if S is smaller; that of x^5 is 0 at c_1 = c_2 only.  So b errs by n^(-1/8) at best below"
        " the threshold, n^(-1/10) above it and n^(-1/12) at it: distance ~ loss^2, loss^(5/2) and"
        " loss^3 for L1, which has squares.  Written out in docs/theory/short_proofs.md.",
        "Every truth with a gate that is fitted by two at least, by its S.  That nothing is slower"
        " is what searches find for GELU neurons, and is not proved.",
        "Bound A away from 0 or hold it at 0.",
        (
            Sequence(regressions.GATE_PAIRS[4], power=2),
            Sequence(regressions.GATE_PAIRS[5], power=2.5),
            Sequence(regressions.GATE_PAIRS[6], power=3),
            Inequality(quadratic_gates.ATTENTION_GATE_PAIRS),
        ),
        EVERYWHERE,
    ),
    Fact(
        "opposite-gates",
        "No expert is weakly, partial-strongly or partial-weakly identifiable",
        "attention",
        ("Definitions 2, 3, 4", "Theorems 3, 4, 5"),
        "The definitions as printed: any distinct (A_i, b_i, c_i, eta_i), so that two may differ in"
        " their gates only.",
        "sigma'(s) = sigma'(-s): dF/dc at (A, b, c, eta) and at (-A, -b, -c, eta) are one"
        " function.",
        "Every expert.",
        "Ask for linear independence at atoms with distinct eta only, and see four-atoms.",
        (Identity(equations.ATTENTION_OPPOSITE_GATES),),
        EVERYWHERE,
    ),
    Fact(
        "four-atoms",
        "GELU and ReLU networks fail even with all experts distinct",
        "attention",
        ("Examples after Definitions 1 to 4",),
        "The kindest reading: all eta_i distinct, and first derivatives only.",
        "With an output weight two atoms do: dF/dlambda = sigma(s) phi(alpha' x + beta) whatever"
        " lambda is, and eta differs by lambda.  With lambda = 1 four under one gate do: phi'(z) +"
        " phi'(-z) = 1 for GELU and ReLU, so that dF/dbeta at (alpha, beta) and (-alpha, -beta) add"
        " up to sigma(s), for any (alpha, beta); two such sums cancel.",
        "Every gate and every unit.",
        "Fix lambda = 1 and the sign of alpha.",
        (
            Identity(equations.ATTENTION_TWO_WEIGHTS),
            Identity(equations.ATTENTION_FOUR_ATOMS["gelu"]),
            Identity(equations.ATTENTION_FOUR_ATOMS["relu"]),
        ),
        EVERYWHERE,
    ),
    Fact(
        "shared-derivative",
        "Derivatives of polynomial experts under one gate are polynomials of lower degree",
        "attention",
        ("Examples after Definitions 2 to 4",),
        "All eta_i distinct, and first derivatives only: the kindest reading.",
        "dF/dbeta = sigma(s) p (alpha' x + beta)^(p-1).  For p = 1 it is sigma(s) at every expert;"
        " for any p and one input p + 1 experts give p + 1 polynomials of degree p - 1 times"
        " sigma(s), of which p are independent at most.",
        "Every gate and every expert.",
        "None within the class.",
        (Identity(equations.ATTENTION_SHARED_DERIVATIVE),),
        EVERYWHERE,
    ),
    Fact(
        "shared-weights",
        "An output weight is linear, so two atoms share it in many ways",
        "attention",
        ("Sec. 4.1.1", "App. C.1.2"),
        "Networks lambda phi(alpha' x + beta) with alpha, lambda not 0, N = N* + 1.  Table 1 and"
        " (84) have no output weight, so that the entries of Table 1 are not judged by this.",
        "Two atoms with the gate and the neuron of the true one and weights lambda_1 + lambda_2 ="
        " lambda* (sigmoid), or 2 lambda* at half the mass (softmax, and sigmoid at A = b = 0).",
        "Every truth, sparse and dense, sigmoid and softmax.",
        "Fix lambda = 1, or merge atoms with one gate and neuron before the error is taken.",
        tuple(map(Witness, regressions.SHARED_WEIGHTS)),
        EVERYWHERE,
    ),
    Fact(
        "polynomial-split",
        "Polynomial experts split under one gate",
        "attention",
        ("Table 1, polynomial", "Theorem 2", "Lemma 2", "Theorems 3 to 5 for polynomials"),
        "E = (alpha' x + beta)^p, N = N* + 1.",
        "Under the true gate eta_1 + eta_2 = eta* for p = 1, and t eta*, u eta* with t^p + u^p = 1"
        " for any p (sums of 2 at half the mass under softmax).  Two such measures have one"
        " regression function and stay apart in every loss, so that by Le Cam's two points the"
        " minimax risk stays above a constant.",
        "Every truth, sparse and dense, sigmoid and softmax, full and partial score.",
        "None within the class: at least so many samples is right, and no number of them is"
        " enough.",
        tuple(map(Witness, regressions.POLYNOMIAL_SPLITS)),
        EVERYWHERE,
    ),
    Fact(
        "complements",
        "Gates that add up to 1 represent an expert in many ways",
        "attention",
        ("Sec. 3, before Proposition 1", "Proposition 2", "Proposition 4"),
        "The dense regime, N* = 2, N = 3, any expert; the atoms differ in their gates.",
        "sigma(s) E + sigma(-s) E = E = (.2 + .3 + .5) E, with three constant gates on the right.",
        "Truths with two atoms of one expert and opposite scores, of measure zero.  The printed"
        " proof of Proposition 2 takes distinct eta_j*, which its statement does not.  (With"
        " networks or lines every truth has such a partner: see shared-weights, polynomial-split.)",
        "Assume distinct eta_j*, and scores of which none is minus another.",
        (Witness(regressions.COMPLEMENTS), Witness(regressions.COMPLEMENTS_PARTIAL)),
        SPECIAL,
        near=False,
    ),
    Fact(
        "linear-flip",
        "A line under a gate is the line less the line under the opposite gate",
        "attention",
        ("Sec. 3, before Proposition 1", "Corollary 1"),
        "Linear experts, dense regime, N* = 1, N = 2.",
        "sigma(s) g = g - sigma(-s) g: the misfit of the best approximations by more atoms is 0.",
        "Every truth.",
        "Say that the limit is the true function, and score the distance to the set.",
        (Witness(regressions.LINEAR_FLIP),),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "junction",
        "The distance to the set of exact representations is not bounded by that of the functions",
        "attention",
        ("Theorem 3, second display", "Theorem 5, second display", "Table 1, SigmoidAttn, dense"),
        "Linear experts, dense regime; and ReLU networks without output weight on a closed set that"
        " holds alpha = beta = 0, which the condition alpha != 0 of Secs. 4.1 and 4.2 leaves out of"
        " a compact one.  Loss to the nearest exact representation, as both displays have it.",
        "Near the extra expert 0 under the true gate: a share eps of the expert under a gate eps"
        " away costs eps, and the functions differ by eps^2: no estimator of gates and experts is"
        " faster than n^(-1/4) at all truths, by Le Cam's two points.",
        "Truths with a linear expert, or, where alpha = beta = 0 is allowed, with a ReLU, all of"
        " them, at a corner of the set.  ReLU networks with alpha != 0: see edge-neuron.",
        "Exponent 2 for gates of atoms whose expert is 0.",
        tuple(Sequence(path, power=2) for path in regressions.JUNCTIONS),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "edge-neuron",
        "A ReLU neuron that is active at the edge of the inputs only is hardly seen",
        "attention",
        ("Theorem 3, second display", "Theorem 5, second display", "Table 1, SigmoidAttn, dense"),
        "ReLU networks without output weight, alpha != 0, dense regime, inputs on an interval; a"
        " compact set that holds a neuron that vanishes at all inputs but an end, with a"
        " neighbourhood; N >= N* + 1, loss to the nearest exact representation.",
        "Beside the truth the neuron (x - 1 + eps)_+ on [-1, 1], any gate: the functions differ by"
        " at most eps on an interval of length eps, so that the distance is of order eps^(3/2);"
        " the neurons near it that are 0 at all inputs are at a distance of order eps.  By Le Cam's"
        " two points no estimator of such atoms is faster than n^(-1/3): eps^-3 samples.",
        "Every truth.",
        "Keep kinks away from the edge of the inputs, and neurons active.",
        tuple(Sequence(path, power=1.5) for path in regressions.EDGE_NEURONS),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "dead-neuron",
        "A ReLU neuron that is 0 at all inputs shows neither its gate nor its expert",
        "attention",
        ("Table 1, SigmoidAttn, ReLU and GELU, sparse", "Theorem 1", "Theorem 4"),
        "ReLU networks phi(alpha' x + beta) without output weight, alpha != 0, bounded inputs, N >="
        " N* + 1.",
        "alpha' x + beta < 0 at all inputs, alpha not 0: the neuron is the zero function.  The"
        " truth beside one such atom, with any gate, one with A = b = 0 too, has the truth's"
        " regression function, and L1 and L4 between the two are as large as the distance of its"
        " gate and expert from the true ones.  By Le Cam's two points no estimator converges.",
        "Every truth, sparse and dense, full and partial score.",
        "Keep neurons active, or judge measures near the truth only.",
        tuple(map(Witness, regressions.DEAD_NEURONS)),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "softmax-relu",
        "A true ReLU neuron without a kink among the inputs is not identified under softmax",
        "attention",
        ("Table 1, SoftmaxAttn, ReLU and GELU",),
        "ReLU networks without output weight, alpha != 0, softmax gates, bounded inputs.",
        "A neuron that is active at all inputs is a line there: two atoms with its gate at half the"
        " mass each and eta +- d have its function, N >= N* + 1.  One that is 0 at all inputs shows"
        " its gate only, and its expert is free, N = N*.",
        "Truths with a ReLU neuron whose kink is outside the inputs: a set of positive measure,"
        " sparse and dense.",
        "Ask that every true neuron has its kink among the inputs.",
        tuple(map(Witness, regressions.SOFTMAX_RELU)),
        SPECIAL,
        measure=POSITIVE,
    ),
    Fact(
        "complement-split",
        "Where gates of one expert add up to 1 three neurons stand for it, to second order",
        "attention",
        ("Table 1, SigmoidAttn, ReLU and GELU, dense", "Theorem 3", "Theorem 5"),
        "GELU networks without output weight, alpha bounded away from 0, dense regime, N >= N* + 1;"
        " loss to the nearest exact representation.  The statements do not ask for distinct"
        " eta_j*.",
        "sigma(s) E + sigma(-s) E = E is E under three constant gates that add up to 1, too.  There"
        " two neurons at eta +- eps, under one gate each, are at a distance of order eps^2, while"
        " every exact representation near has all three neurons at eta: proof in"
        " docs/theory/short_proofs.md.  By Le Cam's two points no estimator of the experts is"
        " faster than n^(-1/4): eps^-4 samples.",
        "Truths with two atoms of one neuron and opposite scores, of measure zero.",
        "Assume distinct eta_j*, and scores of which none is minus another.",
        tuple(Sequence(path, power=2) for path in regressions.COMPLEMENT_SPLITS),
        SPECIAL,
        near=False,
    ),
    Fact(
        "zero-expert",
        "A neuron with alpha = beta = 0 is the zero function, and its gate is free",
        "attention",
        ("Table 1, SigmoidAttn, ReLU and GELU, sparse", "Theorem 1", "Theorem 4"),
        "ReLU and GELU networks phi(alpha' x + beta) without output weight, as in (84), N >= N* +"
        " 1, on a closed set of parameters that holds alpha = beta = 0.  Secs. 4.1 and 4.2 and"
        " their twins in App. C have alpha != 0: with a compact set it is then bounded away from"
        " 0, and this witness lies outside.",
        "phi(0) = 0.  The truth beside one atom with alpha = beta = 0 and any gate, one with A ="
        " b = 0 too, has the truth's regression function; that atom's expert is near none of the"
        " true ones, and L1 and L4 between the two measures are as large as the distance of its"
        " gate and expert from them.  By Le Cam's two points no estimator converges.",
        "Every truth, sparse and dense, full and partial score, where alpha = beta = 0 is allowed.",
        "Keep eta away from 0, or judge measures near the truth only; for ReLU this is not enough,"
        " see dead-neuron.",
        tuple(map(Witness, regressions.ZERO_EXPERTS)),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "opposite-neurons",
        "Two GELU neurons of opposite sign under one gate cancel to first order",
        "attention",
        ("Theorem 3, second display", "Theorem 5", "Table 1, SigmoidAttn, ReLU and GELU, dense"),
        "GELU networks without output weight, dense regime, N >= N* + 2, on a set whose closure"
        " holds alpha = beta = 0, which a compact set with alpha != 0 leaves out; loss to the"
        " nearest exact representation.",
        "GELU(z) + GELU(-z) = (2/pi)^(1/2) z^2 + O(z^4).  So the truth beside GELU(eps u'x) and"
        " GELU(-eps u'x) under one gate q is at a distance of order eps^2, while every exact"
        " representation near it has both experts 0 and is eps away, for all q but finitely many of"
        " a family: proof in docs/theory/short_proofs.md.  By Le Cam's two points no estimator"
        " of atoms near such a representation is faster than n^(-1/4): eps^-4 samples.",
        "Every truth, where the closure of the set holds alpha = beta = 0.",
        "Exponent 2 for experts of atoms near the zero function.",
        (
            Sequence(regressions.OPPOSITE_NEURONS, power=2),
            Sequence(regressions.OPPOSITE_NEURONS_PARTIAL, power=2),
            Inequality(lipschitz.ATTENTION_OPPOSITE_NEURONS),
        ),
        EVERYWHERE,
        near=False,
    ),
    Fact(
        "families-of-definitions",
        "The families of the weaker definitions are among those of the stronger ones",
        "attention",
        ("Sec. 4.2, Examples", "App. C.1.3, Examples"),
        "Definitions 1 to 4 as printed.",
        "Definition 1 asks that two families are independent, the second of which is that of"
        " Definition 2; Definition 3 likewise has that of Definition 4, and twice differentiable"
        " experts are differentiable.  So Definition 1 implies Definition 2, and Definition 3"
        " implies Definition 4, whether or not any expert meets them.",
        "Every expert.",
        "",
        (Inequality(FAMILIES),),
    ),
    Fact(
        "attention-row",
        "A row of attention is a mixture of experts with quadratic scores",
        "attention",
        ("Sec. 2.3",),
        "X the concatenated tokens, M_ij = E_i B E_j', P_j = E_j W_V.",
        "sum_j sigma(x_i B x_j') x_j W_V = sum_j sigma(X M_ij X') X P_j by substitution.",
        "Every X, B, W_V; the scores have b = c = 0 and rank at most d.",
        "",
        (Identity(equations.ATTENTION_ROW),),
    ),
    Fact(
        "entropy-of-regressions",
        "Regression functions under sigmoid gates are Lipschitz in the parameters",
        "attention",
        ("eq. (14)", "App. B.1"),
        "Bounded parameters and inputs, experts bounded and Lipschitz in eta, at most N atoms.",
        "|sigma(s) E - sigma(s') E'| <= |s - s'| |E| / 4 + |E - E'|, since sigma has slopes of at"
        " most 1/4 and values of at most 1.  So a grid of mesh eps on the parameters is a cover in"
        " the sup norm of order eps^-P, and [f - eps, f + eps] are brackets.  Nothing of it asks"
        " for a regime: the class holds the truth, and Propositions 1 and 3 hold in both.  Written"
        " out in docs/theory/short_proofs.md.",
        "Every bounded set.",
        "",
        (Inequality(lipschitz.ATTENTION_EQUATION_14),),
    ),
)
