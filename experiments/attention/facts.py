"""Facts behind the verdicts on Yan et al. (2025)."""

from __future__ import annotations

from experiments.claims import equations, lipschitz
from experiments.claims.fact import Fact
from experiments.claims.kinds import Identity, Inequality, Sequence, Witness
from experiments.claims.rules import EVERYWHERE, SPECIAL
from experiments.claims.witnesses import regressions

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
        "Leave d2F/db2 out of the family, or bound A away from 0; for A free the rate then is that"
        " of the sequence opposite-slopes, distance ~ loss^2.",
        (Identity(equations.ATTENTION_ZERO_GATE), Sequence(regressions.OPPOSITE_SLOPES)),
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
    ),
    Fact(
        "junction",
        "The distance to the set of exact representations is not bounded by that of the functions",
        "attention",
        ("Theorem 3, second display", "Theorem 5, second display", "Table 1, SigmoidAttn, dense"),
        "ReLU networks without output weight and linear experts, dense regime; loss to the nearest"
        " exact representation, as both displays have it.",
        "Near the extra expert 0 under the true gate: a share eps of the expert under a gate eps"
        " away costs eps, and the functions differ by eps^2: no estimator of gates and experts is"
        " faster than n^(-1/4) at all truths, by Le Cam's two points.",
        "Truths with a ReLU or linear expert, all of them, at a corner of the set.",
        "Exponent 2 for gates of atoms whose expert is 0.",
        tuple(Sequence(path, power=2) for path in regressions.JUNCTIONS),
        EVERYWHERE,
    ),
    Fact(
        "zero-expert",
        "A neuron with alpha = beta = 0 is the zero function, and its gate is free",
        "attention",
        ("Table 1, SigmoidAttn, ReLU and GELU, sparse", "Theorem 1", "Theorem 4"),
        "ReLU and GELU networks phi(alpha' x + beta) without output weight, as in (84), N >= N* +"
        " 1,"
        " on a set of parameters that holds alpha = beta = 0, which the paper leaves out nowhere.",
        "phi(0) = 0.  The truth beside one atom with alpha = beta = 0 and any gate, one with A ="
        " b ="
        " 0 too, has the truth's regression function; that atom's expert is near none of the true"
        " ones, and L1 and L4 between the two measures are as large as the distance of its gate and"
        " expert from them.  By Le Cam's two points no estimator converges.",
        "Every truth, sparse and dense, full and partial score.",
        "Keep eta away from 0, or judge measures near the truth only; in the dense regime the"
        " distance to the set of exact representations is 0 here, but see opposite-neurons.",
        tuple(map(Witness, regressions.ZERO_EXPERTS)),
        EVERYWHERE,
    ),
    Fact(
        "opposite-neurons",
        "Two GELU neurons of opposite sign under one gate cancel to first order",
        "attention",
        ("Theorem 3, second display", "Theorem 5", "Table 1, SigmoidAttn, ReLU and GELU, dense"),
        "GELU networks without output weight, dense regime, N >= N* + 2; loss to the nearest exact"
        " representation.",
        "GELU(z) + GELU(-z) = (2/pi)^(1/2) z^2 + O(z^4).  So the truth beside GELU(eps u'x) and"
        " GELU(-eps u'x) under one gate q is at a distance of order eps^2, while every exact"
        " representation near it has both experts 0 and is eps away, for all q but finitely many of"
        " a family: proof in docs/theory/short_proofs.md.  By Le Cam's two points no estimator"
        " of atoms near such a representation is faster than n^(-1/4): eps^-4 samples.",
        "Every truth.",
        "Exponent 2 for experts of atoms near the zero function.",
        (
            Sequence(regressions.OPPOSITE_NEURONS, power=2),
            Sequence(regressions.OPPOSITE_NEURONS_PARTIAL, power=2),
            Inequality(lipschitz.ATTENTION_OPPOSITE_NEURONS),
        ),
        EVERYWHERE,
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
