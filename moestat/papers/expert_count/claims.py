"""Claims of expert-count (002), on gradient descent of patch-wise networks behind a top-1 router.

moestat has no family for that system: its labels come from clustered patches, its experts are
trained by normalised gradient descent with noisy routing, and its statements are on the path of
the weights and on test errors, not on the rate of an estimator.  They are listed so that none is
passed over.
"""

from __future__ import annotations

from moestat.papers.claims.claim import Claim

__all__ = ["CLAIMS"]

_TRAINING = "on the path of gradient descent of a system that moestat has no family for"
_QUOTED = "a lemma of another paper, quoted, {}"
_MAIN = (
    (
        "theorem-1",
        "Theorem 1",
        "For M between K log K log log d and sigma0^-0.075, training error is 0, test error is"
        " o(1), each expert is good on one cluster, and the router finds it.",
        f"a statement {_TRAINING}, and on test errors",
    ),
    (
        "theorem-2",
        "Theorem 2",
        "Beyond some number of experts the test error stays above a constant.",
        "the paper states it as what it plans to prove; moestat has no family for its system",
    ),
    (
        "proposition-3",
        "Proposition 3",
        "In the second stage experts see the label signal only, the router the cluster centre"
        " only.",
        f"a statement {_TRAINING}",
    ),
)
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
    "An expert needs order eta^-1 M^4 sigma0^0.8 steps to find its signal: in time only for M of"
    " order sigma0^-0.075.",
    "From then on its best unit grows steadily along its signal; all else stays small.",
    "In the second stage outputs are bounded and the gate of the chosen expert at least 1 / M.",
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
_QUOTES = {25: "Chen et al. (2022)", 26: "Chen et al. (2022)", 27: "Allen-Zhu and Li (2020)"}
_ALGEBRA = {1, 17}


def _why(number: int) -> str:
    if number in _QUOTES:
        return _QUOTED.format(_QUOTES[number])
    if number in _ALGEBRA:
        return "an inequality between routing probabilities, not a rate of an estimator"
    return f"a statement {_TRAINING}"


CLAIMS = tuple(
    Claim(f"expert-count.{name}", place, statement, untested=why)
    for name, place, statement, why in _MAIN
) + tuple(
    Claim(f"expert-count.lemma-{number}", f"Lemma {number}", statement, untested=_why(number))
    for number, statement in enumerate(_LEMMAS, start=1)
)
