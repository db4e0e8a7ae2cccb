"""The M-step of Gaussian linear experts in closed form: weighted least squares per atom."""

from __future__ import annotations

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.model.family import Family
from moestat.solvers.problem import Evaluation


def has_closed_form(family: Family) -> bool:
    """Whether the M-step of the experts is a weighted regression, separate from the gate."""
    linear = family.expert.block is None and not family.gate.reads_response
    apart, given = not (family.equal or family.ties), family.likelihood
    normal = given.spread is not None and given.link is None and given.law is None
    apart = apart and given.dtype is np.float64 and given.effects is None
    return linear and apart and normal


def regress(family: Family, theta: FloatArray, evaluation: Evaluation) -> FloatArray:
    """Put every expert at its weighted least-squares fit; for families that `has_closed_form`.

    The complete-data objective is quadratic in the coefficients of a mean, so one Newton step in
    them is the weighted least-squares fit; and its derivatives in ``t = log nu`` hold the weight
    ``N = 2 (f_t + f_tt)`` and the weighted sum of squares ``S = 2 nu f_tt`` of the atom, so that
    the residual variance ``nu = (S - nu g' H^-1 g) / N`` needs no further pass over the data.

    An expert whose fit lies outside the box, or that has no weight, stays as it is.
    """
    out = theta.copy()
    mean = family.first_expert_channel
    for i in range(family.n_experts):
        at = family.index[i, mean] + np.arange(family.width[mean])
        at = at[family.lower[at] < family.upper[at]]
        t = family.index[i, mean + 1]
        curvature = evaluation.hessian[np.ix_(at, at)]
        weight = 2.0 * (evaluation.gradient[t] + evaluation.hessian[t, t])
        try:
            step = scipy.linalg.solve(curvature, evaluation.gradient[at], assume_a="pos")
        except np.linalg.LinAlgError:
            continue
        fitted = theta[at] - step
        inside = np.all((fitted >= family.lower[at]) & (fitted <= family.upper[at]))
        square = 2.0 * evaluation.hessian[t, t] - evaluation.gradient[at] @ step
        if inside and weight > 0.0 and square > 0.0:
            out[at] = fitted
            log_nu = theta[t] + np.log(square / weight)
            out[t] = np.clip(log_nu, family.lower[t], family.upper[t])
    return out
