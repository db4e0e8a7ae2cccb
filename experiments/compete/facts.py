"""Facts behind the verdicts on Nguyen et al. (2025) and Pham et al. (2024)."""

from __future__ import annotations

from experiments.claims import equations, lipschitz
from experiments.claims.fact import POSITIVE, Fact
from experiments.claims.kinds import Identity, Inequality, Order, Sequence, Witness
from experiments.claims.rules import EVERYWHERE, SPECIAL
from experiments.claims.witnesses import gaussian

__all__ = ["FACTS"]

FACTS = (
    Fact(
        "lost-masses",
        "Eqs. (3) and (13) lack the factor exp(c_i) that the losses and the proofs carry",
        "compete",
        ("eq. (3)", "eq. (13)", "eqs. (6), (14)", "App. K, the decomposition of T_n"),
        "Unit masses as eq. (3) prints them, against the loss as eq. (6) and (14) print it.",
        "Every atom of the truth twice has the truth's density and, with unit masses, total mass 2"
        " N*: the loss is N*.",
        "Every truth, for N >= 2 N*.",
        "Put exp(c_i) into eqs. (3), (4) and (13), as the proofs do; moestat judges these.",
        (Witness(gaussian.DOUBLED_LINES), Witness(gaussian.DOUBLED_NETWORKS)),
        near=False,
    ),
    Fact(
        "output-weight",
        "A network with an output weight is not algebraically independent",
        "compete",
        ("Sec. 3, Problem setting",),
        "The condition as printed, at any parameter of g = W2 softplus(W1 x + b).",
        "g is linear in W2: d2g/dW2^2 = 0, and d2g/dW2 db = (1/W2) dg/db.",
        "Every parameter.",
        "Fix W2, or ask for independence of the second derivatives that are left and of products.",
        (Identity(equations.COMPETE_OUTPUT_WEIGHT),),
        EVERYWHERE,
    ),
    Fact(
        "flat-competitor",
        "An expert that answers with a constant loses the competition's advantage",
        "compete",
        ("Theorem J.1", "App. J, remarks (i), (ii)"),
        "Masses free, as in the proof; linear experts; N* = 2, N = 3.",
        "a_1* = 0: its weight exp(c)(1 + exp(b)) is constant in x.  Two atoms b +- eps, nu - eps^2,"
        " each with half of that weight, keep mass, mean and variance: the distance is eps^4, the"
        " loss eps^2, and b is estimated at n^(-1/8) at best.",
        "Truths with a_j* = 0 for one j, of measure zero.",
        "Assume a_j* is not 0 for every j.",
        (Sequence(gaussian.FLAT_COMPETITOR, power=2),),
        SPECIAL,
    ),
    Fact(
        "flat-neuron",
        "A neuron without slope loses the competition's advantage, as a constant line does",
        "compete",
        ("Theorem 3.2", "Sec. 3, remarks (i), (ii)"),
        "GELU neurons without output weight, masses free, N* = 2, N = 3, on a set that holds alpha"
        " = 0.  The condition of Sec. 3 is asked of every parameter W_e, and at alpha = 0 the"
        " derivatives of gelu(alpha x + beta) are 1 and x times constants: the condition fails, so"
        " that the theorem does not speak of such a set.",
        "alpha_1* = 0: the answer and its weight are constant in x.  Two neurons with answers +-"
        " eps from it, nu - eps^2 and half of its mass each keep mass, mean and variance: total"
        " variation is of order eps^4, the loss of order eps^2.",
        "Truths with alpha_j* = 0 for one j, of measure zero.",
        "Bound alpha away from 0: then GELU neurons meet the condition, as far as it is checked.",
        (Sequence(gaussian.FLAT_NEURON, power=2),),
        SPECIAL,
    ),
    Fact(
        "orders",
        "rbar(m) = 2 m for the polynomial systems of Gaussian mixtures of lines",
        "compete",
        ("Sec. 3, remark (ii)", "App. J, remark (iii)"),
        "rbar(m) as in Nguyen et al. (2023); second-hand in this paper.",
        "Gauss-Hermite nodes match 2 m - 1 moments with m atoms, and m + 1 normals change sign at"
        " most 2 m times: docs/rbar.md.  Computed for m = 2 to 5.",
        "Every truth.",
        "",
        tuple(Order(m, 2 * m) for m in (2, 3, 4, 5)),
    ),
    Fact(
        "gauss-hermite",
        "Under a softmax gate m atoms at Gauss-Hermite nodes stand for one line",
        "compete",
        ("Sec. 3, remark (ii)", "App. J, remark (iii)"),
        "Linear experts under the softmax gate, as in Nguyen et al. (2023); cells of m.",
        "N(b, nu) is N(b, nu - eps^2) blurred by N(0, eps^2); m-point Gauss-Hermite quadrature in"
        " place of the blur keeps 2 m - 1 moments.  So m atoms b + eps z_i, nu - eps^2 under the"
        " line's gate, with the quadrature's weights, are at a distance of order eps^(2 m) while"
        " intercepts are off by eps: by Le Cam's two points no estimator is faster than"
        " n^(-1/(4 m)) at all truths near one.",
        "Every truth, k >= k* + m - 1.",
        "",
        tuple(Sequence(path, power=2 * m) for m, path in gaussian.GAUSS_HERMITE.items()),
    ),
    Fact(
        "per-input",
        "Lines in a cell of m err by at most the (2 m)-th root of the distance, for any gates",
        "compete",
        ("Sec. 3, remark (ii)", "App. J, remark (iii)"),
        "Linear experts, one input, distinct true lines; a compact set with every gate weight at"
        " least omega > 0.  Errors are those of experts; of gate slopes nothing is said.",
        "Proof in docs/rbar.md, Per input.  At one input the model is a mixture of normals, whose"
        " distance from the truth's bounds the (2 m)-th power of the mean errors in a cell of m,"
        " since rbar(m) = 2 m; over inputs this is (|da| + |db|)^(2 m).  With the density's rate,"
        " (log n / n)^(1/2), maximum likelihood errs by (log n / n)^(1/(4 m)).",
        "Every truth with distinct lines, whether other cells have one atom or several.",
        "",
        (Order(2, 4), Order(3, 6), Order(4, 8)),
    ),
    Fact(
        "entropy-of-lines",
        "Densities of competing normal experts are Lipschitz in the parameters",
        "compete",
        ("Lemma K.2",),
        "Bounded inputs, experts with bounded derivatives in their parameters, variances between"
        " two positive bounds, as the proof has it; with or without masses.",
        "Weights are shares of exp(c + log(1 + exp(g))), so that sum_i |dw_i| <= max (|dc| + |dg|);"
        " normal densities are at most (2 pi nu)^(-1/2), with slopes of at most that times"
        " e^(-1/2) nu^(-1/2) in the mean and 1/(2 nu) in the variance: |p - p'| <= C |theta -"
        " theta'|, and a grid of mesh eps is a cover.  With the envelope B(y) of the proof, which"
        " has normal tails, the brackets [max(p - eps, 0), min(p + eps, B)] have squared L2 width"
        " of at most 2 eps times the integral of B.  Written out in docs/theory/short_proofs.md.",
        "Every such set.",
        "",
        (Inequality(lipschitz.COMPETE_LEMMA_K_2),),
    ),
    Fact(
        "never-active",
        "An expert outside the top K at every input is not seen",
        "compete-v1",
        ("Theorem 4.2",),
        "k = k* = 3, K = 2; distinct atoms, experts differentiable and not 0.",
        "|a x + b| of one expert stays below those of two others on the inputs: its parameters can"
        " move without a trace.",
        "A set of truths of positive measure.",
        "Assume that every expert is among the top K on a set of inputs of positive measure.",
        (Witness(gaussian.NEVER_ACTIVE),),
        SPECIAL,
        measure=POSITIVE,
    ),
    Fact(
        "no-cover",
        "Under a top-K gate a class of densities with Lipschitz experts need have no finite cover",
        "compete-v1",
        ("Lemma B.2",),
        "Lemma B.2 for experts that are Lipschitz in their parameters, as its proof has it; top 1"
        " of two, a compact set of parameters.",
        "g = 2 + u + W x^2 1(x > 0) + W^3 sin(x / W), W in [0, 1 / pi], has bounded derivatives in"
        " (u, W).  Beside the expert 2 with variance .4, one with u = 0, W_k = 1 / (2^k pi) and"
        " variance .1 is the larger for x < 0 exactly where sin(2^k pi x) > 0.  Any two of these"
        " sets, k different, differ on half of [-1, 0], and there the densities are N(2, .1) and"
        " N(2, .4) but for W_k^3, which are .645 apart in L1: members are at least .16 apart, for"
        " infinitely many k.  No grid is a cover, and the covering number at .08 is infinite.",
        "Some experts that the lemma allows; for lines see cover-of-lines.",
        "Ask for experts of which two have boundedly many ties, such as lines.",
        (Inequality(lipschitz.COMPETE_V1_NO_COVER),),
        SPECIAL,
    ),
    Fact(
        "cover-of-lines",
        "Under a top-K gate lines on an interval have covers of polynomial order",
        "compete-v1",
        ("Lemma B.2",),
        "Linear experts, one input, bounded parameters.",
        "|a x + b| = |a' x + b'| at two x at most, so that the order of k lines changes at most"
        " k (k - 1) times: the inputs fall into at most k (k - 1) + 1 intervals with one active set"
        " each.  Parameters and ends of intervals on grids of mesh eps, with every choice of the"
        " active sets, make a cover in L1: within an interval densities are Lipschitz in the"
        " parameters, and ends that move by eps cost 2 eps each.  Its size is of order eps^-Q, with"
        " Q = P + k (k - 1).  (A grid of the parameters alone is none: ends move fast where a and"
        " a' nearly agree.)  Brackets as in entropy-of-lines.",
        "Every bounded set.",
        "",
        (Inequality(lipschitz.COMPETE_V1_SWITCHES),),
    ),
)
