"""Claims of Nguyen et al. (2025) and Pham et al. (2024), on Gaussian experts that compete."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from experiments.claims.claim import Claim
from experiments.claims.kinds import (
    FREE_MASSES,
    AsPrinted,
    Bound,
    Check,
    Condition,
    Exponent,
    Far,
    Floored,
    Order,
    Slope,
)
from experiments.claims.scope import EXACT, Models, Scope
from experiments.compete.class_as_printed import BEST_OF_CLASS

__all__ = ["CLAIMS"]

HALF, QUARTER = Fraction(-1, 2), Fraction(-1, 4)
_SWEEP = "microscope_gaussian"
_FREE = "competition, free masses, k = {}"
_ANY = "gaussian, competition gate, any experts that are algebraically independent"
_LINES = "gaussian, competition gate, linear experts"
_SOFTMAX = "gaussian, softmax gate, linear experts"
_TOP = "gaussian, top-K competition gate, exactly specified"
_FREE_NOTE = "A free mass in the gate, which the printed model lacks."
_VAN_DE_GEER = "van de Geer (2000), Theorem 7.4"
_NEURON = {"name": "activation", "activation": "gelu", "weighted": False}
_NEURONS = "microscope_neurons", "neurons, k = 3"
_MEETS = (
    "At GELU neurons without output weight and alpha bounded away from 0, which meet the condition"
    " at parameters drawn at random.  At alpha = 0 they do not, and the bound is false there"
    " (flat-neuron); networks with an output weight do not (compete.section-3.independence).  The"
    " condition is printed with a sum over (u, v) in both orders, which no expert with two"
    " parameters meets, since second derivatives are symmetric: a misprint, read as u <= v.  "
)
_UPPER = (
    "Maximum likelihood is as fast by the fact per-input, up to a power of log n and where no mass"
    " vanishes, and no estimator is faster by gauss-hermite.  Of the experts alone: gate slopes are"
    " not identified where every cell has several (the explorer's case softmax-22)."
)
_BOTH: dict[str, Any] = {
    "quotes": _VAN_DE_GEER,
    "follows": ("per-input", "gauss-hermite", "entropy-of-lines"),
}
"""Both halves of the rate of over-specified lines under softmax."""


def _free(k: int, quantity: str | tuple[int, str], exponent: Fraction) -> Check:
    several = not isinstance(quantity, str) and quantity[0] > 1
    note = f"{_FREE_NOTE[:-1]}; {FREE_MASSES}" if several else _FREE_NOTE
    curve = _FREE.format(k)
    return Slope(_SWEEP, curve, quantity, exponent, required=not several, note=note)


def _competing(*blocks: str) -> tuple[Check, ...]:
    """Errors under competition in cells of two where no mass may vanish, at two truths."""
    return tuple(
        Floored(f"{truth}, k = 3", 2, block, QUARTER)
        for truth in ("competition", "competition-second")
        for block in blocks
    )


def _floored(fit: str, size: int, exponent: Fraction) -> tuple[Check, ...]:
    """The intercepts' errors where no mass may vanish, at two truths."""
    return tuple(Floored(f"{truth}, {fit}", size, "b", exponent) for truth in ("first", "second"))


_EXPERTS = (
    _free(2, (1, "expert"), HALF),
    *_competing("expert"),
    _free(3, (2, "expert"), QUARTER),
)

