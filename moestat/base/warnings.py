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
    "DroppedRowsWarning",
    "EdgeWarning",
    "ExtrapolationWarning",
    "FewRowsWarning",
    "IdentificationWarning",
    "InterruptedWarning",
    "LimitWarning",
    "MisfitWarning",
    "MoEWarning",
    "OptimumWarning",
    "OverSpecifiedWarning",
    "PluginWarning",
    "SeparationWarning",
    "UncertifiedWarning",
    "UnitsWarning",
    "warn_caller",
    "warn_of_old_name",
]


class MoEWarning(UserWarning):
    """A fit was made, but the user should know something about it."""


class ConstantColumnWarning(MoEWarning):
    """An input is constant: its coefficients are 0, and intercepts include its effect."""


class AliasedWarning(MoEWarning):
    """Inputs are linearly dependent: the data do not determine their coefficients separately."""


class OptimumWarning(MoEWarning):
    """The best fit found may not be a maximum of the likelihood, or not the highest."""


class BoundWarning(OptimumWarning):
    """The maximum lies on a default bound of the box."""


class DataWarning(MoEWarning):
    """The data do not meet the assumptions of the fit: standard errors, or more, may be wrong."""


class DependentRowsWarning(DataWarning):
    """Rows repeat or resemble each other, so that standard errors are too small."""


class DisagreementWarning(OptimumWarning):
    """A higher maximum is probable, or only one of the starts reached the best likelihood."""


class DroppedRowsWarning(MoEWarning):
    """Fits that are compared leave out rows that some of them could have used."""


class EdgeWarning(OptimumWarning):
    """The chosen number of experts is the smallest or largest that was tried."""


class ExtrapolationWarning(MoEWarning):
    """A prediction is for inputs outside the data, and far outside the range of the responses."""


class FewRowsWarning(DataWarning):
    """There are too few rows, or too few distinct inputs, for the parameters of an expert."""


class IdentificationWarning(DataWarning):
    """The data do not determine some coefficients: others fit these rows as well."""


class InterruptedWarning(MoEWarning):
    """The user interrupted a call, or its time was over: the result is partial."""


class LimitWarning(MoEWarning):
    """A parameter is at the end of its range, where the distribution is a simpler one."""


class MisfitWarning(DataWarning):
    """The likelihood does not describe the responses: outliers, spikes, zeros or variance."""


class OverSpecifiedWarning(MoEWarning):
    """The data do not distinguish all experts: Wald inference is not valid."""


class PluginWarning(MoEWarning):
    """An installed package provides a gate, an expert or a loss that cannot be loaded."""


class SeparationWarning(OptimumWarning):
    """The likelihood has no finite maximum, because an input separates the data."""


class UncertifiedWarning(OptimumWarning):
    """The fit is not certified as a local maximum, for no reason that another warning gives."""


class UnitsWarning(MoEWarning):
    """The family depends on units, and the data are far from unit scale."""


_PATHS = sysconfig.get_paths()
_OWN = str(Path(__file__).parents[1]) + os.sep
_NOT_THE_USER = (_OWN, *(_PATHS[name] + os.sep for name in ("purelib", "platlib", "stdlib")))
"""Directories of this package and of those that may call it for the user, such as pandas."""


def warn_caller(message: str, kind: type[Warning]) -> None:
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


def warn_of_old_name(old: str, new: str) -> None:
    """Warn that a name will go with the next release."""
    warn_caller(
        f"{old} is the old name of {new}, and will be removed in the next release", FutureWarning
    )
