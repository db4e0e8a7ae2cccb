"""moestat: how fast do mixture-of-experts estimators converge?

Public names are resolved on first use, so that ``import moestat`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from moestat.designs import Uniform
    from moestat.families import Family, family
    from moestat.fitting import fit, fit_many
    from moestat.generate import sample
    from moestat.mixing import MixingMeasure

_HOMES = {
    "Family": "moestat.families",
    "MixingMeasure": "moestat.mixing",
    "Uniform": "moestat.designs",
    "family": "moestat.families",
    "fit": "moestat.fitting",
    "fit_many": "moestat.fitting",
    "sample": "moestat.generate",
}

__all__ = ["Family", "MixingMeasure", "Uniform", "family", "fit", "fit_many", "sample"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moestat' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
