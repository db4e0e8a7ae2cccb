"""Claims of Duy et al. (n.d.), on gradient descent of patch-wise networks behind a top-1 router.

`moestat.networks` trains that system.  Inequalities with stated constants are evaluated by
`experiments.expert_count.trials`.  Statements of an order, with constants that no run at one d
can tell, are listed so that none is passed over.
"""

from __future__ import annotations

from experiments.claims import printed
from experiments.claims.claim import Claim
from experiments.claims.kinds import Contrast, Inequality, Printed
from experiments.claims.rules import MISPRINT
from experiments.expert_count.trials import TRIALS

__all__ = ["CLAIMS"]

_TRAINING = "of an order in d and sigma0, on the path of gradient descent"
_DECIDES = "a proof with its constants would decide it, runs at one d do not"
_MAIN = (
    (
        "theorem-1",
        "Theorem 1",
        "For M between K log K log log d and sigma0^-0.075, training error is 0, test error is"
        " o(1), each expert is good on one cluster, and the router finds it.",
        "",
    ),
    (
        "theorem-2",
        "Theorem 2",
        "Beyond some number of experts the test error stays above a constant.",
        "",
    ),
    (
        "proposition-3",
        "Proposition 3",
        "In the second stage experts see the label signal only, the router the cluster centre"
        " only.",
        "",
    ),
)
_PER_PATCH = (
    "needs the first line of Lemma 15 or 18 for every patch, which is false for two patches or"
    " more: see the fact frobenius-share; as repaired these bound the sum over patches, and how it"
    " is shared among them is not shown"
)
_UNSUPPORTED = {
    "theorem-1": f"(57), (58) and (77) of its proof {_PER_PATCH}; with all constants 1, which the"
    " theorem does not print, its range of M is empty at the experiments' K = 4 and d = 50 (7.6 to"
    " 1.1)",
    "proposition-3": f"its induction goes through Lemma 18, whose proof {_PER_PATCH}",
    "lemma-23": f"(46) of its proof {_PER_PATCH}",
    "lemma-24": f"it follows from Lemma 23, which {_PER_PATCH}",
    "theorem-2": "the display has an expert m that nothing binds, and the paper states it as what"
    " it"
    " plans to prove",
}
"""Claims that what the paper gives does not carry, by name."""
_FROBENIUS = ("theorem-1", "proposition-3", "lemma-23", "lemma-24")
_FAILS = {15: "frobenius-share", 18: "frobenius-share", 27: "quadratic-growth"}
_QUOTES = {
    14: ("Lemma 12, for its main term", ("first-signal",)),
    19: ("the last two lines of Lemma 18, which are not proved here", ("cubes-of-patches",)),
}
"""What a lemma is quoted from, with the fact that is needed beside it."""
_LEMMAS = (
    "Routing probabilities change by at most M^2 times the change of the scores.",
    "With equal weights across patches experts specialise: error o(1) on their own cluster.",
    "With independent weights across patches they do not: error of order 1 / K on each.",
    "Sums of the signals over a cluster deviate from their means by order sqrt(n).",
    "Noise patches are almost orthogonal to the signals, to order d^(-1/2).",
    "At the start each expert has one best unit and cluster, by a margin; each cluster an expert.",
    "At the start all inner products are of order sigma0.",
    "The router's gradients add up to 0 over the experts.",
    "Gradients deviate from their means by order n^(-1/2).",
    "In the first stage weights, outputs and gates stay small, of order sigma0^0.5 and sigma0^1.5.",
    "In the first stage an example is routed to each expert with 1 / M, to order sigma0^1.5.",
    "The update of the experts' weights along signals and noise in the first stage.",
    "In the first stage only the best unit grows along its own signal.",
    "An expert needs at most order eta^-1 M^4 sigma0^0.8 steps to find its signal.",
    "From then on its best unit grows steadily along its signal; all else stays small.",
    "In the second stage outputs are bounded and the gate of the chosen expert at least of"
    " order 1 / M.",
    "Gates and routing change by at most the order of the change of the scores.",
    "In the second stage the best unit goes on growing along its signal; all else stays small.",
    "In the second stage outputs hardly depend on the noise patches.",
    "In the second stage scores hardly depend on anything but the cluster centre.",
    "Gates and routing of experts of one cluster differ by the order of their scores' difference.",
    "Experts of one cluster keep scores within order sigma0^1.5 of each other.",
    "The router leaves wrong experts whose score is near the largest.",
    "Proposition 3 holds throughout the second stage; at its end wrong experts' scores are lower.",
    "Routing probabilities of two experts differ by at most M^2 times the difference of scores.",
    "An expert whose score is below the largest by 1 is never chosen.",
    "The order in which two sequences with quadratic growth pass a level.",
)
_TRIED = {2, 3, 6}
_PROVED = {
    **dict.fromkeys((1, 17, 21, 25, 26), "noisy-routing"),
    **dict.fromkeys((4, 5, 7, 9), "concentration"),
    8: "router-gradients",
    **dict.fromkeys((10, 11, 16), "short-steps"),
    **dict.fromkeys((12, 13), "first-stage"),
}
_NOTES = {
    2: "The error is compared with that of independent weights; o(1) is of an order.",
    3: "The order 1 / K is taken as 1 / (2 K).",
    6: "The constants of M and J are taken as 1.",
    17: "With constants 1.",
    21: "With constants 1; the second bound is Lemma 25.",
    13: "For eta <= x_0 / 2: for larger eta of order sigma0 a step may throw a negative product"
    " past x_0.  The printed proof applies Lemma 27 at G = 2, where its condition on eta cannot be"
    " met; the one of the fact does without.",
    14: "The exact order is M^2 sigma0^0.9 / eta, which is smaller.  The alignment after it is"
    " expert-count.lemma-14.alignment.",
    15: "The bound on the growth of the best unit, for every patch.  The other lines are Lemma 13.",
    18: "Its first line.  The proof of the others applies Lemma 27 at G = 1, where log(1/G) is 0"
    " and its condition is none, and at a start that Lemma 15 gives for every patch.",
    27: "With one constant for all G and A it is false as G tends to 1 and A to x0, where the"
    " condition allows a step of any length; see expert-count.lemma-27.repaired.",
}


