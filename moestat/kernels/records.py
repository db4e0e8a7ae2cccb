"""What a loop over the data takes and writes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.atom import Layout


class Coefficients(NamedTuple):
    """Where theta has those of each channel: the first one's position (k, C), their number (C,)."""

    position: IntArray
    width: IntArray
    layout: Layout


class Data(NamedTuple):
    """X (d, n), y (n,), weight (n,), and given responsibilities (k, n) or none (0, 0)."""

    X: FloatArray
    y: Any
    weight: FloatArray
    tau: FloatArray


class Sums(NamedTuple):
    """Score (P,), Hessian (P, P), and sum of the outer products of the scores (P, P)."""

    score: FloatArray
    hessian: FloatArray
    information: FloatArray


class BySample(NamedTuple):
    """Gate probabilities (k, n), responsibilities (k, n) and log-density (n,)."""

    prior: FloatArray
    posterior: FloatArray
    log_density: FloatArray


NO_SUMS = Sums(np.empty(0), np.empty((0, 0)), np.empty((0, 0)))
"""Where only the value is wanted."""
