"""Frozen records that every layer shares: what a gate, an expert and a likelihood are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Channel", "Expert", "FloatArray", "Gate", "IntArray", "Likelihood"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Channel:
    """One predictor of an atom, linear in its parameters: ``eta = intercept + slope' x``.

    Gates, experts and likelihoods are scalar functions of a few channels; how a channel depends
    on x and on the parameters is written once, in the kernels.  A parameter that enters by
    itself is a channel without slope.

    Parameters
    ----------
    intercept : str
        Block of the coefficient of 1.
    slope : str or None
        Block of the d coefficients of x; None for a channel that does not see x.
    component : int or None
        Position of the coefficient in a vector-valued block; None for a block of its own.
    shared : bool
        True for one parameter that all atoms share, such as a temperature.
    """

    intercept: str
    slope: str | None = None
    component: int | None = None
    shared: bool = False

    def width(self, n_features: int) -> int:
        """Number of coefficients with `n_features` = d inputs."""
        return 1 if self.slope is None else 1 + n_features


@dataclass(frozen=True)
class Gate:
    """A gate: the log-score ``a(eta)`` of one atom and its first two derivatives.

    Parameters
    ----------
    name : str
        Name in the registry.
    channels : callable
        ``channels(n_features)``: the predictors it reads, shared ones last.
    block : callable
        ``block(eta, phi, m, order, a, da, d2a)`` on the first m samples of a block, with the
        channels eta (C, m) and the features phi = (1, x) (1 + d, m).
    mass : str
        Block whose exponential is the mass of an atom.
    translations : tuple of str
        Blocks to which a common vector may be added without changing the density.  The last
        atom's are pinned to 0 as the reference.
    bounds : mapping
        Block -> (lower, upper): the default box of the compact parameter space.
    source : str
        Paper and equation.
    scaling : tuple of str
        Blocks that a common positive factor may multiply without changing the density.  The last
        of them represents the scale; solvers hold it where they start.
    kink : tuple of (str, str) or None
        A block and its offset, when moving the block across a sample x turns the sign of its
        derivative: the log-score is then a function of ``||block - x|| + offset`` there.
    """

    name: str
    channels: Callable[[int], tuple[Channel, ...]]
    block: Callable[..., None]
    mass: str
    translations: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    source: str
    scaling: tuple[str, ...] = ()
    kink: tuple[str, str] | None = None


@dataclass(frozen=True)
class Expert:
    """How the predictors of the likelihood depend on x.

    Parameters
    ----------
    name : str
        Name in the registry.
    channel : Channel
        The channel of each predictor of the likelihood.
    bounds : mapping
        Block -> (lower, upper).
    source : str
        Paper and equation.
    """

    name: str
    channel: Channel
    bounds: Mapping[str, tuple[float, float]]
    source: str


@dataclass(frozen=True)
class Likelihood:
    """The log-density ``l(y | eta)`` of one expert and its first two derivatives.

    Parameters
    ----------
    name : str
        Name in the registry.
    n_predictors : callable
        ``n_predictors(n_classes)``.
    block : callable
        ``block(eta, y, m, order, value, d1, d2)`` on the first m samples of a block.
    encode : callable
        ``encode(y, n_classes)`` checks a response and returns what ``block`` reads.
    decode : callable
        The inverse of ``encode``.
    draw : callable
        ``draw(eta, rng)``: one response per column of the predictors (n_predictors, n).
    support : callable
        ``support(n_classes)``: the values of y to sum over.
    source : str
        Paper and equation.
    """

    name: str
    n_predictors: Callable[[int], int]
    block: Callable[..., None]
    encode: Callable[..., Any] = field(repr=False)
    decode: Callable[..., Any] = field(repr=False)
    draw: Callable[..., Any] = field(repr=False)
    support: Callable[[int], IntArray] = field(repr=False)
    source: str = ""