CLAIMS = (
    Claim(
        "compete.proposition-3.1",
        "Proposition 3.1",
        "For N > N*, the total variation of the density estimate falls at (log n / n)^(1/2).",
        _ANY,
        "total variation",
        {"density": HALF},
        (AsPrinted(BEST_OF_CLASS), _free(3, "hellinger", HALF)),
        quotes=_VAN_DE_GEER,
        follows=("entropy-of-lines",),
        note="The class has 1 <= N' <= N atoms, and so holds the truth: the best of all N'"
        " converges,"
        " by fits with N* atoms once n is large.  Fits with exactly three unit masses do not.",
    ),
    Claim(
        "compete.section-3.independence",
        "Sec. 3, Problem setting",
        "Networks W2 softplus(W1 x + b) satisfy the algebraic independence condition.",
        _ANY,
        fails=("output-weight",),
    ),
    Claim(
        "compete.section-3.linear",
        "Sec. 3, Problem setting",
        "Linear experts do not satisfy it.",
        _LINES,
        checks=(Condition("algebraic", "linear", claimed=False),),
    ),
    Claim(
        "compete.theorem-3.2",
        "Theorem 3.2, eqs. (6), (7)",
        "The mean total variation is at least a constant times L1.",
        _ANY,
        "competition-L1",
        {"loss": HALF},
        (
            Condition("algebraic", _NEURON),
            Bound("compete-32-neurons", note=_FREE_NOTE),
            Far("compete-32-neurons"),
        ),
        at_closure=("flat-neuron",),
        note=_MEETS + "The printed loss has masses that the printed gate lacks.",
    ),
    Claim(
        "compete.theorem-3.2.rate",
        "Theorem 3.2, last sentence",
        "L1 of the maximum-likelihood estimate falls at (log n / n)^(1/2).",
        _ANY,
        "competition-L1",
        {"loss": HALF},
        (Condition("algebraic", _NEURON), Slope(*_NEURONS, "loss", HALF, note=_FREE_NOTE)),
        at_closure=("flat-neuron",),
        note=_MEETS,
    ),
    Claim(
        "compete.theorem-3.2.experts",
        "Sec. 3, remark (i)",
        "Exact-specified experts are estimated at n^(-1/2), over-specified ones at n^(-1/4).",
        _ANY,
        "expert error in sup norm",
        {"exact": HALF, "over": QUARTER},
        (
            Condition("algebraic", _NEURON),
            Slope(*_NEURONS, (1, "expert"), HALF),
            Slope(
                *_NEURONS,
                (2, "expert"),
                QUARTER,
                required=False,
                note=FREE_MASSES,
            ),
            Exponent("compete-32-neurons-order", 2),
        ),
        at_closure=("flat-neuron",),
        note=_MEETS + _FREE_NOTE,
    ),
    Claim(
        "compete.equation-3",
        "eqs. (3), (13) against (6), (14)",
        "The gate is softmax(softplus(g)), without masses, while the loss has masses exp(c).",
        _ANY,
        "competition-L1",
        misprint=("lost-masses",),
        note="All other claims of the section are judged with the masses in the gate.",
    ),
    Claim(
        "compete.section-3.samples",
        "Sec. 3, remark (ii), its first half",
        "Over-specified experts need eps^-4 samples under competition.",
        _ANY,
        "expert error in sup norm",
        {"over": QUARTER},
        (Condition("algebraic", _NEURON), Exponent("compete-32-neurons-order", 2)),
        at_closure=("flat-neuron",),
        note=_MEETS + "The order of n^(-1/4) at a truth near which the explorer searched.  That"
        " eps^-12 samples are needed without competition is compete.section-3.without, of linear"
        " experts: the two halves are of different experts, and no contrast follows.",
    ),
    Claim(
        "compete.section-3.without",
        "Sec. 3, remark (ii) (of Nguyen et al. (2023))",
        "Without competition, an expert fitted by three is estimated at n^(-1/12).",
        _SOFTMAX,
        "gaussian-softmax-D",
        {"over 3": Fraction(-1, 12)},
        (
            Order(3, 6),
            Exponent("softmax-3-order", 6, required=False),
            *_floored("k = 4", 3, Fraction(-1, 12)),
        ),
        **_BOTH,
        note="Printed for any expert, of a theorem on linear ones, and read for these.  " + _UPPER,
    ),
    Claim(
        "compete.theorem-j.1",
        "Theorem J.1, eqs. (14), (15)",
        "The mean total variation is at least a constant times L2.",
        _LINES,
        "competition-L2",
        {"loss": HALF},
        (
            Bound("compete-J1", note=_FREE_NOTE),
            Bound("compete-J1-normalised", required=False, note="masses 1/N against 1/N*"),
        ),
        note="The printed loss has masses that the printed gate lacks.",
        fails=("flat-competitor",),
    ),
    Claim(
        "compete.theorem-j.1.rate",
        "Theorem J.1, last sentence",
        "L2 of the maximum-likelihood estimate falls at (log n / n)^(1/2).",
        _LINES,
        "competition-L2",
        {"loss": HALF},
        (
            _free(2, "loss", HALF),
            _free(3, "loss", HALF),
        ),
        fails=("flat-competitor",),
    ),
    Claim(
        "compete.theorem-j.1.parameters",
        "App. J, remark (i)",
        "Exact-specified parameters are estimated at n^(-1/2), over-specified ones at n^(-1/4).",
        _LINES,
        "competition-L2",
        {"exact": HALF, "over": QUARTER},
        (
            *(_free(2, (1, block), HALF) for block in ("a", "b", "nu")),
            *_competing("a", "b", "nu"),
            *(_free(3, (2, block), QUARTER) for block in ("a", "b", "nu")),
        ),
        note=_FREE_NOTE,
        fails=("flat-competitor",),
    ),
    Claim(
        "compete.theorem-j.1.experts",
        "App. J, remark (ii)",
        "Exact-specified experts are estimated at n^(-1/2), over-specified ones at n^(-1/4).",
        _LINES,
        "expert error in sup norm",
        {"exact": HALF, "over": QUARTER},
        (*_EXPERTS, Exponent("compete-J1-order", 2, required=False)),
        note=_FREE_NOTE,
        fails=("flat-competitor",),
    ),
    Claim(
        "compete.section-j.without.two",
        "App. J, remark (iii) (of Nguyen et al. (2023))",
        "Without competition, a linear expert fitted by two is estimated at n^(-1/8).",
        _SOFTMAX,
        "gaussian-softmax-D",
        {"over 2": Fraction(-1, 8)},
        (
            Order(2, 4),
            Exponent("softmax-2-order", 4),
            *_floored("k = 3", 2, Fraction(-1, 8)),
        ),
        **_BOTH,
        note=_UPPER,
    ),
    Claim(
        "compete.section-j.without.three",
        "App. J, remark (iii) (of Nguyen et al. (2023))",
        "Without competition, a linear expert fitted by three is estimated at n^(-1/12).",
        _SOFTMAX,
        "gaussian-softmax-D",
        {"over 3": Fraction(-1, 12)},
        (
            Order(3, 6),
            Exponent("softmax-3-order", 6, required=False),
            *_floored("k = 4", 3, Fraction(-1, 12)),
        ),
        **_BOTH,
        note=_UPPER,
    ),
    Claim(
        "compete.section-j.without.more",
        "App. J, remark (iii): slower as the number of fitted experts grows",
        "Without competition, the order rbar(m) of cells of m is at least 7 for m >= 4.",
        _SOFTMAX,
        "gaussian-softmax-D",
        {"over 4": Fraction(-1, 14)},
        (Order(4, 7, at_least=True), Order(5, 7, at_least=True)),
        proved=("orders",),
        note="The bound is that of Nguyen et al. (2023), second-hand; rbar(m) = 2m.",
    ),
    Claim(
        "compete.section-j.without.lower",
        "Sec. 3, remark (ii), and App. J, remark (iii), the lower half",
        "Without competition, no estimator of a linear expert fitted by m is faster than"
        " n^(-1/(4 m)) at all truths near one.",
        _SOFTMAX,
        "gaussian-softmax-D",
        {"over 2": Fraction(-1, 8), "over 3": Fraction(-1, 12)},
        proved=("gauss-hermite",),
    ),
    Claim(
        "compete.lemma-k.1",
        "Lemma K.1 (van de Geer, Theorem 7.4)",
        "A tail bound of the Hellinger distance from an entropy integral.",
        quotes=_VAN_DE_GEER,
    ),
    Claim(
        "compete.lemma-k.2",
        "Lemma K.2",
        "Covering numbers and bracketing entropy are at most of order log(1 / eps).",
        _ANY,
        proved=("entropy-of-lines",),
        note="Upper brackets are printed with max for min.",
    ),
    Claim(
        "compete-v1.theorem-4.1",
        "Theorem 4.1",
        "The Hellinger distance of the density estimate falls at (log n / n)^(1/2).",
        _TOP,
        "Hellinger",
        {"density": HALF},
        tuple(
            Slope("gaussian_exact_v1", curve, "hellinger", HALF)
            for curve in ("top 1, k = 2", "top 2, k = 3")
        ),
        note="Measured at lines of one input.  For these it follows from van de Geer (2000),"
        " Theorem 7.4, with compete-v1.lemma-b.2.repaired; for Lipschitz experts its Lemma B.2 is"
        " false.",
    ),
    Claim(
        "compete-v1.theorem-4.2",
        "Theorem 4.2, eqs. (9), (10)",
        "The mean Hellinger distance is at least a constant times D.",
        _TOP,
        "competition-top-D",
        {"loss": HALF},
        (Bound("compete-v1-42"),),
        fails=("never-active",),
    ),
    Claim(
        "compete-v1.theorem-4.2.rate",
        "Theorem 4.2, eq. (11)",
        "D of the maximum-likelihood estimate falls at (log n / n)^(1/2).",
        _TOP,
        "competition-top-D",
        {"loss": HALF, "exact": HALF},
        (
            Slope("gaussian_exact_v1", "top 1, k = 2", "loss", HALF),
            Slope("gaussian_exact_v1", "top 2, k = 3", "loss", HALF),
        ),
        fails=("never-active",),
    ),
    Claim(
        "compete-v1.theorem-4.2.every",
        "Sec. 4, after Theorem 4.2",
        "Every expert's parameters are estimated at the optimal rate n^(-1/2).",
        _TOP,
        "competition-top-D",
        {"exact": HALF},
        fails=("never-active",),
    ),
    Claim(
        "compete-v1.section-4.hindsight",
        "Sec. 1 and Sec. 4",
        "Competition has the same convergence rate as the best estimator in hindsight.",
        _TOP,
        unsupported="no estimator in hindsight is defined; Theorem 4.2 is the parametric rate,"
        " which"
        " any regular model with known active experts has",
    ),
    Claim(
        "compete-v1.lemma-b.1",
        "Lemma B.1 (van de Geer, Theorem 7.4)",
        "A tail bound of the Hellinger distance from an entropy integral.",
        quotes=_VAN_DE_GEER,
    ),
    Claim(
        "compete-v1.lemma-b.2",
        "Lemma B.2",
        "Covering numbers and bracketing entropy are at most of order log(1 / eps).",
        _TOP,
        fails=("no-cover",),
        note="The printed proof bounds by a parameter grid, across jumps of the active set.  It is"
        " true for lines of one input, see compete-v1.lemma-b.2.repaired.",
    ),
    Claim(
        "compete.theorem-j.1.repaired",
        "Theorem J.1, repaired",
        "The bound by L2 holds for lines none of which is constant, with masses in the gate.",
        _LINES,
        "competition-L2",
        checks=(Bound("compete-J1"), Far("compete-J1")),
        scope=Scope(
            Models("gaussian", ("competition-free",), ("linear",)),
            place="Sec. 3, App. J",
            conditions=("masses up to a factor", "no constant line"),
        ),
        repairs="compete.theorem-j.1",
    ),
    Claim(
        "compete-v1.theorem-4.2.repaired",
        "Theorem 4.2, repaired",
        "In a neighbourhood of the truth, the bound by D holds where every expert is among the"
        " top K"
        " on a set of positive measure.",
        _TOP,
        "competition-top-D",
        checks=(Bound("compete-v1-42"),),
        note="Far from the truth nothing is searched: the gate jumps.",
        scope=Scope(
            Models("gaussian", ("competition-top",)),
            place="Sec. 4",
            conditions=("each is active",),
            specified=EXACT,
            near=True,
        ),
        repairs="compete-v1.theorem-4.2",
    ),
    Claim(
        "compete-v1.lemma-b.2.repaired",
        "Lemma B.2, repaired",
        "Covering numbers and bracketing entropy are at most of order log(1 / eps) for lines of"
        " one input.",
        _TOP,
        proved=("cover-of-lines",),
        repairs="compete-v1.lemma-b.2",
    ),
)
