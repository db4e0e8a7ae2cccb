"""Networks: a top-1 mixture of patch experts behind a linear router, and its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moestat.base.door import doors
from moestat.base.memory import check_room
from moestat.base.registry import Maker, Registry
from moestat.base.types import FloatArray, Seed
from moestat.base.validate import (
    as_generator,
    as_plain_array,
    check_kind,
    one_of,
    positive_int,
    real_in,
)
from moestat.networks.expert_count.activations import activation
from moestat.networks.expert_count.experts import EXPERTS

__all__ = ["INITIALISATIONS", "Network", "Weights"]


@doors
@dataclass
class Weights:
    """Weights of the experts and of the router, or the gradient in them.

    Parameters
    ----------
    experts : ndarray of shape (M, blocks, J, d)
        Weights w of the experts; blocks is P for ``mlp`` and 1 for ``cnn``.
    router : ndarray of shape (M, P, d), or (M, 1, d) for a shared gate
        Weights Theta of the router.
    """

    experts: NDArray[np.floating]
    router: NDArray[np.floating]

    def astype(self, dtype: DTypeLike) -> Weights:
        """A copy in another precision."""
        return Weights(self.experts.astype(dtype), self.router.astype(dtype))


def equal_weights(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """One standard normal vector per neuron, the same in every block: Duy et al. (n.d.), (2)."""
    n_experts, n_blocks, n_neurons, d = shape
    vectors = rng.standard_normal((n_experts, 1, n_neurons, d))
    return np.repeat(vectors, n_blocks, axis=1)


def independent_weights(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """One standard normal vector per neuron and block: Duy et al. (n.d.), Lemma 3."""
    return rng.standard_normal(shape)


INITIALISATIONS: Registry[Maker] = Registry("initialisation", "moestat.networks.initialisations")
INITIALISATIONS.register(Maker("equal", equal_weights))
INITIALISATIONS.register(Maker("independent", independent_weights))


GATES_OF_PATCHES = ("patch", "shared")
"""Whether every patch has weights of its own in the router."""


@doors
@dataclass(frozen=True)
class Network:
    """A mixture of M experts of J neurons, one of which answers.

    ``f_m(x) = sum_j sum_p sigma(<w_(m, j, p), x^(p)>)``; the router's scores are
    ``h = sum_p Theta_p' x^(p)``, its gates pi their softmax; the expert of the largest score
    answers, and the output is ``pi_m f_m``.  In training uniform noise on [0, 1) is added to the
    scores before they are compared, and only there.

    Parameters
    ----------
    expert : str
        Name in `moestat.networks.EXPERTS`: ``"mlp"`` or ``"cnn"``.
    n_experts : int
        Experts M >= 1.
    n_neurons : int
        Neurons J >= 1 of an expert.
    activation : str
        Name in `moestat.networks.ACTIVATIONS`.  expert-count does not define its own; its proofs
        force ``"cubic"``.
    initialisation : str
        Name in `moestat.networks.INITIALISATIONS`: ``"equal"`` for weights that are equal across
        patches at the start, or ``"independent"``.
    sigma_0 : float
        Scale of the initial weights, > 0.
    gate : str
        ``"patch"`` for a router with weights of its own for every patch, as in Duy et al.; or
        ``"shared"`` for one that all patches share, as in Chen et al. (2022).

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range.

    Notes
    -----
    Duy et al. (n.d.), New Architecture for MoE with MLP Experts, and (1) and (2).

    Examples
    --------
    >>> start = Network(n_experts=2, n_neurons=3).initial(n_patches=4, n_features=50, rng=0)
    >>> start.experts.shape, start.router.shape, bool((start.router == 0).all())
    ((2, 4, 3, 50), (2, 4, 50), True)
    """

    expert: str = "mlp"
    n_experts: int = 8
    n_neurons: int = 8
    activation: str = "cubic"
    initialisation: str = "equal"
    sigma_0: float = 0.05
    gate: str = "patch"

    def __post_init__(self) -> None:
        EXPERTS[self.expert]
        positive_int("n_experts", self.n_experts)
        positive_int("n_neurons", self.n_neurons)
        activation(self.activation)
        INITIALISATIONS[self.initialisation]
        real_in("sigma_0", self.sigma_0, 0.0, open_low=True)
        one_of("gate", self.gate, GATES_OF_PATCHES)

    def _router_shape(self, n_patches: int, n_features: int) -> tuple[int, int, int]:
        return self.n_experts, n_patches if self.gate == "patch" else 1, n_features

    def initial(self, n_patches: int, n_features: int, rng: Seed = None) -> Weights:
        """Random weights of the experts and a router of zeros.

        Parameters
        ----------
        n_patches, n_features : int
            P and d of the data.
        rng : Generator, int or None
            Source of randomness.

        Returns
        -------
        Weights
            The start of training, in float64.
        """
        positive_int("n_patches", n_patches)
        positive_int("n_features", n_features)
        blocks = EXPERTS[self.expert].n_blocks(n_patches)
        shape = (self.n_experts, blocks, self.n_neurons, n_features)
        check_room(16 * math.prod(shape), f"n_experts, n_neurons, n_features: weights {shape}")
        draw: Callable[..., FloatArray] = INITIALISATIONS[self.initialisation].make
        experts = self.sigma_0 * draw(shape, as_generator(rng))
        return Weights(experts, np.zeros(self._router_shape(n_patches, n_features)))

    def check(
        self, weights: Weights, n_patches: int, n_features: int, name: str = "weights"
    ) -> None:
        """Raise unless these are weights of this network for data of such patches.

        Compiled loops trust the sizes.

        Raises
        ------
        ValueError
            Names the part, its shape and the right one.
        """
        check_kind(name, weights, Weights, "Weights")
        blocks = EXPERTS[self.expert].n_blocks(n_patches)
        for part, shape in (
            ("experts", (self.n_experts, blocks, self.n_neurons, n_features)),
            ("router", self._router_shape(n_patches, n_features)),
        ):
            array = as_plain_array(f"{name}.{part}", getattr(weights, part))
            if array.shape != shape:
                raise ValueError(
                    f"{name}.{part} must have shape {shape} for {self!r}, got {array.shape}"
                )
            if array.dtype not in (np.float32, np.float64):
                raise ValueError(f"{name}.{part} must be of float32 or float64, got {array.dtype}")
        if weights.experts.dtype != weights.router.dtype:
            raise ValueError(
                f"{name}: experts and router must be of one precision, got"
                f" {weights.experts.dtype} and {weights.router.dtype}"
            )
