"""Metrics larger in some runs of networks than in others."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.rules import NOT_REPRODUCED, OPEN, REFUTES, SUPPORTS

__all__ = ["Contrast", "ContrastEvidence", "TunedContrast", "judge_contrast"]


@dataclass(frozen=True)
class ContrastEvidence(Evidence):
    """The difference of a metric between two sets of runs of a sweep of networks.

    Parameters
    ----------
    difference : float
        Mean over replicates of the first less the second.
    interval : (float, float)
        Its 95% t interval, the runs paired by replicate.
    n_runs : int
        Replicates that have both.
    """

    difference: float
    interval: tuple[float, float]
    n_runs: int

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        low, high = self.interval
        return f"difference {self.difference:.3f} [{low:.3f}, {high:.3f}], {self.n_runs} runs"


def judge_contrast(evidence: ContrastEvidence) -> str:
    """A claim that a metric is larger in the first runs than in the second.

    ``supports`` if the interval of the difference lies above 0, ``refutes`` if it lies below; else
    ``open``.  What is refuted is that these runs reproduce the contrast, not the paper's figure,
    which is of settings of its own.

    Examples
    --------
    >>> judge_contrast(ContrastEvidence(0.02, (0.01, 0.03), 5))
    'supports'
    >>> judge_contrast(ContrastEvidence(-0.02, (-0.03, -0.01), 5))
    'refutes'
    """
    low, high = evidence.interval
    return SUPPORTS if low > 0.0 else REFUTES if high < 0.0 else OPEN


@dataclass(frozen=True)
class Contrast(Check):
    """A metric larger in some runs of networks than in others, `judge_contrast`.

    Parameters
    ----------
    experiment : str
        Shipped experiment.
    metric : str
        Name in `moestat.sweep.kinds.network.kind.METRICS`.
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

    @property
    def scope(self) -> str:
        """The other way round in these runs."""
        return NOT_REPRODUCED

    def _rule(self, evidence: ContrastEvidence) -> str:
        return judge_contrast(evidence)

    def _shortfall(self, evidence: ContrastEvidence) -> str:
        return "no difference"


@dataclass(frozen=True)
class TunedContrast(Check):
    """A metric larger under one method than under another, `judge_contrast`.

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

    @property
    def scope(self) -> str:
        """The other way round in these runs."""
        return NOT_REPRODUCED

    def _rule(self, evidence: ContrastEvidence) -> str:
        return judge_contrast(evidence)

    def _shortfall(self, evidence: ContrastEvidence) -> str:
        return "no difference"