def _lemma(number: int, statement: str) -> Claim:
    name, fact = f"lemma-{number}", _PROVED.get(number)
    tried = (Inequality(TRIALS[name]),) if number in _TRIED and not fact else ()
    fails = (_FAILS[number],) if number in _FAILS else ()
    quoted, needed = _QUOTES.get(number, ("", ()))
    why = _UNSUPPORTED.get(name, "")
    return Claim(
        f"expert-count.{name}",
        f"Lemma {number}",
        statement,
        checks=tried,
        proved=(fact,) if fact else (),
        fails=fails,
        quotes=quoted,
        follows=(*needed, *(("frobenius-share",) if name in _FROBENIUS else ())),
        unsupported=why,
        untested=""
        if tried or fact or fails or why or quoted
        else f"a statement {_TRAINING}; {_DECIDES}",
        note=_NOTES.get(number, ""),
    )


_COUNTS = (4, 8, 16, 32, 64)
_UNSTATED = "The paper states neither n, T nor sigma0; the runs have those of Chen et al. (2022)."


def _contrasts(
    metric: str, *pairs: tuple[tuple[str, int], tuple[str, int]]
) -> tuple[Contrast, ...]:
    """The metric is larger in the first runs of each pair."""
    return tuple(Contrast("expert_count_figure1", metric, *pair) for pair in pairs)


def _peak(curve: str, best: int) -> tuple[Contrast, ...]:
    """The accuracy of a curve is largest at one number of experts."""
    others = (m for m in _COUNTS if m != best)
    return _contrasts("test_accuracy", *(((curve, best), (curve, m)) for m in others))


_FIGURES = (
    (
        "figure-1.mlp",
        "Figure 1",
        "With MLP experts and P = 4 accuracy is highest at M = 16.",
        _peak("MLP, P = 4", 16),
    ),
    (
        "figure-1.cnn",
        "Figure 1",
        "With CNN experts and P = 4 accuracy is highest at M = 8.",
        _peak("CNN, P = 4", 8),
    ),
    (
        "figure-1.patches",
        "Figure 1",
        "With MLP experts accuracy is lower at P = 8 than at P = 4.",
        _contrasts("test_accuracy", *((("MLP, P = 4", m), ("MLP, P = 8", m)) for m in _COUNTS)),
    ),
    (
        "figure-2",
        "Figure 2",
        "Dispatch entropy is higher where M is beyond its best value.",
        _contrasts(
            "entropy",
            (("MLP, P = 4", 64), ("MLP, P = 4", 16)),
            (("CNN, P = 4", 64), ("CNN, P = 4", 8)),
        ),
    ),
)

