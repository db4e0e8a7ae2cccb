"""Metrics of parameter space: a step's length is the root mean square change of the predictors."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.rules import DETAIL


def with_ridge(gram: FloatArray) -> FloatArray:
    """A matrix ``E[phi phi']`` with a ridge that makes it definite for constant inputs, too."""
    return gram + DETAIL.ridge * np.diag(np.diag(gram) + DETAIL.ridge)


def region_metric(gram: FloatArray, index: IntArray, width: IntArray, n_params: int) -> FloatArray:
    """The metric M (P, P) of channels at `index` (k, C) of `width` (C,), with a small ridge.

    `gram` is ``E[phi phi']`` (1 + d, 1 + d) over the data.
    """
    gram = with_ridge(gram)
    metric = np.zeros((n_params, n_params))
    for (_, c), first in np.ndenumerate(index):
        w = int(width[c])
        metric[first : first + w, first : first + w] = gram[:w, :w]
    return metric
