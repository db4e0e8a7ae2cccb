"""Likelihoods of single experts that have no mean of their own: uniform noise and a point mass.

They go beside other likelihoods in a list for each expert, see `moestat.model.by_expert`; a mixture
of them alone has nothing to estimate.

Source: a uniform component for noise: Banfield and Raftery (1993), Sec. 5; Hennig and Coretto
(2008), Sec. 2; a constant: Lambert (1992), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from moestat.base.registry import Registry
from moestat.base.types import Encoded, FloatArray, Law
from moestat.base.validate import positive_int, real_in
from moestat.compiler.jit import device
from moestat.compiler.math import log
from moestat.model.members import Channel, Likelihood, Units
from moestat.model.responses import draws, likelihood_of_counts, real

__all__ = ["COMPONENTS", "IMPOSSIBLE"]

IMPOSSIBLE = -1e290
"""Log-density where there is none: finite, so that a share of 0 times it is 0."""


_SLACK = 1e-9
"""How far beyond an end, in lengths, a response counts as at it: ends change units, and back."""


@device
def uniform_block(eta, y, m, order, value, d1, d2):
    """Log-density ``-log(high - low)`` between the ends; predictors are (mu, low, high)."""
    low, high = eta[1, 0], eta[2, 0]
    level = -log(high - low)
    slack = _SLACK * (high - low)
    for b in range(m):
        inside = low - slack <= y[b] <= high + slack
        value[b] = level if inside else IMPOSSIBLE


@device
def point_block(eta, y, m, order, value, d1, d2):
    """Log-probability 0 of the point and none of others; predictors are (mu, at)."""
    for b in range(m):
        value[b] = 0.0 if abs(y[b] - eta[1, 0]) < 0.5 else IMPOSSIBLE


def _uniform_spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = eta[..., 1, :], eta[..., 2, :]
    return 0.5 * (low + high), (high - low) / np.sqrt(12.0)


def _uniform_law(eta: FloatArray) -> Law:
    from scipy.stats import uniform

    return uniform(eta[..., 1, :], eta[..., 2, :] - eta[..., 1, :])


def _uniform_reference(
    predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
) -> np.ndarray:
    low, high = (np.real(blocks[name])[:, None] for name in ("low", "high"))
    slack = _SLACK * (high - low)
    inside = (y >= low - slack) & (y <= high + slack)
    return np.where(inside, -np.log(high - low), IMPOSSIBLE) + 0.0 * predictors


def _uniform(low: float | None = None, high: float | None = None) -> Likelihood:
    """Uniform noise between two ends; without them, those of the data."""
    if (low is None) != (high is None):
        raise ValueError("uniform: give both ends, low and high, or neither")
    known = low is not None and high is not None
    ends = (float(low), float(high)) if low is not None and high is not None else (0.0, 1.0)
    for name, value in zip(("low", "high"), ends, strict=True):
        real_in(f"uniform: {name}", value, -1e100, 1e100)
    if not ends[0] < ends[1]:
        raise ValueError(f"uniform: low must be below high, got {ends[0]:g} and {ends[1]:g}")
    pair = {"low": ends[0], "high": ends[1]}
    return Likelihood(
        name="uniform",
        channels=tuple(Channel(name, response=True) for name in pair),
        block=uniform_block,
        reference=_uniform_reference,
        typical=lambda rng, n_experts: dict(pair),
        encode=real,
        draw=draws(_uniform_law),
        spread=_uniform_spread,
        law=_uniform_law,
        bounds={name: (end, end) for name, end in pair.items()},
        units=Units(level=("low", "high"), powers={"low": 1.0, "high": 1.0}),
        options=pair if known else {},
        configure=_uniform,
        reads_mean=False,
        source="Banfield and Raftery (1993), Sec. 5",
    )


@dataclass(frozen=True)
class Point:
    """The distribution of a count that is always the same."""

    at: FloatArray

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        return np.equal(y, self.at) * 1.0

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts up to y."""
        return np.greater_equal(y, self.at) * 1.0

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts above y."""
        return np.less(y, self.at) * 1.0

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """The count, whatever the probability."""
        return self.at + 0.0 * np.asarray(q)

    def mean(self) -> FloatArray:
        """The count."""
        return self.at

    def std(self) -> FloatArray:
        """0."""
        return 0.0 * self.at

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The count, as the least and the largest one."""
        return self.at, self.at

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """The count, so many times."""
        return np.broadcast_to(self.at, np.shape(self.at) if size is None else size)


def _point_law(eta: FloatArray) -> Point:
    return Point(np.asarray(eta[..., 1, :], dtype=np.float64))


def _point_spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    return eta[..., 1, :], 0.0 * eta[..., 1, :]


def _point_reference(
    predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
) -> np.ndarray:
    same = y == np.real(blocks["at"])[:, None]
    return np.where(same, 0.0, IMPOSSIBLE) + 0.0 * predictors


def _point(at: int = 0) -> Likelihood:
    """A count that is always the same."""
    known = positive_int("point: at", at, 0)
    return likelihood_of_counts(
        name="point",
        channels=(Channel("at"),),
        block=point_block,
        reference=_point_reference,
        typical=lambda rng, n_experts: {"at": float(known)},
        spread=_point_spread,
        law=_point_law,
        bounds={"at": (float(known), float(known))},
        options={"at": known} if known else {},
        configure=_point,
        reads_mean=False,
        source="Lambert (1992), Sec. 2",
    )


COMPONENTS: Registry[Likelihood] = Registry("likelihood", "moestat.components")
"""What a list of likelihoods by expert may hold besides members of the registry of likelihoods."""
COMPONENTS.register(_uniform())
COMPONENTS.register(_point())
