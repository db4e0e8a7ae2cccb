"""Warnings: one class per kind, so that each can be filtered by itself."""

from __future__ import annotations

__all__ = [
    "BoundWarning",
    "ConstantColumnWarning",
    "DisagreementWarning",
    "MoEWarning",
    "OptimumWarning",
    "OverSpecifiedWarning",
    "SeparationWarning",
    "UnitsWarning",
]


class MoEWarning(UserWarning):
    """What a user should know about a fit that was made all the same."""


class ConstantColumnWarning(MoEWarning):
    """An input is the same for all samples: its coefficients are 0, its effect in intercepts."""


class OptimumWarning(MoEWarning):
    """The best fit found may not be a maximum of the likelihood, or not the highest."""


class BoundWarning(OptimumWarning):
    """The maximum lies on a bound that the fit has set by itself."""


class DisagreementWarning(OptimumWarning):
    """Only one of the runs reached the best log-likelihood."""


class OverSpecifiedWarning(MoEWarning):
    """The fit has an expert more than the data tell apart: Wald inference is not valid."""


class SeparationWarning(OptimumWarning):
    """The likelihood rises to the end along parameters that separate the data: no maximum."""


class UnitsWarning(MoEWarning):
    """The family does not follow a change of units, and the data are far from unit scale."""
