"""The problems of the benchmarks, drawn as the published comparisons draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import moestat
from moestat.model.family import Family

__all__ = ["Example", "gaussian_example", "sigmoid_example", "two_lines"]


@dataclass(frozen=True)
class Example:
    """A family, parameters, and data as the compiled loops read them."""

    name: str
    family: Family
    theta: np.ndarray
    X: np.ndarray
    y: Any

    @property
    def encoded(self) -> Any:
        """Responses as the loops read them."""
        return self.family.likelihood.encode(self.y, self.family.n_classes)


def two_lines(n: int, seed: int = 20240001) -> tuple[np.ndarray, np.ndarray]:
    """Two crossing regressions with a softmax gate, the design of CRPE-SGaME's model 1."""
    rng = np.random.default_rng(seed)
    x, u, noise = rng.random(n), rng.random(n), rng.standard_normal(n)
    first = u < 1.0 / (1.0 + np.exp(8.0 - 25.0 * x))
    return x, np.where(first, 15.0 - 20.0 * x + 0.3 * noise, -5.0 + 20.0 * x + 0.4 * noise)


def gaussian_example(n: int) -> Example:
    """Gaussian softmax, k = 3, one too many; parameters near the truth with one atom split."""
    family = moestat.family("gaussian", gate="softmax", n_experts=3)
    theta = family.pack(
        {
            "beta0": [-8.2, -7.8, 0.0],
            "beta1": [24.5, 25.5, 0.0],
            "b": [15.2, 14.8, -5.1],
            "a": [-20.2, -19.8, 20.1],
            "nu": [0.35**2, 0.30**2, 0.45**2],
        }
    )
    x, y = two_lines(n)
    return Example("gaussian softmax, k = 3", family, theta, x[:, None], y)


def sigmoid_example(n: int) -> Example:
    """Multinomial sigmoid, k = 4, K = 2."""
    family = moestat.family("multinomial", gate="sigmoid", n_experts=4, n_classes=2)
    theta = 1.5 * np.random.default_rng(3).normal(size=family.n_params)
    X, y = moestat.sample(family, theta, n, rng=1, design=moestat.Uniform(-4, 4))
    return Example("multinomial sigmoid, k = 4, K = 2", family, theta, X, y)
