"""Training: full-batch steps with noisy routing, and measurements during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from moestat.base.door import door
from moestat.base.types import IntArray, Seed
from moestat.base.validate import as_generator, check_kind, draw_seed, one_of, positive_int, short
from moestat.networks.expert_count.data import PatchData
from moestat.networks.expert_count.network import Network, Weights
from moestat.networks.expert_count.optimisers import NormalisedGradientDescent, Optimiser, sizes
from moestat.networks.expert_count.passes import Passes

__all__ = ["PRECISIONS", "Trained", "train"]

PRECISIONS = {"float32": np.float32, "float64": np.float64}
"""Precisions of training, by name."""

_MOST_STEPS = 10_000_000
"""Steps of one run, at most: the losses of all of them are kept."""


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Parameters
    ----------
    network : Network
        The network.
    weights : Weights
        Its weights after the last step.
    losses : ndarray of shape (n_steps,)
        The perturbed training loss (4) before each step.
    unmoved : ndarray of shape (M,)
        Steps in which the expert's gradient was zero or below the smallest normal number.
    """

    network: Network
    weights: Weights = field(repr=False)
    losses: np.ndarray = field(repr=False)
    unmoved: IntArray = field(repr=False)


@door()
def train(
    network: Network,
    data: PatchData,
    n_steps: int,
    *,
    optimiser: Optimiser | None = None,
    start: Weights | None = None,
    rng: Seed = None,
    precision: str = "float32",
    look: Callable[[int, Weights], None] | None = None,
    look_every: int = 50,
) -> Trained:
    """Train a network from random weights: Algorithm 1 of expert-count, or another optimiser.

    Parameters
    ----------
    network : Network
        The network.
    data : PatchData
        The training sample.
    n_steps : int
        T >= 1.
    optimiser : Optimiser, optional
        The rule of a step; `NormalisedGradientDescent` with the paper's rates by default.
    start : Weights, optional
        Where training begins; by default random weights of the experts and a router of zeros.
    rng : Generator, int or None
        Source of the initial weights and of the seed of the routing noise.
    precision : str
        ``"float32"`` or ``"float64"``.
    look : callable, optional
        ``look(t, weights)`` before step t = 0, `look_every`, ... and after the last one; it
        must not change them.
    look_every : int
        Steps between two looks.

    Returns
    -------
    Trained
        The weights after step T, and how training went.

    Raises
    ------
    ValueError
        If an argument is out of range.
    ArithmeticError
        If the loss or a gradient turns non-finite; the message names the step.

    Notes
    -----
    Duy et al. (n.d.), Algorithm 1.  The noise of step t is a function of the seed, t, the number
    of the sample and the number of the expert.

    Examples
    --------
    >>> from moestat.networks import PatchLaw
    >>> data = PatchLaw(scale=10.0).sample(500, rng=0)
    >>> trained = train(Network(n_experts=4), data, 20, rng=1)
    >>> bool(trained.losses[-1] < trained.losses[0])
    True
    """
    check_kind("network", network, Network, "a Network")
    check_kind("data", data, PatchData, "PatchData")
    positive_int("n_steps", n_steps, maximum=_MOST_STEPS)
    positive_int("look_every", look_every)
    one_of("precision", precision, PRECISIONS)
    if optimiser is not None:
        check_kind("optimiser", optimiser, Optimiser, "an Optimiser")
    if look is not None and not callable(look):
        raise ValueError(f"look must be callable or None, got {short(look)}")
    if start is not None:
        network.check(start, data.law.n_patches, data.law.n_features, "start")
    rule = NormalisedGradientDescent() if optimiser is None else optimiser
    rng, dtype = as_generator(rng), PRECISIONS[precision]
    initial_weights = network.initial(data.law.n_patches, data.law.n_features, rng)
    weights = (initial_weights if start is None else start).astype(dtype)
    seed = draw_seed(rng)
    passes = Passes(network, data, dtype)
    memory = rule.start(weights)
    losses, unmoved = np.empty(n_steps), np.zeros(network.n_experts, np.int64)
    for t in range(n_steps):
        if look is not None and t % look_every == 0:
            look(t, weights)
        passes.route(weights.router, (seed, t))
        losses[t], gradient = passes.loss_and_gradient(weights)
        size = sizes(gradient.experts)
        if not (np.isfinite(losses[t]) and np.isfinite(size).all()):
            raise ArithmeticError(f"training gave infinite or NaN values at step {t}")
        unmoved += size < np.finfo(dtype).tiny
        rule.step(weights, gradient, memory)
    if look is not None:
        look(n_steps, weights)
    return Trained(network, weights, losses, unmoved)
