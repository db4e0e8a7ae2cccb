"""Checks: where a claim's evidence comes from, and the rule that reads it.

A check is plain data.  It names a sweep's curve, a case of the bound explorer, a witness, a
condition or a polynomial system; who has the evidence hands it to `judge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from experiments.claims import rules
from experiments.claims.equations import EQUATIONS
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
from experiments.claims.witnesses import PAIRS, SEQUENCES

__all__ = [
    "AsPrinted",
    "Bound",
    "Check",
    "Condition",
    "Contrast",
    "Exponent",
    "Floored",
    "Identity",
    "Inequality",
    "Orbit",
    "Order",
    "Printed",
    "Replayed",
    "Sequence",
    "Slope",
    "TunedContrast",
    "Witness",
]

Quantity = str | tuple[int, str]
"""As `moestat.sweep.kinds.fit.quantities.quantity` takes it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What all checks share.

    Parameters
    ----------
    required : bool
        Whether the claim holds only if this check supports it.  One that is not required is an
        attack: it may refute, and says nothing when it does not.
    note : str
        What a reader should know.
    """

    required: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """The check in a few words."""
        raise NotImplementedError

    @property
    def about(self) -> str:
        """What a reader should know, beside the note; empty for most."""
        return ""

    @property
    def strength(self) -> str:
        """What the check's support amounts to."""
        return rules.CONSISTENT

    @property
    def scope(self) -> str:
        """Where its refutation bites; one truth unless more is known."""
        return rules.SPECIAL

    def judge(self, evidence: Evidence) -> str:
        """The outcome, by the rule of this kind of check; ``open`` without evidence."""
        return rules.OPEN if isinstance(evidence, Missing) else self._rule(evidence)

    def _rule(self, evidence: Any) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Slope(Check):
    """The slope of an error against n in a sweep, `experiments.claims.rules.judge_slope`.

    Parameters
    ----------
    experiment, curve : str
        Shipped experiment and one of its curves.
    quantity : str or (int, str)
        The error.
    exponent : Fraction
        Predicted exponent of n.
    """

    experiment: str
    curve: str
    quantity: Quantity
    exponent: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"{self.experiment}, {self.curve}: {_named(self.quantity)}"

    def _rule(self, evidence: SlopeEvidence) -> str:
        return rules.judge_slope(evidence, self.exponent)


def _named(quantity: Quantity) -> str:
    return quantity if isinstance(quantity, str) else f"{quantity[1]} in cells of {quantity[0]}"


@dataclass(frozen=True)
class Floored(Check):
    """A quantile of errors in a microscope with floored masses, `rules.judge_quantile`.

    Parameters
    ----------
    curve : str
        A curve of a microscope with floored masses.
    size : int
        Fitted atoms in the cell.
    block : str
        The block whose error it is.
    exponent : Fraction
        Predicted exponent of n.
    """

    curve: str
    size: int
    block: str
    exponent: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"floored masses, {self.curve}: 90% quantile of {self.block} in cells of {self.size}"

    def _rule(self, evidence: QuantileEvidence) -> str:
        return rules.judge_quantile(evidence, self.exponent)


@dataclass(frozen=True)
class Replayed(Check):
    """A slope in a paper's figure, beside that of a replay, `rules.judge_replay`.

    Parameters
    ----------
    experiment, curve : str
        Shipped experiment whose report has the replay, and its curve.
    published : Fraction
        The slope in the figure.
    """

    experiment: str
    curve: str
    published: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"replay, {self.experiment}: {self.curve}"

    def _rule(self, evidence: ReplayEvidence) -> str:
        return rules.judge_replay(evidence, self.published)


@dataclass(frozen=True)
class Bound(Check):
    """The bound ``d >~ D`` at one truth, searched by the explorer, `rules.judge_infimum`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`.
    shows : str
        What a ratio that goes to 0 says about the claim.
    """

    case: str
    shows: str = rules.REFUTES

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"explorer, {self.case}"

    def _rule(self, evidence: SequenceEvidence) -> str:
        if self.shows == rules.SUPPORTS:
            return rules.judge_sequence(evidence, self.shows)
        return rules.judge_infimum(evidence)


