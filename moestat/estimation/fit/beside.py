"""What a fit knows about others: the ends of its search, and the best fit with one expert fewer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.rules import ALARM, SAME_HEIGHT
from moestat.model.numbering import ExpertNames

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ends", "Simpler"]


@dataclass(frozen=True)
class Ends:
    """Where a search ended, the end that the fit returns first."""

    theta: FloatArray = field(repr=False)
    """Parameters in the user's units; shape (m, P)."""
    log_likelihood: FloatArray
    """Shape (m,)."""
    log_posterior: FloatArray
    """Log-likelihood plus the log density of the prior, up to a constant; shape (m,)."""
    finite: np.ndarray
    """Whether the maximum is at finite parameters; shape (m,)."""
    rows: FloatArray
    """Fewest rows of an expert, sums of posterior probabilities; shape (m,)."""
    per_parameter: FloatArray
    """These rows for each parameter of an expert; shape (m,)."""
    starts: IntArray
    """Number of starts that reached the mode from which the end was climbed; shape (m,)."""
    collapsed: int = 0
    """Number of higher modes that led to an expert that has collapsed, and are no ends."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about modes and ends that are higher than those of the fit."""
        return tuple(filter(None, (self._collapsed, self._highest)))

    @property
    def _collapsed(self) -> str:
        if not self.collapsed:
            return ""
        modes = "a higher posterior mode" if self.collapsed == 1 else "higher posterior modes"
        return (
            f"the search also saw {modes} under the weak prior, from which the climb of the"
            " likelihood led to an expert that describes a few rows exactly, where the likelihood"
            ' has no bound: the fit is from the highest of the other modes. prior="weak" returns'
            " the highest mode itself"
        )

    @property
    def _highest(self) -> str:
        at = int(np.argmax(self.log_likelihood))
        lead = float(self.log_likelihood[at] - self.log_likelihood[0])
        if lead <= SAME_HEIGHT:
            return ""
        what = ["its posterior mode under the weak prior is lower"]
        if not self.finite[at]:
            what.append("some of its coefficients diverge")
        if self.per_parameter[at] < ALARM.enough:
            what.append(f"one of its experts describes {self.rows[at]:.3g} rows")
        return (
            f"the search also saw an end whose log-likelihood is higher by {lead:.3g}:"
            f" {', and '.join(what)}. result.at_end({at}) returns it, and result.ends lists all"
        )

    def frame(self) -> pd.DataFrame:
        """A table with a row for each end."""
        import pandas as pd

        columns = {
            "log_likelihood": self.log_likelihood,
            "log_posterior": self.log_posterior,
            "finite": self.finite,
            "rows_per_parameter": self.per_parameter,
            "starts": self.starts,
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(self.starts.size, name="end"))


@dataclass(frozen=True)
class Simpler:
    """A fit with one expert fewer.

    Parameters
    ----------
    log_likelihood : float
        Its log-likelihood.
    gain : float
        By how much Schwarz's criterion falls, or rises if negative.
    experts : tuple of int
        The two experts that became one, or the one that was left out.
    """

    log_likelihood: float
    gain: float
    experts: tuple[int, ...]

    def __str__(self) -> str:
        if self.gain <= 0.0:
            return (
                f"the data distinguish the experts: BIC is higher by {-self.gain:.1f} with one"
                " expert fewer"
            )
        experts = ExpertNames(max(self.experts) + 1).called(*self.experts)
        fewer = f"without {experts}"
        if len(self.experts) > 1:
            fewer = f"with one expert in place of {experts}"
        return (
            f"BIC is lower by {self.gain:.1f} {fewer}. If the true number of experts is"
            " smaller, the information matrix is singular at the truth and estimates are not"
            " normally distributed: Wald standard errors, tests and intervals are then not valid."
            " Use moestat.select or moestat.bootstrap_lrt to choose the number of experts"
        )
