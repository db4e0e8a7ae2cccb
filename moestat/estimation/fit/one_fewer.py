"""What a fit knows about the best fit with one expert fewer near it."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.model.numbering import ExpertNames

__all__ = ["Simpler"]


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
