"""Steps back to a narrow curved ridge of the likelihood.

A step along a ridge leaves it, by the ridge's curvature: by a second-order displacement in the
stiff directions, which costs far more likelihood than the step can gain.  A Newton step in the
stiff directions alone undoes this and keeps what the step has gained.

Which curvature it takes decides how far it leads.  Off the ridge the Hessian is no use: it is the
information, the sum of the outer products of the scores, plus second derivatives of densities
times what the model misses, and these change in proportion to the displacement; softer directions
would be led astray, and be corrected in turns, one after the other.  The information alone is
nearly the same on the ridge and off it, which is why Gauss-Newton steps converge so fast where a
model nearly fits.  What is left of the Hessian on the ridge is noise, of the order of the root of
n.  It is told by where the step came from, or, once that is less, by where the step has got to.

Directions are stiff where a small part of the step's length costs what the step was made for, and a
still smaller one where they are no stiffer than the noise: softer ones are what the step went
along, and to go there again would leave the ridge again.  A correction leaves it, too, by the
ridge's curvature along the softest directions that it takes, and by less the stiffer these are. So
each turn takes fewer directions than the one before.  The last ones are for the curvature: that of
the soft directions is wrong by the slope that is left in the stiffest, times the ridge's curvature,
long after what this slope could gain has become nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compile_loop, device
from moestat.kernels.views import empty_rows, keep, row
from moestat.solvers.merging_atoms.rules import RIDGE
from moestat.solvers.problem import Evaluation, InformedEvaluation
from moestat.solvers.trust_region.eigen import into_eigenbasis, out_of_eigenbasis
from moestat.solvers.trust_region.region import Region


@device(forceinline=False)
def _size(at, units, matrix):
    """Root of the sum of the squared entries of a symmetric matrix, in units of coordinates."""
    total = 0.0
    for i in range(at.size):
        square = 0.0
        for j in range(i):
            square += (units[j] * matrix[at[i], at[j]]) ** 2
        total += units[i] ** 2 * (2.0 * square + (units[i] * matrix[at[i], at[i]]) ** 2)
    return math.sqrt(total)


@device(forceinline=False)
def _choose_curvature(at, model, factor, noise, units, curvature):
    """Fill the curvature that leads back to the ridge; returns its noise.  `units` is scratch."""
    _, _, hessian, information = model
    n_params = len(hessian)
    for i in range(n_params):
        for j in range(n_params):
            curvature[i, j] = hessian[i, j] - information[i, j]
    for i in range(at.size):
        square = 0.0
        for j in range(i + 1):
            square += factor[i, j] ** 2
        units[i] = 1.0 / math.sqrt(square)
    proposed, current = _size(at, units, noise), _size(at, units, curvature)
    is_far = proposed < current
    for i in range(n_params):
        for j in range(n_params):
            curvature[i, j] = information[i, j] + noise[i, j] if is_far else hessian[i, j]
    return min(proposed, current)


@compile_loop
def _correction_loop(model, bounds, given, at, factor, noise, out):
    """Fill step and slope; returns the decrease that the step predicts and its length.

    The model is theta, gradient, Hessian and information; `given` are the length and the predicted
    decrease of the step that is corrected, and the factor of `small` and `smaller` in this turn.
    """
    theta, gradient, _, _ = model
    lower, upper = bounds
    length, predicted, share = given
    step, slope = out
    n, n_params = at.size, theta.size
    matrix = empty_rows(n, n)
    work = empty_rows(3, n)
    curvature = empty_rows(n_params, n_params)
    level = _choose_curvature(at, model, factor, noise, row(work, 0), curvature)
    values, modal = row(work, 1), row(work, 2)
    for i in range(n):
        modal[i] = gradient[at[i]]
        for j in range(n):
            matrix[i, j] = curvature[at[i], at[j]]
    # The cost of a part of the step's length grows like the square of the part.
    cheap = predicted / (0.5 * (RIDGE.small * share * length) ** 2)
    dear = predicted / (0.5 * (RIDGE.smaller * share * length) ** 2)
    soft = max(cheap, min(dear, level))
    into_eigenbasis(n, factor, (matrix, modal, values), row(work, 0))
    decrease, square = 0.0, 0.0
    for i in range(n):
        slope_here = modal[i]
        modal[i] = -slope_here / values[i] if values[i] > soft else 0.0
        decrease -= 0.5 * slope_here * modal[i]
        square += modal[i] ** 2
    distance = math.sqrt(square)
    shrink = length / distance if distance > length else 1.0
    out_of_eigenbasis(n, factor, matrix, row(work, 0), modal)
    for j in range(n_params):
        step[j] = 0.0
    for i in range(n):
        j = at[i]
        move = shrink * modal[i]
        low, high = lower[j] - theta[j], upper[j] - theta[j]
        step[j] = low if move < low else high if move > high else move
    for i in range(n_params):
        slope[i] = gradient[i]
        for j in range(n_params):
            slope[i] += curvature[i, j] * step[j]
    keep(work)
    return (2.0 - shrink) * shrink * decrease, shrink * distance


def _information(current: Evaluation) -> FloatArray:
    return current.information if isinstance(current, InformedEvaluation) else current.hessian


class Correction(NamedTuple):
    """A step (P,) back to the ridge.

    It has the predicted decrease, the length in the metric, and the gradient (P,) at its end by the
    model, where the slopes in stiff directions are zero and free of rounding errors.
    """

    step: FloatArray
    decrease: float
    length: float
    gradient: FloatArray


class Ridge:
    """Computes steps back to the ridge from the model at a point on it.

    Coordinates on the bounds of the box do not move.  If evaluations lack the information, the
    Hessian takes its place.
    """

    def __init__(self, region: Region, current: Evaluation) -> None:
        self.region = region
        self.noise = current.hessian - _information(current)

    def correction(
        self,
        theta: FloatArray,
        current: Evaluation,
        length: float,
        predicted: float,
        turn: int = 0,
    ) -> Correction:
        """A step back to the ridge from theta (P,), the end of a step of this length.

        `predicted` is the decrease of the objective that the model predicted for that step.

        The correction is no longer than that step.  It moves in stiff directions only, in fewer of
        them with each turn, and is zero if there are none.  A coordinate that would leave the box
        stops at its edge.
        """
        region = self.region
        step = np.empty(theta.size)
        slope = np.empty(theta.size)
        decrease, size = _correction_loop(
            (theta, current.gradient, current.hessian, _information(current)),
            (region.lower, region.upper),
            (float(length), float(predicted), max(RIDGE.finer**turn, RIDGE.finest)),
            region.at,
            region.factor,
            self.noise,
            (step, slope),
        )
        return Correction(step, decrease, size, slope)
