"""Best approximations of a regression function by another family, found numerically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, as_generator, positive_int
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.starts import StartRule, TruthStarts
from moestat.metrics.distances import regression_error
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.solvers import GaussNewtonBFGS, Solver
from moestat.solvers.driver import succeeded

__all__ = ["Approximation", "best_approximations"]


@dataclass(frozen=True)
class Approximation:
    """One local best approximation."""

    theta: FloatArray = field(repr=False)  # (P,): packed parameters
    error: float  # ``||f - f*||`` in L2 of the inputs' law, on other inputs than those of the fit
    status: str  # how its fit ended
    # Euclidean distance of the packed parameters to those of the best one, atoms matched: how far
    # from unique the best approximation is
    gap: float


def best_approximations(
    family: Family,
    truth_family: Family,
    truth: Any,
    design: Design | None = None,
    *,
    n: int = 20_000,
    starts: Sequence[StartRule] | None = None,
    solver: Solver | None = None,
    rng: Any = None,
) -> list[Approximation]:
    """The measures of `family` whose regression functions are nearest to a truth of another one.

    Yan et al. (2025), Sec. 3: the measures in ``argmin ||f_G - f_G*||`` that fits of the dense
    regime are compared with.  One per start rule, the nearest first; by default three start around
    the truth, as far as blocks have the same names.  Where errors agree and gaps do not, the best
    approximation is not unique.
    """
    vector = as_floats("truth", truth, (truth_family.n_params,))
    generator = as_generator(rng)
    X, y = sample(
        truth_family, vector, positive_int("n", n, maximum=None), generator, design, noise=0.0
    )
    rules = starts or [TruthStarts(truth_family, vector) for _ in range(3)]
    found: list[tuple[float, FloatArray, str]] = []
    for rule in rules:
        job = FitJob(family, Data.of(family, X, y), solver or GaussNewtonBFGS(), [rule], generator)
        (result,) = succeeded(fit_jobs([job]))
        distance = regression_error(family, result.params, truth_family, vector, design)
        found.append((distance.value, result.params, result.certificate.status))
    found.sort(key=lambda item: item[0])
    best = found[0][1]
    return [
        Approximation(theta, error, status, _gap(family, theta, best))
        for error, theta, status in found
    ]


def _gap(family: Family, theta: FloatArray, other: FloatArray) -> float:
    """Euclidean distance of packed parameters with the atoms matched."""
    from scipy.optimize import linear_sum_assignment

    one, two = (family.split(family.canonical(value))[0] for value in (theta, other))
    squares = np.sum((one[:, None] - two) ** 2, axis=-1)
    rows, columns = linear_sum_assignment(squares)
    return float(np.sqrt(squares[rows, columns].sum()))
