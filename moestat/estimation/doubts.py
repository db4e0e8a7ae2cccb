"""What a user should know about a maximum besides that it is one: kinds of doubt, in words."""

from __future__ import annotations

from functools import partial

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.warnings import (
    AliasedWarning,
    BoundWarning,
    DisagreementWarning,
    MoEWarning,
    SeparationWarning,
    UnitsWarning,
)
from moestat.estimation.standardise import Standardised, data_units
from moestat.solvers.problem import Problem, Sample
from moestat.solvers.solution import Solution

__all__ = ["Doubt", "doubts"]

Doubt = tuple[type[MoEWarning], str]
"""A kind of warning, and what it says."""

_FLAT = 1e-4
"""A move of a predictor by 1 that costs less log-likelihood than this is not told by the data."""

_ALIASED, _PART = 1e-12, 1e-6
"""Eigenvalues of a correlation matrix below this are 0; parts of an eigenvector above are not."""

_FAR_OUT = 3.0
_COST = 1e-2
_FAR_UNITS = 10.0


def doubts(standard: Standardised, solution: Solution) -> list[Doubt]:
    """Reasons not to take a fit to data as the maximum of its likelihood.

    Parameters
    ----------
    standard : Standardised
        The data and the family in the coordinates of the fit.
    solution : Solution
        The fit there, with the certificate of all starts.
    """
    found: list[Doubt] = []
    certificate, family = solution.certificate, standard.problem.family
    default = [name for name in certificate.active if _block(name) not in family.given]
    if default:
        more = f" and {len(default) - 3} more" if len(default) > 3 else ""
        found.append(
            (
                BoundWarning,
                f"on a default bound: {', '.join(default[:3])}{more}. The likelihood still rises"
                " there, and may have no maximum: fewer experts, or bounds= of your own",
            )
        )
    if certificate.n_starts > 1 and certificate.agreement * certificate.n_starts < 1.5:
        found.append(
            (
                DisagreementWarning,
                f"only one of {certificate.n_starts} runs reached the best log-likelihood found:"
                " there may be a higher one. More n_starts=, or fewer experts",
            )
        )
    if _at_infinity(standard, solution):
        found.append(
            (
                SeparationWarning,
                "the likelihood has no finite maximum: classes, or regions of the gate, are"
                " separated by the inputs, and parameters that separate them grow without end."
                " Predictions are sound, those parameters and their errors are not: fewer"
                " experts, or bounds= of your own",
            )
        )
    return found + _aliased(standard) + _unit_doubts(standard)


def _aliased(standard: Standardised) -> list[Doubt]:
    """Inputs of the gate, or of the experts, that are linear functions of each other."""
    family = standard.problem.family
    offset = () if family.offset_input is None else family.offset_input[:1]
    among: set[int] = set()
    for part in (family.gate_inputs, family.expert_inputs):
        read = range(family.n_features) if part is None else part
        among |= _dependent(standard, np.setdiff1d(read, [*family.held, *offset]).astype(int))
    if not among:
        return []
    message = (
        f"X: columns {', '.join(map(str, sorted(among)))} are linear functions of each other:"
        " predictions are sound, but the data do not tell their coefficients apart. Leave a column"
        " out"
    )
    return [(AliasedWarning, message)]


def _dependent(standard: Standardised, used: IntArray) -> set[int]:
    """The columns of these that are in a linear relation."""
    if used.size < 2:
        return set()
    covariance = standard.original.data.covariance[np.ix_(used, used)]
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    among = np.any(np.abs(vectors[:, values < _ALIASED]) > _PART, axis=1)
    return {int(used[j]) for j in np.flatnonzero(among)}


def _block(name: str) -> str:
    """The block of a parameter, from its name."""
    return name.removeprefix("log ").split("[")[0]


def _at_infinity(standard: Standardised, solution: Solution) -> bool:
    """Whether a fit has come far out along directions in which the likelihood is flat beyond it.

    Directions are flat in the metric of the predictors.  What the parameters have of them is
    doubled and taken away: at a maximum at infinity the first costs nothing, the second does;
    along parameters that are not identified neither costs anything.
    """
    problem, theta = standard.problem, solution.theta
    family = problem.family
    lower, upper = family.box_at(theta)
    at = np.flatnonzero(lower < upper)
    if family.is_regression or not at.size or not np.isfinite(solution.information).all():
        return False
    metric = problem.metric(theta)[np.ix_(at, at)]
    block = solution.information[np.ix_(at, at)]
    # In coordinates where the metric is the identity.
    factor = np.linalg.cholesky(metric)
    values, vectors = np.linalg.eigh(np.linalg.solve(factor, np.linalg.solve(factor, block).T))
    flat = np.linalg.solve(factor.T, vectors[:, np.abs(values) < _FLAT])
    along = np.zeros(theta.size)
    along[at] = flat @ (flat.T @ (metric @ theta[at]))
    if along @ problem.metric(theta) @ along < _FAR_OUT**2:
        return False
    data = problem.data

    def height(at: FloatArray) -> float:
        return sum(data.over(partial(_height, problem, at)))

    further, back = height(theta + along), height(theta - along)
    least = solution.log_likelihood - _COST
    return further > least > back


def _height(problem: Problem, theta: FloatArray, part: Sample) -> float:
    """The log-likelihood of some rows."""
    return float(part.weight @ problem.rowwise(theta, part)[2])


def _unit_doubts(standard: Standardised) -> list[Doubt]:
    """Data far from unit scale in what the family does not follow."""
    family = standard.original.family
    inner = data_units(standard.original.data).within(standard.coordinates.units)
    used = np.array(family.read, dtype=np.int64)
    far = []
    scale = inner.scale[used]
    if np.any((scale > _FAR_UNITS) | (scale < 1.0 / _FAR_UNITS)):
        far.append("inputs whose scales differ")
    if np.any(np.abs(inner.centre[used]) > _FAR_UNITS * scale) and not family.given:
        far.append("inputs far from 0")
    if family.likelihood.support is None and family.likelihood.link is None:
        if not 1.0 / _FAR_UNITS <= inner.unit <= _FAR_UNITS:
            far.append(f"a response of standard deviation {inner.unit:.3g}")
        if abs(inner.level) > _FAR_UNITS * inner.unit:
            far.append("a response far from 0")
    if not far:
        return []
    message = (
        f"{' and '.join(far)}: the fit of a {family.gate.name} gate with {family.expert.name}"
        " experts depends on these units. Give the data in units near 1"
    )
    return [(UnitsWarning, message)]
