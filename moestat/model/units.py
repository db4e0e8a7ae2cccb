"""Units of the data: the maps x = m + s z, y = c + u w, and how packed parameters follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.types import Encoded, FloatArray
from moestat.model.family import Family

__all__ = ["Coordinates", "DataUnits", "closed_part"]


@dataclass(frozen=True)
class DataUnits:
    """An affine map of the data, ``x = centre + scale z`` and ``y = level + unit w``."""

    # (d,): shift and positive scale of each input
    centre: FloatArray
    scale: FloatArray
    # (R,): shift and positive scale of a continuous response, or of each of several; 0 and 1 for
    # classes
    level: float | FloatArray = 0.0
    unit: float | FloatArray = 1.0
    # (d, d): mean products of the inputs, where a prior needs them
    squares: FloatArray | None = field(default=None, kw_only=True)

    def compose(self, units: DataUnits) -> DataUnits:
        """The map for data that have been mapped by `units` before."""
        return DataUnits(
            (self.centre - units.centre) / units.scale,
            self.scale / units.scale,
            (self.level - units.level) / units.unit,
            self.unit / units.unit,
        )

    def apply(self, X: FloatArray, y: Encoded) -> tuple[FloatArray, Encoded]:
        """The data (z, w) of inputs X (d, n) and responses y (n,); classes stay as they are."""
        Z = np.ascontiguousarray((X - self.centre[:, None]) / self.scale[:, None])
        if np.issubdtype(y.dtype, np.integer):
            return Z, y
        if y.dtype.names:
            w = y.copy()
            for name, level, unit in zip(
                y.dtype.names, _each(self.level), _each(self.unit), strict=True
            ):
                if level != 0.0 or unit != 1.0:
                    w[name] = (y[name] - level) / unit
            return Z, w
        w = np.ascontiguousarray(y - self.level)
        w /= self.unit
        return Z, w

    def moments(self, mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance matrix of (z, w), or of z alone, from those of (x, y), or of x."""
        last = mean.size - self.scale.size
        centre = np.append(self.centre, _each(self.level)[:last])
        scale = np.append(self.scale, _each(self.unit)[:last])
        return (mean - centre) / scale, covariance / np.outer(scale, scale)


def _each(value: float | FloatArray) -> FloatArray:
    """A number, or one of each response, as a vector."""
    return np.asarray(value, dtype=np.float64).reshape(-1)


def closed_part(family: Family, units: DataUnits) -> DataUnits:
    """The part of a map of the data under which the family is closed.

    The densities of a closed family after the map are the family's own, with other parameters.
    Without a closed part a shift is 0 and a scale 1; where only a common scale of all inputs is
    possible, it is the root mean square of theirs.
    """
    axes = (family.gate.units, family.expert.units, family.likelihood.units)
    centre = units.centre
    scale = units.scale
    if not all(axis.shift_inputs for axis in axes):
        centre = np.zeros_like(centre)
    if any(axis.common_scale for axis in axes):
        scale = np.full_like(scale, np.sqrt(np.mean(scale**2)))

    def follows(move: str) -> list[bool]:
        return [
            law.support is None and all(getattr(u, move) for u in (*axes[:2], law.units))
            for law in family.likelihood.laws
        ]

    level = _if_followed(follows("shift_response"), units.level, 0.0)
    unit = _if_followed(follows("scale_response"), units.unit, 1.0)
    if family.likelihood.tied:
        units_of_responses = _each(units.unit)
        unit = np.full(units_of_responses.size, np.sqrt(np.mean(units_of_responses**2)))
    return DataUnits(centre, scale, level, unit)


def _if_followed(moves: Sequence[bool], values: Any, else_: float) -> Any:
    """A number, or one of each response, where the family follows it."""
    if np.ndim(values) == 0:
        return values if moves[0] else else_
    return np.where(moves, values, else_)


