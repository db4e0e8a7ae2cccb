"""Warnings: one class per kind, so that each can be filtered by itself."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = [
    "AliasedWarning",
    "BoundWarning",
    "ConstantColumnWarning",
    "DisagreementWarning",
    "InterruptedWarning",
    "LimitWarning",
    "MoEWarning",
    "OptimumWarning",
    "OverSpecifiedWarning",
    "PluginWarning",
    "SeparationWarning",
    "UnitsWarning",
    "warn_caller",
]


class MoEWarning(UserWarning):
    """What a user should know about a fit that was made all the same."""


class ConstantColumnWarning(MoEWarning):
    """An input is the same for all samples: its coefficients are 0, its effect in intercepts."""


class AliasedWarning(MoEWarning):
    """An input is a linear function of others: no data tell their coefficients apart."""


class OptimumWarning(MoEWarning):
    """The best fit found may not be a maximum of the likelihood, or not the highest."""


class BoundWarning(OptimumWarning):
    """The maximum lies on a bound that the fit has set by itself."""


class DisagreementWarning(OptimumWarning):
    """Only one of the runs reached the best log-likelihood."""


class InterruptedWarning(MoEWarning):
    """The user has interrupted a call: its result is of what had ended."""


class LimitWarning(MoEWarning):
    """The maximum is at the end of a likelihood, where it is a simpler one."""


class OverSpecifiedWarning(MoEWarning):
    """The fit has an expert more than the data tell apart: Wald inference is not valid."""


class PluginWarning(MoEWarning):
    """An installed package offers a gate, an expert, a loss, ... that cannot be loaded."""


class SeparationWarning(OptimumWarning):
    """The likelihood rises to the end along parameters that separate the data: no maximum."""


class UnitsWarning(MoEWarning):
    """The family does not follow a change of units, and the data are far from unit scale."""


_PASSED_THROUGH = {__name__.split(".")[0], "sklearn", "joblib"}
"""Packages that call this one for the user: a warning is of the line that called them."""


def warn_caller(message: str, kind: type[MoEWarning]) -> None:
    """Warn of the user's line, however deep the call is by now."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame) in _PASSED_THROUGH:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).split(".")[0]
