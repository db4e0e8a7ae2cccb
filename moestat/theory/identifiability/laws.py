"""Distance of a parameter's distribution from a given one, as residuals."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from moestat.base.types import Encoded, FloatArray
from moestat.metrics.information import score_rows
from moestat.metrics.quadrature import known_responses, log_densities, response_rules
from moestat.model.designs import Design
from moestat.model.family import Family

_NODES = {1: 40, 2: 8}  # per input, by the number of inputs
_CHECKS = {1: 101, 2: 17}
_LEAST = 1e-12  # weight below which a response is not compared


class Target:
    """The law of a truth (P*,), and the family in which parameters with that law are looked for.

    Of densities the residuals are ``log p - log p*`` at nodes over x and y, times the root of
    their probability under p*; then ``J'J`` at the truth is the expected information.  Of
    regression functions they are ``f - f*`` at nodes over x.
    """

    def __init__(
        self, family: Family, truth_family: Family, truth: FloatArray, design: Design
    ) -> None:
        self.family = family
        self.truth_family = truth_family
        self.truth = truth
        d = family.n_features
        self.free = np.flatnonzero(family.lower < family.upper)
        nodes, mass = design.quadrature(d, _NODES.get(d, 4))
        checks = design.quadrature(d, _CHECKS.get(d, 5))[0]
        self.design_points = np.ascontiguousarray(checks)
        self._X, self._y, weight = self._rows(nodes, mass)
        self._root = np.sqrt(weight)
        self._check_X, self._check_y, _ = self._rows(checks, np.ones(checks.shape[1]))
        self._true_values = self._values(truth_family, truth, self._X, self._y)
        self._check = self._values(truth_family, truth, self._check_X, self._check_y)

    def _rows(
        self, nodes: FloatArray, mass: FloatArray
    ) -> tuple[FloatArray, Encoded | None, FloatArray]:
        """Inputs (d, m), encoded responses and weights of all rows."""
        if self.family.is_regression:
            return np.ascontiguousarray(nodes), None, mass
        law = (self.truth_family, self.truth)
        parts = []
        for chunk, rule in response_rules([law], nodes):
            x = np.ascontiguousarray(nodes[:, chunk])
            density = np.exp(log_densities(*law, x, rule))
            weight = (density * rule.weight * mass[chunk][rule.owner, None]).ravel()
            used = weight > _LEAST
            rows = np.repeat(x[:, rule.owner], rule.y.shape[1], axis=1)[:, used]
            parts.append((rows, known_responses(self.family, rule)[used], weight[used]))
        X, y, weight = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
        return np.ascontiguousarray(X), y, weight

    def _values(
        self, family: Family, theta: FloatArray, X: FloatArray, y: Encoded | None
    ) -> FloatArray:
        if y is None:
            return family.regression(theta, X)[0]
        return family.rowwise(theta, X, y)[2]

    def move(self, theta: FloatArray, step: FloatArray) -> FloatArray:
        """Theta (P,) after a step (F,) of the free parameters."""
        out = theta.copy()
        out[self.free] += step
        return out

    def holds(self, theta: FloatArray) -> bool:
        """Whether theta lies in the family's box."""
        return bool(np.all((self.family.lower <= theta) & (theta <= self.family.upper)))

    @cached_property
    def scale(self) -> float:
        """Size of the residuals' values: 1 for log-densities, the largest |f*| for functions."""
        return float(np.abs(self._true_values).max()) if self._y is None else 1.0

    def residual(self, theta: FloatArray) -> FloatArray:
        """Weighted differences (m,)."""
        return self._root * (self._values(self.family, theta, self._X, self._y) - self._true_values)

    def jacobian(self, theta: FloatArray) -> FloatArray:
        """Derivatives (m, F) of the residuals in the free parameters."""
        if self._y is not None:
            rows = score_rows(
                self.family, theta, np.ascontiguousarray(self._X.T), self._y, self._root
            )
            return rows[:, self.free]
        m = self._X.shape[1]
        out = np.zeros((self.free.size, m))
        none = np.empty((self.family.n_experts, 0))
        self.family.residuals(theta, self._X, self._root, 0, 1, np.empty(m), none, out)
        return out.T

    def discrepancy(self, theta: FloatArray) -> float:
        """Largest ``|log p - log p*|`` or ``|f - f*| / max |f*|`` on a grid of other points."""
        values = self._values(self.family, theta, self._check_X, self._check_y)
        return float(np.abs(values - self._check).max() / self.scale)
