"""Fits to data: starts, fits, results, estimators.  Names are resolved on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "ClusterStarts": "starts",
    "GivenStarts": "starts",
    "MeasureStarts": "starts",
    "MoEClassifier": "estimators",
    "MoERegressor": "estimators",
    "MoEResults": "results",
    "RandomStarts": "starts",
    "SplitStarts": "starts",
    "TruthStarts": "starts",
    "best_approximations": "approximation",
    "fit": "fitting",
    "fit_many": "fitting",
    "load": "results",
}

__all__ = [
    "ClusterStarts",
    "GivenStarts",
    "MeasureStarts",
    "MoEClassifier",
    "MoERegressor",
    "MoEResults",
    "RandomStarts",
    "SplitStarts",
    "TruthStarts",
    "best_approximations",
    "fit",
    "fit_many",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
