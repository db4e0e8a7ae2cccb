"""Networks: mixtures of patch experts behind a top-1 router, trained by gradient descent.

The system of Duy et al. (n.d.): data in clusters (`PatchLaw`), experts with or without weights
shared across patches (`EXPERTS`), a linear router with uniform noise, and full-batch training
(`train`) with one of several rules (`OPTIMISERS`).
"""

from __future__ import annotations

from moestat.networks.activations import ACTIVATIONS
from moestat.networks.data import PatchData, PatchLaw
from moestat.networks.experts import EXPERTS
from moestat.networks.metrics import Evaluation, dispatch_entropy, evaluate, expert_errors
from moestat.networks.network import INITIALISATIONS, Network, Weights
from moestat.networks.optimisers import (
    OPTIMISERS,
    Adam,
    GradientDescent,
    NormalisedGradientDescent,
)
from moestat.networks.rows.noise import uniform_noise
from moestat.networks.training import Trained, train

__all__ = [
    "ACTIVATIONS",
    "EXPERTS",
    "INITIALISATIONS",
    "OPTIMISERS",
    "Adam",
    "Evaluation",
    "GradientDescent",
    "Network",
    "NormalisedGradientDescent",
    "PatchData",
    "PatchLaw",
    "Trained",
    "Weights",
    "dispatch_entropy",
    "evaluate",
    "expert_errors",
    "train",
    "uniform_noise",
]