CLAIMS = (
    *(
        Claim(
            f"expert-count.{name}",
            place,
            statement,
            untested=why,
            unsupported=_UNSUPPORTED.get(name, ""),
            follows=("frobenius-share",) if name in _FROBENIUS else (),
        )
        for name, place, statement, why in _MAIN
    ),
    *(_lemma(number, statement) for number, statement in enumerate(_LEMMAS, start=1)),
    Claim(
        "expert-count.lemma-14.only-when",
        "Lemma 14, second half of its first sentence",
        "An expert finds its signal by T_1 only when M is of order sigma0^-0.075.",
        fails=("first-signal",),
        note="An upper bound cannot show an only when.  By the exact order it does so for M up to"
        " order sigma0^-0.2; the sentence is false from M = sigma0^-0.1 on, where Lemmas 10 to 12"
        " still hold.",
    ),
    Claim(
        "expert-count.lemma-14.alignment",
        "Lemma 14, second sentence, and step (14)",
        "From then on the gradient of the best unit along its signal is at least 1 - sigma0^0.2 of"
        " the gradient's norm, for every patch.",
        fails=("frobenius-share",),
        note="Step (14) leaves out the sum over patches.",
    ),
    Claim(
        "expert-count.lemma-15.repaired",
        "Lemmas 14 and 15, repaired",
        "From T^(m) on the gradients of the best unit along its signal, in all P patches together,"
        " are at least 1 - s of the norm in length, s of order sigma0^0.2 up to logarithms, and its"
        " inner products with its signal add up over patches to at least (1 - s) eta (t - T^(m)).",
        proved=("frobenius-share",),
        note="So the largest is at least (1 - s) / P of eta (t - T^(m)), and the vector"
        " over patches P^(-1/2) of it: the orders survive where P is logarithmic, but how the sum"
        " is shared among patches is not shown.",
        repairs="expert-count.lemma-15",
    ),
    Claim(
        "expert-count.abstract.range",
        "Abstract and Introduction",
        "The analysis shows an optimal range of the number of experts.",
        unsupported="the lower end is Lemma 6's count of experts that cover all clusters; the upper"
        " end, M of order sigma0^-0.075, is Lemma 14's only when, which is false, and that test"
        " error is high beyond it is Theorem 2, which is not proved",
        follows=("first-signal",),
    ),
    Claim(
        "expert-count.lemma-27.repaired",
        "Lemma 27, repaired",
        "If C_t >= 0 and eta <= G x0 / 2, then y <= 2 (1 + G) / G y0 until x has passed A.",
        proved=("quadratic-growth",),
        repairs="expert-count.lemma-27",
    ),
    Claim(
        "expert-count.equation-76",
        "(76)",
        "Each expert has y f <= 0 on the training examples of its cluster.",
        checks=(Inequality(TRIALS["equation-76"], failing=MISPRINT),),
        note="Its sign is reversed: the proof, (77), shows y f > 0, as zero training error needs.",
    ),
    Claim(
        "expert-count.equal-weights",
        "after Lemma 3",
        "Equal weights across patches are necessary and sufficient for experts to specialise.",
        unsupported="Lemmas 2 and 3 compare equal weights with independent ones; that no other"
        " start does it, such as nearly equal weights, is neither stated nor shown",
    ),
    Claim(
        "expert-count.lemma-16.activation",
        "Lemma 16, proof, against (11), (23), (73)",
        "The activation is bounded.",
        checks=(Printed(printed.EXPERT_COUNT_UNIT),),
        note="sigma(z) = z^3 by the derivatives used.  The lemma stands: arguments are bounded.",
    ),
    Claim(
        "expert-count.second-stage",
        "Remark after Lemma 24, against Lemma 16 and (55)",
        "The second stage reaches steps of order 1 / eta, not 1 / (eta M^2).",
        checks=(Printed(printed.EXPERT_COUNT_SECOND_STAGE),),
        note="Lemmas 16 to 24 are stated and proved up to T_2 = 1 / (eta M^2).",
    ),
    *(
        Claim(f"expert-count.{name}", place, statement, checks=checks, note=_UNSTATED)
        for name, place, statement, checks in _FIGURES
    ),
)