@dataclass(frozen=True)
class Exponent(Check):
    """The power of the deviations by which the least distance falls, `rules.judge_exponent`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`.
    power : int
        The power expected: an error of order ``n^(-1 / (2 power))``.
    """

    case: str
    power: int

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"explorer, {self.case}"

    def _rule(self, evidence: SequenceEvidence) -> str:
        return rules.judge_exponent(evidence, self.power)


@dataclass(frozen=True)
class Witness(Check):
    """Two explicit measures with one density, `rules.judge_pair`.

    Parameters
    ----------
    pair : str
        A name in `experiments.claims.witnesses.PAIRS`.
    """

    pair: str

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return rules.PROVED

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"pair, {self.pair}"

    @property
    def about(self) -> str:
        """How the measures meet the assumptions, and why their densities agree."""
        return PAIRS[self.pair].allows

    def _rule(self, evidence: PairEvidence) -> str:
        return rules.judge_pair(evidence, rules.SUPPORTS)


@dataclass(frozen=True)
class Sequence(Check):
    """Explicit measures near a truth, `rules.judge_sequence`, or with a power `rules.judge_power`.

    Parameters
    ----------
    sequence : str
        A name in `experiments.claims.witnesses.SEQUENCES`.
    power : int or None
        The power of the loss by which the distance is said to fall; any from 5/4 on without one.
    """

    sequence: str
    power: int | None = None

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"sequence, {self.sequence}"

    @property
    def about(self) -> str:
        """What moves, and how the assumptions are met."""
        return SEQUENCES[self.sequence].allows

    def _rule(self, evidence: SequenceEvidence) -> str:
        if self.power is not None:
            return rules.judge_power(evidence, self.power)
        return rules.judge_sequence(evidence, rules.SUPPORTS)


@dataclass(frozen=True)
class Condition(Check):
    """A condition on an expert, checked as printed, `rules.judge_dependence`.

    Parameters
    ----------
    condition : str
        A name in `moestat.theory.identifiability.CONDITIONS`.
    expert : str or mapping
        The expert.
    claimed : bool
        Whether the claim is that the expert satisfies the condition.
    """

    condition: str
    expert: str | Mapping[str, Any]
    claimed: bool = True

    @property
    def strength(self) -> str:
        """A dependence that is found is exact; independence is seen at random parameters."""
        return rules.CONSISTENT if self.claimed else rules.PROVED

    @property
    def scope(self) -> str:
        """Parameters are drawn at random, so what is found there is found everywhere."""
        return rules.EVERYWHERE

    @property
    def name(self) -> str:
        """The check in a few words."""
        expert = self.expert if isinstance(self.expert, str) else _told(self.expert)
        return f"condition {self.condition}, {expert}"

    def _rule(self, evidence: DependenceEvidence) -> str:
        return rules.judge_dependence(evidence, self.claimed)


def _told(table: Mapping[str, Any]) -> str:
    options = ", ".join(f"{key} {value}" for key, value in table.items() if key != "name")
    return f"{table['name']} ({options})"


@dataclass(frozen=True)
class Identity(Check):
    """An equation between derivatives, evaluated as printed, `rules.judge_identity`.

    Parameters
    ----------
    equation : str
        A name in `experiments.claims.equations.EQUATIONS`.
    claimed : bool
        Whether the claim is that it holds.
    """

    equation: str
    claimed: bool = True

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return rules.PROVED

    @property
    def scope(self) -> str:
        """Parameters are drawn at random, so what is found there is found everywhere."""
        return rules.EVERYWHERE

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"equation, {self.equation}"

    @property
    def about(self) -> str:
        """The equation."""
        return EQUATIONS[self.equation].text

    def _rule(self, evidence: IdentityEvidence) -> str:
        return rules.judge_identity(evidence, self.claimed)


