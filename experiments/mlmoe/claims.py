"""Claims of Pham et al. (2026), on multinomial logistic experts under sigmoid gates.

Those of abstract, tables of experiments and figure are in `experiments.mlmoe.sentence_claims`.
"""

from __future__ import annotations

from fractions import Fraction

from experiments.claims import equations
from experiments.claims.claim import Claim
from experiments.claims.kinds import (
    FREE_MASSES,
    Bound,
    Check,
    Far,
    Floored,
    Identity,
    Orbit,
    Slope,
)
from experiments.claims.rules import SUPPORTS
from experiments.claims.scope import ALMOST_ALL, Models, Scope

__all__ = ["CLAIMS"]

HALF, QUARTER, SLOW = Fraction(-1, 2), Fraction(-1, 4), Fraction(0)
_SWEEP = "microscope_mlmoe"
_EXACT, _OVER = {"exact": HALF}, {"over": QUARTER}
SIGMOID = "multinomial, modified sigmoid gate"
INNER = "multinomial, sigmoid gate, temperature and inner product"
EUCLIDEAN = "multinomial, sigmoid gate, temperature and Euclidean score"
SOFTMAX = "multinomial, softmax gate"
GATES, SPLITS, SHARED = (
    ("single-expert",),
    ("constant-experts", "equal-slopes"),
    ("shared-gate", "shared-slopes"),
)
NEVER_SEEN = ("swapped-experts", "resonance")
"""Exceptions to Theorem 1 that no assumption on single slopes leaves out."""


def _almost_all(gate: str, *conditions: str, near: bool = False) -> Scope:
    """Almost every truth with two experts or more, masses up to a common factor."""
    return Scope(
        Models("multinomial", (gate,)),
        place="A.1, Sec. 3",
        conditions=("two experts", "masses up to a factor", *conditions),
        truths=ALMOST_ALL,
        near=near,
    )


_VAN_DE_GEER = "van de Geer (2000), Theorem 7.4"
_REGIME_2 = "Regime 2 is a truth with an expert of slopes 0."


def _slopes(truth: str, exact: bool = True, over: bool = True) -> tuple[Check, ...]:
    """Slopes of the experts' errors by kind of cell, of fits with k* and k* + 1 atoms."""
    checks: list[Check] = []
    if exact:
        checks.append(Slope(_SWEEP, f"{truth}, k = 2", (1, "expert"), HALF))
    if over:
        curve = f"{truth}, k = 3"
        checks.append(
            Slope(_SWEEP, curve, (2, "expert"), QUARTER, required=False, note=FREE_MASSES)
        )
    return tuple(checks)


def _loss(truth: str, quantity: str = "loss") -> tuple[Check, ...]:
    return tuple(Slope(_SWEEP, f"{truth}, k = {k}", quantity, HALF) for k in (2, 3))


def _density(truth: str) -> tuple[Check, ...]:
    return _loss(truth, "hellinger")


