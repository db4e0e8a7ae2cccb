"""What likelihoods of a continuous response share: checks, and what follows from their law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, Likelihood, Units
from moestat.base.validate import as_floats
from moestat.model.reference import apart

__all__ = [
    "between",
    "columns_of",
    "decode",
    "draws",
    "positive",
    "positive_likelihood",
    "real",
    "variances",
]


def between(low: float, high: float, words: str) -> Callable[[Any, int], FloatArray]:
    """An ``encode`` of responses (n,) in the open interval (low, high), which `words` describe."""

    def encode(y: Any, n_classes: int) -> FloatArray:
        """Responses (n,), checked."""
        response = as_floats("y", y, (None,))
        wrong = response[(response <= low) | (response >= high)]
        if wrong.size:
            raise ValueError(f"y must hold {words}; got {wrong[0]:g}")
        return response

    return encode


def columns_of(y: Any) -> list[FloatArray]:
    """Encoded responses as numbers: (n,) of one, or of each of several."""
    return [np.real(y[name]) for name in y.dtype.names] if y.dtype.names else [np.real(y)]


def real(y: Any, n_classes: int) -> FloatArray:
    """Real responses (n,), checked."""
    return as_floats("y", y, (None,))


def variances(rng: np.random.Generator, n_experts: int) -> dict[str, FloatArray]:
    """Variances of a sensible truth, which differ."""
    return {"nu": apart(rng, n_experts, (), 0.1, 0.4)}


def decode(y: FloatArray) -> FloatArray:
    """Responses as they are."""
    return y


def draws(law: Callable[[FloatArray], Any]) -> Callable[..., FloatArray]:
    """The ``draw`` of a law: one response per column of the predictors (q, n)."""

    def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Responses with the predictors `eta`, shape (q, n)."""
        return np.asarray(law(eta).rvs(size=eta.shape[1], random_state=rng), dtype=np.float64)

    return draw


def one_predictor(n_classes: int) -> None:
    """A response that one predictor describes."""


positive = between(0.0, np.inf, "positive numbers")
"""Positive responses (n,), checked."""


def positive_likelihood(law: Callable[[FloatArray], Any], **fields: Any) -> Likelihood:
    """The likelihood of a positive response whose mean, or scale, is the exponential of eta.

    `fields` are what is its own; responses are drawn of the law unless ``draw`` is among them.
    """
    common: dict[str, Any] = {
        "n_responses": one_predictor,
        "channels": (),
        "encode": positive,
        "decode": decode,
        "draw": draws(law),
        "dtype": np.float64,
        "link": np.log,
        "ends": (0.0, np.inf),
        "units": Units(shift_response=False, scale_response=False),
    }
    return Likelihood(law=law, **(common | fields))
