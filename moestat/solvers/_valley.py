"""The floor of a narrow curved valley, and the way back to it.

A step along a valley leaves its floor, by the valley's bend: by a second-order displacement in the
stiff directions, which costs far more likelihood than the step can gain.  A Newton step in the
stiff directions alone undoes this and keeps what the step has gained.  A full Newton step would
not do: off the floor the Hessian's soft curvatures mean nothing, for they are sums of the soft
curvatures of the floor and of much larger terms that vanish with the displacement.
"""

from __future__ import annotations

import numpy as np
import scipy

from moestat._types import FloatArray
from moestat.solvers._driver import Evaluation
from moestat.solvers._trust_region import BoxStep, box_step, free_coordinates

__all__ = ["Floor"]

_REACH = 0.14  # longest displacement that counts as second-order, as a share of the step
_WORTH = 0.1  # part of the error that a restoration must promise to undo


class Floor:
    """The directions of a quadratic model, by their stiffness.

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
        at = np.flatnonzero(free_coordinates(theta, gradient, lower, upper))
        self.stiffness, axes = scipy.linalg.eigh(hessian[np.ix_(at, at)], metric[np.ix_(at, at)])
        self.axes = np.zeros((theta.size, at.size))
        self.axes[at] = axes
        self.metric, self.lower, self.upper = metric, lower, upper

    def restoration(
        self, theta: FloatArray, here: Evaluation, error: float, length: float
    ) -> BoxStep | None:
        """A step back to the floor from theta (P,), where a step of some length has ended.

        It moves in those directions alone that are stiff enough for a short displacement to cost
        the error, the part of the promised decrease that has not come true.  None if it cannot
        undo a tenth of the error.
        """
        stiff = self.axes[:, self.stiffness >= 2.0 * error / (_REACH * length) ** 2]
        if not stiff.shape[1]:
            return None
        dual = self.metric @ stiff
        # The other directions have no slope, and the largest curvature: they stay as they are.
        still = float(np.abs(self.stiffness).max())
        local = stiff.T @ here.hessian @ stiff - still * np.eye(stiff.shape[1])
        move = box_step(
            theta,
            dual @ (stiff.T @ here.gradient),
            dual @ local @ dual.T + still * self.metric,
            self.metric,
            self.lower,
            self.upper,
            length,
        )
        return move if move.decrease >= _WORTH * error else None
