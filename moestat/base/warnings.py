"""Warnings: one class per kind, so that each can be filtered by itself."""

from __future__ import annotations

import inspect
import os
import sysconfig
import warnings
from pathlib import Path

__all__ = [
    "AliasedWarning",
    "BoundWarning",
    "ConstantColumnWarning",
    "DataWarning",
    "DependentRowsWarning",
    "DisagreementWarning",
    "EdgeWarning",
    "ExtrapolationWarning",
    "FewRowsWarning",
    "InterruptedWarning",
    "LimitWarning",
    "MisfitWarning",
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


class DataWarning(MoEWarning):
    """The data are not what the fit takes them for: its errors, or all of it, may mislead."""


class DependentRowsWarning(DataWarning):
    """Rows repeat each other, or are more alike than independent ones: errors are too small."""


class DisagreementWarning(OptimumWarning):
    """Only one of the runs reached the best log-likelihood."""


class EdgeWarning(OptimumWarning):
    """The chosen number of experts is the smallest or largest that was tried."""


class ExtrapolationWarning(MoEWarning):
    """A prediction lies outside of the data, and far outside of the responses."""


class FewRowsWarning(DataWarning):
    """Rows, or different inputs, are too few for an expert's parameters."""


class InterruptedWarning(MoEWarning):
    """The user has interrupted a call: its result is of what had ended."""


class LimitWarning(MoEWarning):
    """The maximum is at the end of a likelihood, where it is a simpler one."""


class MisfitWarning(DataWarning):
    """The responses are not what the likelihood describes: outliers, spikes, zeros, variance."""


class OverSpecifiedWarning(MoEWarning):
    """The fit has an expert more than the data tell apart: Wald inference is not valid."""


class PluginWarning(MoEWarning):
    """An installed package offers a gate, an expert, a loss, ... that cannot be loaded."""


class SeparationWarning(OptimumWarning):
    """The likelihood rises to the end along parameters that separate the data: no maximum."""


class UnitsWarning(MoEWarning):
    """The family does not follow a change of units, and the data are far from unit scale."""


_PATHS = sysconfig.get_paths()
_OWN = str(Path(__file__).parents[1]) + os.sep
_NOT_THE_USER = (_OWN, *(_PATHS[name] + os.sep for name in ("purelib", "platlib", "stdlib")))
"""Where this package and those that may call it for the user, as pandas or sklearn, are."""


def warn_caller(message: str, kind: type[MoEWarning]) -> None:
    """Warn of the user's line, however deep the call is by now: the first that is not installed."""
    frame, level, outside = inspect.currentframe(), 1, 0
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USER):
            break
        if not outside and not file.startswith(_OWN):
            outside = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level if frame is not None else outside or level)
