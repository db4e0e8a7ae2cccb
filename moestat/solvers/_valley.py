"""The floor of a narrow curved valley, and the way back to it.

A step along a valley leaves its floor, by the valley's bend: by a second-order displacement in the
stiff directions, which costs far more likelihood than the step can gain.  A Newton step in the
stiff directions alone undoes this and keeps what the step has gained.  A full Newton step would
not do: off the floor the Hessian's soft curvatures mean nothing, for they are sums of the soft
curvatures of the floor and of much larger terms that vanish with the displacement.

Which directions are stiff is a matter of where the step has ended, since a valley that bends turns
them.  They are those whose stiffness is what it was before the step: where a displacement has
changed a curvature, the curvature says nothing about the floor.
"""

from __future__ import annotations

import numpy as np

from moestat._types import FloatArray
from moestat.solvers._driver import Evaluation
from moestat.solvers._trust_region import BoxStep, box_step, free_coordinates

__all__ = ["Floor"]

_CHANGE = 0.5  # of a stiffness, relative to what it was, that still counts as none


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
        self.free = np.flatnonzero(free_coordinates(theta, gradient, lower, upper))
        # Rows that are orthonormal in the metric.
        self.whitener = np.linalg.inv(np.linalg.cholesky(metric[np.ix_(self.free, self.free)]))
        self.stiffness = np.linalg.eigvalsh(self._white(hessian))

    def _white(self, hessian: FloatArray) -> FloatArray:
        """A Hessian (P, P) in free coordinates where the metric is the identity."""
        return self.whitener @ hessian[np.ix_(self.free, self.free)] @ self.whitener.T

    def restoration(
        self, theta: FloatArray, here: Evaluation, length: float, worth: float
    ) -> BoxStep | None:
        """A step back to the floor from theta (P,), of some length at most.

        It moves in the stiffest directions alone, down to the first one whose stiffness is no
        longer what it was.  None if it promises less than it should be worth.
        """
        stiffness, axes = np.linalg.eigh(self._white(here.hessian))
        changed = np.abs(stiffness - self.stiffness) > _CHANGE * self.stiffness
        first = int(np.flatnonzero(changed).max(initial=-1)) + 1
        if first == stiffness.size:
            return None
        stiff = np.zeros((theta.size, stiffness.size - first))
        stiff[self.free] = self.whitener.T @ axes[:, first:]
        dual = self.metric @ stiff
        # The other directions have no slope, and the largest curvature: they stay as they are.
        still = float(stiffness[-1])
        move = box_step(
            theta,
            dual @ (stiff.T @ here.gradient),
            (dual * (stiffness[first:] - still)) @ dual.T + still * self.metric,
            self.metric,
            self.lower,
            self.upper,
            length,
        )
        return move if move.decrease >= worth else None
