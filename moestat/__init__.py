"""moestat: how fast do mixture-of-experts estimators converge?

Public names are resolved on first use, so that ``import moestat`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from moestat.estimation.block_fits import fit_blocks
    from moestat.estimation.blocks import Blocks
    from moestat.estimation.comparison import compare
    from moestat.estimation.estimators import MoEClassifier, MoERegressor
    from moestat.estimation.fitting import fit, fit_many
    from moestat.estimation.formula import fit_formula
    from moestat.estimation.inference.bootstrap import bootstrap
    from moestat.estimation.inference.dendrogram import dendrogram
    from moestat.estimation.inference.em_test import em_test
    from moestat.estimation.inference.nested import lr_test, score_test
    from moestat.estimation.inference.order import bootstrap_lrt
    from moestat.estimation.inference.profile import profile
    from moestat.estimation.inference.restricted import RestrictedFit, fit_constrained
    from moestat.estimation.inference.selection import select
    from moestat.estimation.likelihood import (
        gate_probabilities,
        hessian,
        log_likelihood,
        responsibilities,
        score,
    )
    from moestat.estimation.priors import Prior
    from moestat.estimation.results import load
    from moestat.metrics.distances import hellinger, regression_error, total_variation
    from moestat.metrics.information import expected_information, information_spectrum
    from moestat.metrics.losses import voronoi_loss, voronoi_terms
    from moestat.model.compression import compress
    from moestat.model.designs import Lattice, Uniform
    from moestat.model.family import Family, family
    from moestat.model.generate import sample, sample_weighted
    from moestat.model.measure import MixingMeasure
    from moestat.rates.comparisons import compare_rates
    from moestat.rates.plots import plot_rates
    from moestat.rates.rate import fit_rate

# Rooms that are reached as attributes, by a shorter name than that of their place.
_ROOMS = {
    "attention": "moestat.model.attention",
    "datasets": "moestat.datasets",
    "designs": "moestat.model.designs",
    "experts": "moestat.model.experts",
    "gates": "moestat.model.gates",
    "likelihoods": "moestat.model.likelihoods",
    "losses": "moestat.metrics.losses",
    "solvers": "moestat.solvers",
    "starts": "moestat.estimation.starts",
}

_HOMES = {
    "Blocks": "moestat.estimation.blocks",
    "fit_blocks": "moestat.estimation.block_fits",
    "bootstrap": "moestat.estimation.inference.bootstrap",
    "bootstrap_lrt": "moestat.estimation.inference.order",
    "em_test": "moestat.estimation.inference.em_test",
    "lr_test": "moestat.estimation.inference.nested",
    "profile": "moestat.estimation.inference.profile",
    "RestrictedFit": "moestat.estimation.inference.restricted",
    "fit_constrained": "moestat.estimation.inference.restricted",
    "score_test": "moestat.estimation.inference.nested",
    "select": "moestat.estimation.inference.selection",
    "dendrogram": "moestat.estimation.inference.dendrogram",
    "Family": "moestat.model.family",
    "Lattice": "moestat.model.designs",
    "MixingMeasure": "moestat.model.measure",
    "MoEClassifier": "moestat.estimation.estimators",
    "MoERegressor": "moestat.estimation.estimators",
    "Prior": "moestat.estimation.priors",
    "Uniform": "moestat.model.designs",
    "compare": "moestat.estimation.comparison",
    "compare_rates": "moestat.rates.comparisons",
    "compress": "moestat.model.compression",
    "family": "moestat.model.family",
    "expected_information": "moestat.metrics.information",
    "fit": "moestat.estimation.fitting",
    "fit_formula": "moestat.estimation.formula",
    "fit_many": "moestat.estimation.fitting",
    "fit_rate": "moestat.rates.rate",
    "gate_probabilities": "moestat.estimation.likelihood",
    "hellinger": "moestat.metrics.distances",
    "hessian": "moestat.estimation.likelihood",
    "load": "moestat.estimation.results",
    "log_likelihood": "moestat.estimation.likelihood",
    "information_spectrum": "moestat.metrics.information",
    "plot_rates": "moestat.rates.plots",
    "regression_error": "moestat.metrics.distances",
    "responsibilities": "moestat.estimation.likelihood",
    "sample": "moestat.model.generate",
    "sample_weighted": "moestat.model.generate",
    "score": "moestat.estimation.likelihood",
    "total_variation": "moestat.metrics.distances",
    "voronoi_loss": "moestat.metrics.losses",
    "voronoi_terms": "moestat.metrics.losses",
}

__all__ = [
    "Blocks",
    "Family",
    "Lattice",
    "MixingMeasure",
    "MoEClassifier",
    "MoERegressor",
    "Prior",
    "RestrictedFit",
    "Uniform",
    "bootstrap",
    "bootstrap_lrt",
    "compare",
    "compare_rates",
    "compress",
    "dendrogram",
    "em_test",
    "expected_information",
    "family",
    "fit",
    "fit_blocks",
    "fit_constrained",
    "fit_formula",
    "fit_many",
    "fit_rate",
    "gate_probabilities",
    "hellinger",
    "hessian",
    "information_spectrum",
    "load",
    "log_likelihood",
    "lr_test",
    "plot_rates",
    "profile",
    "regression_error",
    "responsibilities",
    "sample",
    "sample_weighted",
    "score",
    "score_test",
    "select",
    "total_variation",
    "voronoi_loss",
    "voronoi_terms",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'moestat' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_HOMES])
