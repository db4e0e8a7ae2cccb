"""moestat: how fast do mixture-of-experts estimators converge?

Public names are resolved on first use, so that ``import moestat`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from moestat.comparisons import compare_rates
    from moestat.compression import compress
    from moestat.designs import Lattice, Uniform
    from moestat.distances import hellinger, regression_error, total_variation
    from moestat.estimators import MoEClassifier, MoERegressor
    from moestat.families import Family, family
    from moestat.figures import plot_rates
    from moestat.fitting import fit, fit_many
    from moestat.generate import sample, sample_weighted
    from moestat.information import expected_information, information_spectrum
    from moestat.losses import voronoi_loss, voronoi_terms
    from moestat.mixing import MixingMeasure
    from moestat.rates import fit_rate

_HOMES = {
    "Family": "moestat.families",
    "Lattice": "moestat.designs",
    "MixingMeasure": "moestat.mixing",
    "MoEClassifier": "moestat.estimators",
    "MoERegressor": "moestat.estimators",
    "Uniform": "moestat.designs",
    "compare_rates": "moestat.comparisons",
    "compress": "moestat.compression",
    "family": "moestat.families",
    "fit": "moestat.fitting",
    "fit_many": "moestat.fitting",
    "expected_information": "moestat.information",
    "fit_rate": "moestat.rates",
    "hellinger": "moestat.distances",
    "information_spectrum": "moestat.information",
    "plot_rates": "moestat.figures",
    "regression_error": "moestat.distances",
    "sample": "moestat.generate",
    "sample_weighted": "moestat.generate",
    "total_variation": "moestat.distances",
    "voronoi_loss": "moestat.losses",
    "voronoi_terms": "moestat.losses",
}

__all__ = [
    "Family",
    "Lattice",
    "MixingMeasure",
    "MoEClassifier",
    "MoERegressor",
    "Uniform",
    "compare_rates",
    "compress",
    "expected_information",
    "family",
    "fit",
    "fit_many",
    "fit_rate",
    "hellinger",
    "information_spectrum",
    "plot_rates",
    "regression_error",
    "sample",
    "sample_weighted",
    "total_variation",
    "voronoi_loss",
    "voronoi_terms",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moestat' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