CLAIMS = (
    Claim(
        "mlmoe.table-1.softmax-regime-1.exact",
        "Table 1, row Softmax, Regime 1 (of Nguyen et al. (2024))",
        "Exact-specified parameters are estimated at (log n / n)^(1/2).",
        SOFTMAX,
        "softmax-D1",
        _EXACT,
        _slopes("softmax", over=False),
        note="The source's reading of its own regimes is second-hand here.",
        fails=("shared-slopes",),
    ),
    Claim(
        "mlmoe.table-1.softmax-regime-1.over",
        "Table 1, row Softmax, Regime 1 (of Nguyen et al. (2024))",
        "Over-specified parameters are estimated at (log n / n)^(1/4).",
        SOFTMAX,
        "softmax-D1",
        _OVER,
        (
            Floored("classes, k = 3", 2, "expert", QUARTER),
            Floored("classes-second, k = 3", 2, "expert", QUARTER),
            Slope(
                _SWEEP,
                "softmax, k = 3",
                (2, "expert"),
                QUARTER,
                required=False,
                note=FREE_MASSES,
            ),
        ),
        note="No slope is 0 at the truths of equal-slopes, so they are in Regime 1.",
        fails=("equal-slopes",),
    ),
    Claim(
        "mlmoe.table-1.softmax-regime-2.exact",
        "Table 1, row Softmax, Regime 2 (of Nguyen et al. (2024))",
        "Exact-specified parameters are estimated more slowly than at any polynomial rate.",
        SOFTMAX,
        "softmax-D2r",
        {"exact": SLOW},
        note="As a supremum over the regime: not slow but not at all, at truths with two experts"
        " without slopes under one gate, where two measures have one density and differ in cells"
        " of one.  Pointwise it is false: with one such expert, or with two under different gates,"
        " the information is nonsingular and the error is of order n^(-1/2).",
        supremum=("shared-gate",),
    ),
    Claim(
        "mlmoe.table-1.softmax-regime-2.over",
        "Table 1, row Softmax, Regime 2 (of Nguyen et al. (2024))",
        "Over-specified parameters are estimated more slowly than at any polynomial rate.",
        SOFTMAX,
        "softmax-D2r",
        {"over": SLOW},
        note="Not slow but not at all, at every truth of the regime: two measures have one density,"
        " so no estimator converges to both.",
        proved=("constant-experts",),
    ),
    Claim(
        "mlmoe.table-1.sigmoid.exact",
        "Table 1, row Sigmoid, No Temperature",
        "In all regimes, exact-specified parameters are estimated at (log n / n)^(1/2).",
        SIGMOID,
        "D1",
        _EXACT,
        (*_slopes("sigmoid", over=False),),
        note="In all regimes, so also where two experts have slopes 0.",
        fails=(*SHARED, "swapped-experts"),
    ),
    Claim(
        "mlmoe.table-1.sigmoid.over",
        "Table 1, row Sigmoid, No Temperature",
        "In all regimes, over-specified parameters are estimated at (log n / n)^(1/4).",
        SIGMOID,
        "D1",
        _OVER,
        (*_slopes("sigmoid", exact=False),),
        note=f"{_REGIME_2} There the sigmoid gate fares no better than the softmax gate.",
        fails=(*SPLITS, "resonance"),
    ),
    Claim(
        "mlmoe.table-1.sigmoid-inner",
        "Table 1, row Sigmoid, Temp & Inner Product",
        "Parameters are estimated more slowly than at any polynomial rate.",
        INNER,
        "D2r",
        {"exact": SLOW, "over": SLOW},
        note="Not slow but not at all: (alpha, beta, tau) has a free scale.",
        proved=("temperature-scale",),
    ),
    Claim(
        "mlmoe.table-1.sigmoid-euclidean.exact",
        "Table 1, row Sigmoid, Temp & Euclidean",
        "Exact-specified parameters are estimated at (log n / n)^(1/2).",
        EUCLIDEAN,
        "D3",
        _EXACT,
        (*_slopes("euclidean", over=False),),
        note="In all regimes, so also where two experts have slopes 0.",
        fails=SHARED,
    ),
    Claim(
        "mlmoe.table-1.sigmoid-euclidean.over",
        "Table 1, row Sigmoid, Temp & Euclidean",
        "Over-specified parameters are estimated at (log n / n)^(1/4).",
        EUCLIDEAN,
        "D3",
        _OVER,
        (*_slopes("euclidean", exact=False),),
        fails=SPLITS,
    ),
    Claim(
        "mlmoe.proposition-1",
        "Proposition 1",
        "Two measures with one density are equal.",
        SIGMOID,
        "D1",
        checks=(
            Orbit("mlmoe-1"),
            Orbit("mlmoe-1-table-2", required=False),
        ),
        fails=(
            *(*GATES, "constant-gate", "opposite-scores", "parallel-gates", "swapped-experts"),
            *(*SPLITS, *SHARED),
        ),
    ),
    Claim(
        "mlmoe.proposition-2",
        "Proposition 2",
        "The Hellinger distance of the density estimate falls at (log n / n)^(1/2).",
        SIGMOID,
        "Hellinger",
        {"density": HALF},
        _density("sigmoid"),
        quotes=_VAN_DE_GEER,
        follows=("entropy-of-classes",),
    ),
    Claim(
        "mlmoe.factor-of-proposition-2",
        "Proposition 2, the factor (K d k)^(1/2)",
        "The Hellinger distance of the density estimate is of order (K d k log n / n)^(1/2).",
        SIGMOID,
        "Hellinger",
        {"density": HALF},
        quotes=_VAN_DE_GEER,
        follows=("entropy-of-classes",),
        note="The class has k (1 + d + 1 + (K - 1)(d + 1)) free parameters, of order K d k, and its"
        " entropy is that number times log(C K B / eps) with B the bound of the inputs: for bounded"
        " parameters and K, d, k at most a power of n the factor is as printed, up to the"
        " logarithm.",
    ),
    Claim(
        "mlmoe.theorem-1",
        "Theorem 1, eq. (4)",
        "The mean Hellinger distance is at least a constant times D1.",
        SIGMOID,
        "D1",
        {"loss": HALF},
        (
            Bound("mlmoe-1"),
            Bound("mlmoe-1-table-2", required=False),
        ),
        fails=(
            *(*GATES, "constant-gate", "opposite-scores", "parallel-gates", *NEVER_SEEN),
            *(*SPLITS, *SHARED),
        ),
    ),
    Claim(
        "mlmoe.theorem-1.rate",
        "Theorem 1, second display",
        "D1 of the maximum-likelihood estimate falls at (log n / n)^(1/2).",
        SIGMOID,
        "D1",
        {"loss": HALF},
        (*_loss("sigmoid"),),
        note="Where two measures have one density, no estimator converges to both.",
        fails=(
            *(*GATES, "constant-gate", "opposite-scores", "parallel-gates", *NEVER_SEEN),
            *(*SPLITS, *SHARED),
        ),
    ),
    Claim(
        "mlmoe.factor-of-theorem-1",
        "Theorem 1, second display, the factor (K d k)^(1/2)",
        "D1 of the maximum-likelihood estimate depends on K, d and k by the factor (K d k)^(1/2).",
        SIGMOID,
        "D1",
        unsupported="the constant of eq. (4) comes from a contradiction and depends on the truth,"
        " and with it on K, d and k, in a way that is not shown; for K = 2, d = 1, k = 2 it is"
        " below 1e-14 on [-2, 2], see the fact second-order-classes",
        follows=("second-order-classes",),
    ),
    Claim(
        "mlmoe.equation-5",
        "eq. (5) and the paragraph after it",
        "Experts are estimated at (log n / n)^(1/2), fitted by several at (log n / n)^(1/4).",
        SIGMOID,
        "expert error in sup norm",
        {**_EXACT, **_OVER},
        (*_slopes("sigmoid"),),
        fails=(*NEVER_SEEN, *SPLITS, *SHARED),
    ),
    Claim(
        "mlmoe.section-4.1.identifiable",
        "Sec. 4.1, after eq. (7)",
        "The model with temperature and inner product remains identifiable.",
        INNER,
        "D2r",
        checks=(Orbit("mlmoe-2"),),
        fails=("temperature-scale",),
    ),
    Claim(
        "mlmoe.section-4.1.density",
        "Sec. 4.1, after eq. (7)",
        "Its density estimate converges at (log n / n)^(1/2).",
        INNER,
        "Hellinger",
        {"density": HALF},
        _density("inner"),
        quotes=_VAN_DE_GEER,
        follows=("entropy-of-classes",),
    ),
    Claim(
        "mlmoe.equation-8",
        "eq. (8)",
        "du/dtau = -(1/tau) alpha' du/dalpha - beta du/dbeta.",
        INNER,
        note="In eq. (11) as well.",
        misprint=("temperature-equation",),
    ),
    Claim(
        "mlmoe.section-4.1.ratio",
        "Sec. 4.1, display before Theorem 2",
        "For every r, the infimum of E d_V / D2r over D2r <= eps goes to 0 with eps.",
        INNER,
        "D2r",
        checks=(Bound("mlmoe-2", SUPPORTS),),
        note="The distance is 0 along the scale of (alpha, beta, tau), for every r alike.",
        proved=("temperature-scale",),
    ),
    Claim(
        "mlmoe.theorem-2",
        "Theorem 2",
        "For every r, the minimax risk in D2r is at least of order n^(-1/2).",
        INNER,
        "D2r",
        {"exact": SLOW, "over": SLOW},
        note="By Le Cam's two points: two measures with one density keep the risk above a"
        " constant, whatever n and r.",
        proved=("temperature-scale",),
    ),
    Claim(
        "mlmoe.theorem-2.experts",
        "Sec. 4.1, after Theorem 2",
        "Expert estimation may be as slow as 1 / log n.",
        INNER,
        "expert error in sup norm",
        {"over": SLOW},
        note="In the worst case, by Le Cam's two points, at truths with a constant expert; not"
        " because of the temperature, whose scale does not touch the experts: the same pair exists"
        " without one.",
        other=("constant-experts",),
    ),
    Claim(
        "mlmoe.equation-11",
        "eq. (11)",
        "The relation of eq. (8) no longer holds with the Euclidean score.",
        EUCLIDEAN,
        checks=(
            Identity(equations.MLMOE_11, claimed=False),
            Identity(equations.MLMOE_11_WITH_1_TAU, claimed=False),
        ),
    ),
    Claim(
        "mlmoe.section-4.2.identifiable",
        "Sec. 4.2, after eq. (11)",
        "The model with temperature and Euclidean score remains identifiable.",
        EUCLIDEAN,
        "D3",
        checks=(
            Orbit("mlmoe-3"),
            Orbit("mlmoe-3-table-4", required=False),
        ),
        fails=(*GATES, "positions-outside", "parallel-gates", *SPLITS, *SHARED),
    ),
    Claim(
        "mlmoe.section-4.2.density",
        "Sec. 4.2, after eq. (11)",
        "Its density estimate converges at (log n / n)^(1/2).",
        EUCLIDEAN,
        "Hellinger",
        {"density": HALF},
        _density("euclidean"),
        quotes=_VAN_DE_GEER,
        follows=("entropy-of-classes",),
    ),
    Claim(
        "mlmoe.theorem-3",
        "Theorem 3, eq. (12)",
        "The mean Hellinger distance is at least a constant times D3.",
        EUCLIDEAN,
        "D3",
        {"loss": HALF},
        (
            Bound("mlmoe-3"),
            Bound("mlmoe-3-table-4", required=False),
        ),
        fails=(*GATES, "positions-outside", "parallel-gates", *SPLITS, *SHARED),
    ),
    Claim(
        "mlmoe.theorem-3.rate",
        "Theorem 3, second sentence",
        "D3 of the maximum-likelihood estimate falls at (log n / n)^(1/2).",
        EUCLIDEAN,
        "D3",
        {"loss": HALF},
        (*_loss("euclidean"),),
        note="Where two measures have one density, no estimator converges to both.",
        fails=(*GATES, "positions-outside", "parallel-gates", *SPLITS, *SHARED),
    ),
    Claim(
        "mlmoe.theorem-3.experts",
        "Sec. 4.2, after Theorem 3",
        "Experts are estimated at (log n / n)^(1/2), fitted by several at (log n / n)^(1/4).",
        EUCLIDEAN,
        "expert error in sup norm",
        {**_EXACT, **_OVER},
        (*_slopes("euclidean"),),
        fails=(*SPLITS, *SHARED),
    ),
    Claim(
        "mlmoe.lemma-1",
        "Lemma 1, App. A.2",
        "If the infimum of d_V / D2r goes to 0, the minimax risk is at least of order n^(-1/2).",
        INNER,
        "D2r",
        note="Its conclusion is true outright, so the implication is.  The printed proof bounds the"
        " Hellinger distance by a multiple of the mean total variation, which takes an argument.",
        proved=("temperature-scale",),
    ),
    Claim(
        "mlmoe.equation-8.intended",
        "App. A.2, proof of Theorem 2",
        "du/dtau = -(1/tau) (alpha' du/dalpha + beta du/dbeta).",
        INNER,
        checks=(Identity(equations.MLMOE_8_WITH_1_TAU),),
    ),
    Claim(
        "mlmoe.assumption-3",
        "Assumption A.3, after it",
        "gamma_k* = 0 of the truth, with distinct experts, makes the model identifiable.",
        SIGMOID,
        "D1",
        misprint=("common-factor",),
        note="A convention of normalisation that is left out for the fitted measure.  Proposition 1"
        " and Theorem 1 are judged in the kinder reading, masses up to a factor.",
    ),
    Claim(
        "mlmoe.section-3.masses",
        "Sec. 3, Benefits of the modified sigmoid gate, the display",
        "Two atoms that run into one true atom do not keep its gate without exp(gamma).",
        "multinomial, plain sigmoid gate",
        proved=("sums-of-gates",),
    ),
    Claim(
        "mlmoe.section-3.vital",
        "Sec. 3, Benefits of the modified sigmoid gate, last sentence",
        "exp(gamma) plays a vital role in the convergence of the density estimate.",
        "multinomial, plain sigmoid gate",
        unsupported="the class of eq. (2) has any number k' <= k of atoms, and so holds the truth"
        " without masses, too: see the fact class-holds-truth; no estimator has to let two atoms"
        " run into one",
        follows=("class-holds-truth",),
    ),
    Claim(
        "mlmoe.lemma-2",
        "Lemma 2, App. B.1",
        "Covering numbers and bracketing entropy are at most of order log(1 / eps).",
        SIGMOID,
        proved=("entropy-of-classes",),
        note="The printed proof has h <= |.|_1 for h^2 <= |.|_1 / 2, which changes constants only.",
    ),
    Claim(
        "mlmoe.lemma-3",
        "Lemma 3, App. B.1 (van de Geer, Theorem 7.4)",
        "A tail bound of the Hellinger distance from an entropy integral.",
        quotes=_VAN_DE_GEER,
    ),
    Claim(
        "mlmoe.theorem-1.repaired",
        "Theorem 1, repaired",
        "For almost every truth with k* >= 2 the bound by D1 holds, masses up to a common factor.",
        SIGMOID,
        "D1",
        checks=(Bound("mlmoe-1"), Orbit("mlmoe-1"), Far("mlmoe-1")),
        note="Exceptions that are known, all of measure zero: slopes of gates that are 0, equal or"
        " opposite; class slopes of one expert that are equal; experts that are the gates"
        " exchanged (swapped-experts); slopes of gates and experts in small integer ratios"
        " (resonance).  The list is not known to be complete.",
        scope=_almost_all("sigmoid"),
        repairs="mlmoe.theorem-1",
    ),
    Claim(
        "mlmoe.theorem-1.two-classes",
        "Theorem 1, repaired for two classes",
        "For K = 2, one input and k* = 2 the bound by D1 holds with cells of any size for almost"
        " every truth, between measures all of whose atoms are near the true ones, masses up to a"
        " common factor.",
        SIGMOID,
        "D1",
        scope=_almost_all("sigmoid", near=True),
        repairs="mlmoe.theorem-1",
        proved=("second-order-classes",),
        note="Its constant is so small on short intervals that the bound says nothing at any sample"
        " size to be had.",
    ),
    Claim(
        "mlmoe.theorem-2.repaired",
        "Sec. 4.1, repaired",
        "With tau fixed, k* >= 2 and masses up to a common factor the bound by D2r (r = 2) holds"
        " for almost every truth: the inner product is then the gate of Theorem 1.",
        INNER,
        "D2r",
        checks=(Bound("mlmoe-2-identified"), Far("mlmoe-2-identified")),
        note="With the exceptions of mlmoe.theorem-1.repaired.",
        scope=_almost_all("sigmoid-inner", "temperature fixed"),
        repairs="mlmoe.section-4.1.identifiable",
    ),
    Claim(
        "mlmoe.theorem-3.repaired",
        "Theorem 3, repaired",
        "For almost every truth with k* >= 2 and, for one input, positions inside the inputs the"
        " bound by D3 holds, masses up to a common factor.",
        EUCLIDEAN,
        "D3",
        checks=(Bound("mlmoe-3"), Orbit("mlmoe-3"), Far("mlmoe-3")),
        note="Exceptions that are known: a common position of two gates, and class slopes of one"
        " expert that are equal.",
        scope=_almost_all("sigmoid-euclidean", "positions inside"),
        repairs="mlmoe.theorem-3",
    ),
)
