"""Evidence in words."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from experiments.claims import rules
from experiments.claims.checks import Check, Replayed
from experiments.claims.evidence import (
    ContrastEvidence,
    DependenceEvidence,
    Evidence,
    IdentityEvidence,
    InequalityEvidence,
    Missing,
    OrbitEvidence,
    OrderEvidence,
    PairEvidence,
    PrintedEvidence,
    QuantileEvidence,
    ReplayEvidence,
    SequenceEvidence,
    SlopeEvidence,
)

__all__ = ["NOT_RUN", "shown", "why_open"]

NOT_RUN = "not run"
"""Beginning of the reason why a search is missing that no verdict needs."""
_DEPENDENCIES = 2


@singledispatch
def _text(evidence: Any) -> str:
    raise TypeError(f"no words for {type(evidence).__name__}")


def shown(evidence: Evidence) -> str:
    """The evidence in a few words.

    Examples
    --------
    >>> shown(PairEvidence(distance=2e-17, error=1e-17, loss=2.0))
    'distance 2.0e-17, loss 2'
    """
    return _text(evidence)


@_text.register
def _(evidence: Missing) -> str:
    return evidence.why


@_text.register
def _(evidence: SlopeEvidence) -> str:
    low, high = evidence.interval
    text = (
        f"slope {evidence.slope:.2f} [{low:.2f}, {high:.2f}], n {evidence.n[0]:.0e} to"
        f" {evidence.n[1]:.0e}, {evidence.n_fits} fits"
    )
    if evidence.n_certified < evidence.n_fits:
        text += f", {evidence.n_certified} certified"
    if evidence.n_left_out:
        text += f", {evidence.n_left_out} left out"
    if evidence.n_failed:
        text += f", {evidence.n_failed} failed"
    return text


@_text.register
def _(evidence: QuantileEvidence) -> str:
    low, high = evidence.interval
    return f"slope {evidence.slope:.3f} [{low:.3f}, {high:.3f}]"


@_text.register
def _(evidence: ReplayEvidence) -> str:
    low, high = evidence.interval
    return f"slope {evidence.slope:.2f} [{low:.2f}, {high:.2f}]"


@_text.register
def _(evidence: PairEvidence) -> str:
    text = f"distance {evidence.distance:.1e}, loss {evidence.loss:.3g}"
    worst = f", the worst of {evidence.n_truths} truths" if evidence.n_truths > 1 else ""
    return text + worst


@_text.register
def _(evidence: SequenceEvidence) -> str:
    if not evidence.losses:
        return "no measure found"
    first, last = evidence.losses[0], evidence.losses[-1]
    span = f"loss {first:.1e} to {last:.1e}"
    if all(d <= rules.ZERO * x for x, d in zip(evidence.losses, evidence.distances, strict=True)):
        return f"distance 0 at {span}"
    fit = rules.sequence_exponent(evidence)
    return f"distance ~ loss^{fit.exponent:.2f}, residual {fit.residual:.2f}, {span}"


@_text.register
def _(evidence: DependenceEvidence) -> str:
    text = f"rank {evidence.rank} of {evidence.n_functions}, gap {evidence.gap:.0e}"
    if evidence.dependencies:
        named = "; ".join(evidence.dependencies[:_DEPENDENCIES])
        more = len(evidence.dependencies) - _DEPENDENCIES
        text += f": {named}" + (f"; {more} more" if more > 0 else "")
    return text


@_text.register
def _(evidence: IdentityEvidence) -> str:
    return f"relative residual {evidence.residual:.1e}"


@_text.register
def _(evidence: PrintedEvidence) -> str:
    if not evidence.against:
        return f"borne out by {evidence.n_numbers} of {evidence.n_numbers} comparisons"
    held = evidence.n_numbers - len(evidence.against)
    return f"{held} of {evidence.n_numbers} comparisons; against it: {'; '.join(evidence.against)}"


@_text.register
def _(evidence: ContrastEvidence) -> str:
    low, high = evidence.interval
    return f"difference {evidence.difference:.3f} [{low:.3f}, {high:.3f}], {evidence.n_runs} runs"


@_text.register
def _(evidence: InequalityEvidence) -> str:
    text = f"largest excess {evidence.excess:.1e} in {evidence.n_trials} trials"
    return f"{text}: {evidence.detail}" if evidence.detail else text


@_text.register
def _(evidence: OrbitEvidence) -> str:
    if evidence.identified:
        return f"no other parameters found, {evidence.n_reached} starts came back to the truth"
    more = len(evidence.orbits) - 1
    return f"not identified: {evidence.orbits[0]}" + (f"; {more} more" if more else "")


@_text.register
def _(evidence: OrderEvidence) -> str:
    if evidence.at_least == evidence.at_most:
        return f"rbar({evidence.m}) = {evidence.at_least}"
    return f"rbar({evidence.m}) from {evidence.at_least} to {evidence.at_most}"


def why_open(check: Check, evidence: Evidence, outcome: str) -> str:
    """Why an outcome is open; empty when it is not.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from experiments.claims.checks import Slope
    >>> check = Slope("microscope_mlmoe", "sigmoid, k = 2", "loss", Fraction(-1, 2))
    >>> few = SlopeEvidence(-0.5, (-0.9, -0.1), (1e10, 1e14), 10, 10, 0, 0)
    >>> why_open(check, few, "open")
    'too few fits: the slope is known to 0.40 only'
    """
    if outcome != rules.OPEN:
        return ""
    if isinstance(evidence, Missing):
        return evidence.why
    if isinstance(evidence, SlopeEvidence):
        return _slope_shortfall(evidence)
    if isinstance(evidence, ReplayEvidence) and isinstance(check, Replayed):
        if evidence.interval[0] <= check.published <= evidence.interval[1]:
            return f"too few fits: {_text(evidence)}"
        return f"not reproduced: the replay has {_text(evidence)}, and starts are not stated"
    if isinstance(evidence, ContrastEvidence):
        return "the other way round in these runs" if evidence.interval[1] < 0 else "no difference"
    if isinstance(evidence, SequenceEvidence):
        return f"no bounded and no vanishing ratio: {_text(evidence)}"
    return f"within the margins of the rule: {_text(evidence)}"


def _slope_shortfall(evidence: SlopeEvidence) -> str:
    low, high = evidence.interval
    if math.isnan(low):
        return "too few fits for an interval"
    if evidence.n_certified < rules.CERTIFIED * evidence.n_fits:
        return f"only {evidence.n_certified} of {evidence.n_fits} fits are certified"
    if high - low > 2.0 * rules.WIDE:
        return f"too few fits: the slope is known to {(high - low) / 2.0:.2f} only"
    if high >= 0.0:
        return "the slope may be 0"
    return "slower than predicted at these sizes, which may be pre-asymptotic"
