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
from moestat.kernels.views import empty_like, empty_rows, keep, part, row
from moestat.solvers.problem import Evaluation, InformedEvaluation
from moestat.solvers.trust_region.eigen import into_eigenbasis, out_of_eigenbasis
from moestat.solvers.trust_region.region import MOST_ROTATIONS, Region

__all__ = ["Ridge", "Correction"]

_SMALL = 0.32  # part of a step's length that costs its predicted reduction in stiff directions
_SMALLER = 0.12  # and in those that may be softer than the noise
_FINER, _FINEST = 1.0 / 3.0, 1.0 / 40.0  # parts of these: from turn to turn, and at last
_NEGLIGIBLE = 1e-4  # couplings of directions, as a part of the least stiff curvature


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


@compile_loop
def _correction_loop(
    theta, gradient, hessian, information, lower, upper, length, predicted, share, at, factor,
    noise, step, slope,
):  # fmt: skip
    """Fill `step` and `slope`; returns the decrease that it predicts and its length."""
    n, n_params = at.size, theta.size
    matrix, work, curvature = empty_rows(n, n), empty_rows(5, n), empty_rows(n_params, n_params)
    for i in range(n_params):
        for j in range(n_params):
            curvature[i, j] = hessian[i, j] - information[i, j]
    units = row(work, 0)
    for i in range(n):
        square = 0.0
        for j in range(i + 1):
            square += factor[i, j] ** 2
        units[i] = 1.0 / math.sqrt(square)
    there, here = _size(at, units, noise), _size(at, units, curvature)
    is_far, level = there < here, min(there, here)
    for i in range(n_params):
        for j in range(n_params):
            curvature[i, j] = information[i, j] + noise[i, j] if is_far else hessian[i, j]
    integers = empty_like(at, MOST_ROTATIONS * n * n)
    rotations = empty_rows(2, integers.size)
    scratch = part(work, 0, 2)
    values, size, modal = row(work, 2), row(work, 3), row(work, 4)
    cosine, sine = row(rotations, 0), row(rotations, 1)
    for i in range(n):
        modal[i] = gradient[at[i]]
        for j in range(n):
            matrix[i, j] = curvature[at[i], at[j]]
    # What a part of the step's length costs grows like its square.
    cheap = predicted / (0.5 * (_SMALL * share * length) ** 2)
    dear = predicted / (0.5 * (_SMALLER * share * length) ** 2)
    soft = max(cheap, min(dear, level))
    used = into_eigenbasis(
        n,
        factor,
        matrix,
        modal,
        values,
        size,
        scratch,
        _NEGLIGIBLE * soft,
        integers,
        cosine,
        sine,
    )
    decrease, square = 0.0, 0.0
    for i in range(n):
        slope_here = modal[i]
        modal[i] = -slope_here / values[i] if values[i] > soft else 0.0
        decrease -= 0.5 * slope_here * modal[i]
        square += modal[i] ** 2
    moved = math.sqrt(square)
    shrink = length / moved if moved > length else 1.0
    out_of_eigenbasis(n, used, factor, matrix, size, integers, cosine, sine, modal)
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
    keep(rotations)
    return (2.0 - shrink) * shrink * decrease, shrink * moved


def _information(here: Evaluation) -> FloatArray:
    return here.information if isinstance(here, InformedEvaluation) else here.hessian


class Correction(NamedTuple):
    """A step (P,) back to the ridge.

    With the decrease it predicts, its length in the metric, and the gradient (P,) it leads to: of
    the slopes in stiff directions nothing is left of it, whatever rounding has made of them.
    """

    step: FloatArray
    decrease: float
    length: float
    gradient: FloatArray


class Ridge:
    """What a point on the ridge tells about the way back to it.

    Parameters
    ----------
    region : Region
        The model there; coordinates held by its box have no direction.
    here : Evaluation
        Evaluation there.  Without the information Hessians are taken for it.
    """

    def __init__(self, region: Region, here: Evaluation) -> None:
        self.region = region
        self.noise = here.hessian - _information(here)

    def correction(
        self,
        theta: FloatArray,
        here: Evaluation,
        length: float,
        predicted: float,
        turn: int = 0,
    ) -> Correction:
        """A step back to the ridge from theta (P,), where one of some length has led.

        `predicted` is the reduction of the objective that the model predicted for that step.

        It is no longer than that step, and moves in stiff directions alone, fewer with each turn:
        nowhere, if there are none.  A coordinate that would leave the box stops at its edge.
        """
        region, step, slope = self.region, np.empty(theta.size), np.empty(theta.size)
        decrease, size = _correction_loop(
            theta,
            here.gradient,
            here.hessian,
            _information(here),
            region.lower,
            region.upper,
            length,
            predicted,
            max(_FINER**turn, _FINEST),
            region.at,
            region.factor,
            self.noise,
            step,
            slope,
        )
        return Correction(step, decrease, size, slope)
