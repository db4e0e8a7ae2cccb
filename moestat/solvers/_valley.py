"""The floor of a narrow curved valley, and the way back to it.

A step along a valley leaves its floor, by the valley's bend: by a second-order displacement in the
stiff directions, which costs far more likelihood than the step can gain.  A Newton step in the
stiff directions alone undoes this and keeps what the step has gained.  A full Newton step would
not do: off the floor the Hessian's soft curvatures mean nothing, for they are sums of the soft
curvatures of the floor and of much larger terms that vanish with the displacement.

Which directions are stiff is a matter of where the step has ended, since a valley that bends turns
them.  They are those whose stiffness is what it was before the step: where a displacement has
changed a curvature, the curvature says nothing about the floor.  And they are so stiff that a small
part of the step's length costs what the step was made for: softer ones are what the step went
along, and to go there again would leave the floor again.
"""

from __future__ import annotations

import numpy as np

from moestat._types import FloatArray
from moestat.solvers._driver import Evaluation
from moestat.solvers._trust_region import BoxStep, box_step, free_coordinates

__all__ = ["Floor"]

_CHANGE = 0.5  # of a stiffness, relative to what it was, that still counts as none
_SMALL = 0.03  # part of a step's length that costs its promise in stiff directions


class Floor:
    """The stiffness of a quadratic model, by which the way back to its floor is found.

    Parameters
    ----------
    theta, gradient : ndarray of shape (P,)
        Where the model is, and its gradient there.
    hessian, metric : ndarray of shape (P, P)
        Curvature of the model, and the metric that lengths are measured in.
    lower, upper : ndarray of shape (P,)
        The box; coordinates held by it have no direction.
    """

    def __init__(
        self,
        theta: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray,
        metric: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.metric, self.lower, self.upper = metric, lower, upper
        free = np.flatnonzero(free_coordinates(theta, gradient, lower, upper))
        # Rows that are orthonormal in the metric, over the free coordinates.
        self.whitener = np.zeros((free.size, theta.size))
        self.whitener[:, free] = np.linalg.inv(np.linalg.cholesky(metric[np.ix_(free, free)]))
        self.stiffness = np.linalg.eigvalsh(self._white(hessian))

    def _white(self, hessian: FloatArray) -> FloatArray:
        """A Hessian (P, P) in free coordinates where the metric is the identity."""
        return self.whitener @ hessian @ self.whitener.T

    def restoration(
        self, theta: FloatArray, here: Evaluation, length: float, promise: float
    ) -> BoxStep | None:
        """A step back to the floor from theta (P,), where one of some length and promise has led.

        It is no longer than that step, and moves in the stiffest directions alone, down to the
        first one that is too soft or whose stiffness is no longer what it was.  None if there is
        no stiff direction.
        """
        stiffness, axes = np.linalg.eigh(self._white(here.hessian))
        changed = np.abs(stiffness - self.stiffness) > _CHANGE * self.stiffness
        soft = 0.5 * stiffness * (_SMALL * length) ** 2 < promise
        first = int(np.flatnonzero(changed | soft).max(initial=-1)) + 1
        if first == stiffness.size:
            return None
        stiff = self.whitener.T @ axes[:, first:]
        slope, stiffness = stiff.T @ here.gradient, stiffness[first:]
        along = -slope / stiffness
        step, size = stiff @ along, float(np.linalg.norm(along))
        end = theta + step
        if size <= length and (end >= self.lower).all() and (end <= self.upper).all():
            return BoxStep(step, -0.5 * float(slope @ along), size)
        dual = self.metric @ stiff
        # The other directions have no slope, and the largest curvature: they stay as they are.
        still = float(stiffness[-1])
        return box_step(
            theta,
            dual @ slope,
            (dual * (stiffness - still)) @ dual.T + still * self.metric,
            self.metric,
            self.lower,
            self.upper,
            length,
        )