@dataclass(frozen=True)
class Coordinates:
    """Parameters of one density before and after a map of the data.

    With parameters theta of the data (x, y) and phi of the mapped data (z, w), ``theta = matrix @
    phi + shift``, and the density of y at theta is that of w at phi over ``unit``.
    """

    family: Family  # a family that is closed under the map
    units: DataUnits = field(repr=False)  # the map

    @cached_property
    def _features(self) -> FloatArray:
        """The features ``phi = (1, z, products)`` as a matrix times those of x."""
        centre, scale = self.units.centre, self.units.scale
        d = centre.size
        products = any(channel.products is not None for channel in self.family.channels)
        matrix = np.eye(1 + d + (d * (d + 1) // 2 if products else 0))
        at = np.arange(1, d + 1)
        matrix[at, at] = 1.0 / scale
        matrix[at, 0] = -centre / scale
        if products:
            rows, columns = np.triu_indices(d)
            factor = np.where(rows == columns, 1.0, np.sqrt(2.0)) / (scale[rows] * scale[columns])
            at = 1 + d + np.arange(rows.size)
            matrix[at, at] = 1.0 / (scale[rows] * scale[columns])
            matrix[at, 0] = factor * centre[rows] * centre[columns]
            np.add.at(matrix, (at, 1 + columns), -factor * centre[rows])
            np.add.at(matrix, (at, 1 + rows), -factor * centre[columns])
        return matrix

    def _by_channel(self, values: float | FloatArray) -> FloatArray:
        """What the response of each channel has, (C,)."""
        return _each(values)[self.family.response_of]

    @cached_property
    def matrix(self) -> FloatArray:
        """Derivative of theta in phi, shape (P, P)."""
        family, units = self.family, self.units
        matrix = np.zeros((family.n_params, family.n_params))
        powers = {**family.expert.units.powers, **family.likelihood.units.powers}
        length = float(units.scale[0])
        unit = self._by_channel(units.unit)
        for c, channel in enumerate(family.channels):
            steps = np.arange(int(family.width[c]))
            features = np.concatenate([[0], family.offset[c] + steps[:-1]])
            block = self._features[np.ix_(features, features)].T
            if channel.axis is not None or channel.intercept in family.gate.units.lengths:
                block = block * length
            elif not channel.log:
                block = block * unit[c] ** powers.get(channel.intercept, 0.0)
            for first in family.index[:, c]:
                at = slice(first, first + steps.size)
                matrix[at, at] = block
        unread = family.padding_positions
        matrix[np.ix_(unread, unread)] = np.eye(unread.size)
        return matrix

    @cached_property
    def shift(self) -> FloatArray:
        """Theta where phi is 0, shape (P,)."""
        family, units = self.family, self.units
        shift = np.zeros(family.n_params)
        powers = family.likelihood.units.powers
        level, unit = self._by_channel(units.level), self._by_channel(units.unit)
        levels = family.expert.units, family.likelihood.units
        for c, channel in enumerate(family.channels):
            first = family.index[:, c]
            if channel.axis is not None:
                shift[first] = units.centre[channel.axis]
            elif channel.log:
                shift[first] = powers.get(channel.intercept, 0.0) * np.log(unit[c])
            elif any(u.is_level(channel.intercept) for u in levels):
                shift[first] = level[c]
        shift[family.padding_positions] = 0.0
        return shift

    def outward(self, phi: FloatArray) -> FloatArray:
        """Theta (P,) of phi (P,)."""
        return self.matrix @ phi + self.shift

    def inward(self, theta: FloatArray) -> FloatArray:
        """Phi (P,) of theta (P,), the inverse of `outward`."""
        return np.asarray(np.linalg.solve(self.matrix, theta - self.shift), dtype=np.float64)

    def information(self, matrix: FloatArray) -> FloatArray:
        """A Hessian in theta (P, P) from that in phi."""
        half = np.linalg.solve(self.matrix.T, matrix)
        full = np.linalg.solve(self.matrix.T, half.T)
        return np.asarray(0.5 * (full + full.T), dtype=np.float64)