@dataclass(frozen=True)
class Inequality(Check):
    """An inequality of a paper, `experiments.claims.rules.judge_inequality`.

    Parameters
    ----------
    trial : str
        A name in `experiments.expert_count.trials.TRIALS`; of another paper one in
        `experiments.claims.lipschitz.TRIALS`, which has the paper in front.
    paper : str
        Short name of the paper.
    failing : str
        What it amounts to if it fails; the trials are at random instances, or at all that the
        paper names.
    """

    trial: str
    paper: str = "expert-count"
    failing: str = rules.EVERYWHERE

    @property
    def scope(self) -> str:
        """What it amounts to if it fails."""
        return self.failing

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"inequality, {self.paper} {self.trial}"

    def _rule(self, evidence: InequalityEvidence) -> str:
        return rules.judge_inequality(evidence)


@dataclass(frozen=True)
class Printed(Check):
    """A sentence beside the numbers that its paper prints, `rules.judge_printed`.

    Parameters
    ----------
    sentence : str
        A name in `experiments.claims.printed.PRINTED`.
    failing : str
        What it amounts to if the numbers are against it.
    """

    sentence: str
    failing: str = rules.CONTRADICTED

    @property
    def strength(self) -> str:
        """Arithmetic."""
        return rules.PROVED

    @property
    def scope(self) -> str:
        """What it amounts to if the numbers are against it."""
        return self.failing

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"printed numbers, {self.sentence}"

    def _rule(self, evidence: PrintedEvidence) -> str:
        return rules.judge_printed(evidence)


@dataclass(frozen=True)
class Contrast(Check):
    """A metric larger in some runs of networks than in others, `rules.judge_contrast`.

    Parameters
    ----------
    experiment : str
        Shipped experiment.
    metric : str
        Name in `moestat.sweep.kinds.network.analysis.METRICS`.
    larger, smaller : (str, number)
        Curve and place on the x-axis of both.
    """

    experiment: str
    metric: str
    larger: tuple[str, float]
    smaller: tuple[str, float]

    @property
    def name(self) -> str:
        """The check in a few words."""
        first, second = (f"{curve} at {x:g}" for curve, x in (self.larger, self.smaller))
        return f"{self.experiment}: {self.metric} of {first} above {second}"

    def _rule(self, evidence: ContrastEvidence) -> str:
        return rules.judge_contrast(evidence)


@dataclass(frozen=True)
class TunedContrast(Check):
    """A metric larger under one method than under another, `rules.judge_contrast`.

    Each method is taken at the point of the shared grid with its least mean validation loss.

    Parameters
    ----------
    experiment : str
        Shipped experiment of kind "training".
    metric : str
        Name in `moestat.sweep.kinds.training.analysis.METRICS`.
    larger, smaller : str
        The two curves.
    """

    experiment: str
    metric: str
    larger: str
    smaller: str

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"{self.experiment}: {self.metric} of {self.larger} above {self.smaller}, tuned"

    def _rule(self, evidence: ContrastEvidence) -> str:
        return rules.judge_contrast(evidence)


@dataclass(frozen=True)
class AsPrinted(Check):
    """The density estimate over the class as printed, `rules.judge_slope`.

    See `experiments.compete.class_as_printed`.
    """

    @property
    def name(self) -> str:
        """The check in a few words."""
        return "class as printed, best of all N' <= 3"

    def _rule(self, evidence: SlopeEvidence) -> str:
        return rules.judge_slope(evidence, Fraction(-1, 2))


@dataclass(frozen=True)
class Orbit(Check):
    """A search for other parameters with the law of a truth, `rules.judge_orbit`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`, whose truth it is.
    over : bool
        Whether parameters of as many atoms as the case fits are searched, or as the truth has.
    """

    case: str
    over: bool = False

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"orbits, truth of {self.case}{', over-specified' if self.over else ''}"

    def _rule(self, evidence: OrbitEvidence) -> str:
        return rules.judge_orbit(evidence)


@dataclass(frozen=True)
class Order(Check):
    """The order rbar(m) of a polynomial system, `rules.judge_order`.

    Parameters
    ----------
    m : int
        Atoms in the cell.
    claimed : int
        The order, or a lower bound of it.
    at_least : bool
        Whether it is a lower bound.
    """

    m: int
    claimed: int
    at_least: bool = False

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return rules.PROVED

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"polynomial system, rbar({self.m})"

    def _rule(self, evidence: OrderEvidence) -> str:
        return rules.judge_order(evidence, self.claimed, self.at_least)
