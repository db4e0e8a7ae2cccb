"""What the densities of a prior are about: predictors, by the functions that they are of the data.

A prior of a predictor is of its value at the centre of the inputs and of its moves, not of its
coefficients.  Scores that compete with a reference, of classes or of branches, are compared with
their mean, with a score of 0 for the reference, so that it does not matter which one is the
reference; so are those of the experts, where the gate has one.  What an expert does not have counts
for nothing, and what several experts have in common counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.family import Family
from moestat.model.units import DataUnits

__all__ = ["Predictors", "predictors", "variances"]

_INTERCEPTS = 10.0 / 2.5
"""Standard deviations of intercepts in those of slopes: the scales of Gelman et al. (2008)."""

_SINGULAR, _SUM, _PART = 1e-10, 1e-9, 1e-7
"""Rounding of mean products of inputs: eigenvalues that are 0, a sum of inputs that is 1 in every
row, and the part of an input in it that is none (the root of an eigenvalue's rounding)."""


@dataclass(frozen=True)
class Predictors:
    """Predictors of every expert with one prior: one, or all that compete with a score of 0.

    `places` are the positions (k, width) of the coefficients of each, `centres` their values where
    the form is 0.
    """

    family: Family
    places: list[IntArray]
    centres: list[FloatArray]
    moves: FloatArray  # (width, width): value at the centre, and moves, from the coefficients
    reads: np.ndarray  # (width, width): which coefficients each of these is about
    deviation: float
    competes: bool  # with a reference, a class or a branch, whose score is 0
    present: FloatArray  # (m, k): 1, and 0 for what an expert does not have
    is_translated: bool  # only differences from the mean over experts are known

    def add_to(self, quadratic: FloatArray) -> None:
        """Add the form of the squares about the mean of what competes, or about 0."""
        k, whole = self.family.n_experts, self.moves.T @ self.moves / self.deviation**2
        if self.is_translated:
            (places,) = self.places
            product = (np.eye(k) - 1.0 / k)[:, None, :, None] * whole[:, None]
            quadratic[places[..., None, None], places] += product
            return
        times = self._times()
        among = 1.0 / (self.present.sum(axis=0) + 1.0) if self.competes else np.zeros(k)
        for c, rows in enumerate(self.places):
            for other, columns in enumerate(self.places):
                share = self.present[c] * self.present[other] * (float(c == other) - among)
                at = rows[:, :, None], columns[:, None, :]
                if times is None:
                    quadratic[at] += share[:, None, None] * whole
                else:
                    forms = np.einsum("it,ta,tb->iab", 1.0 / times, self.moves, self.moves)
                    product = share[:, None, None] * forms / self.deviation**2
                    np.add.at(quadratic, at, product)

    def _times(self) -> IntArray | None:
        """How many experts have each move (k, width) in common; None where all have their own."""
        if not self.family.equal_sets and self.places[0][0, 0] != self.places[0][-1, 0]:
            return None
        family, times = self.family, list[list[int]]()
        names, known = np.arange(family.n_params), family.lower == family.upper
        for tie in family.equal_sets:
            names[tie] = tie[0]
        names[known] = -1 - np.unique(family.lower[known], return_inverse=True)[1]
        named = names[np.stack(self.places, axis=1)]  # (k, m, width)
        for reads in self.reads:
            read = [tuple(each) for each in named[:, :, reads].reshape(len(named), -1).tolist()]
            times.append([read.count(each) for each in read])
        return np.array(times).T


def predictors(
    family: Family, units: DataUnits, gate: float | None, experts: float | None
) -> Iterator[Predictors]:
    """The predictors of the gate and of the experts that have a prior."""
    laws, n_gate = family.likelihood.laws, len(family.gate.channels(family.n_features))
    linked = np.array([law.link is not None for law in laws])[family.response_of]
    is_number = np.array([law.support is None for law in laws])[family.response_of]
    response = np.where(is_number, np.ravel(units.unit)[family.response_of], 1.0)
    levels = _levels(family, units)[family.response_of]
    dependences = {name for names in family.likelihood.pairs.values() for name in names}
    grouped = dict[Any, list[int]]()
    for c, channel in enumerate(family.channels):
        is_option = channel.intercept in family.likelihood.set_by_options
        if (
            channel.log
            or (channel.shared and (c < n_gate or is_option))
            or (gate if c < n_gate else experts) is None
        ):
            continue
        key: Any = c
        for number, scores in enumerate(family.gate.nodes if c < n_gate else ()):
            key = ("node", number) if channel.intercept in scores else key
        # Components of a linear expert are classes; those of others are hidden units.
        if c >= n_gate and family.expert.block is None and channel.component is not None:
            key = "classes", int(family.response_of[c])
        grouped.setdefault(key, []).append(c)
    mass, sloped = _mass_and_slopes(family)
    absent, scaling = _absent(family), family.gate.scaling
    translated = {int(at) for name in family.gate.translations for at in family.blocks[name].flat}
    grouped.pop(mass, None)
    own = np.split(family.places, np.cumsum(family.width)[:-1], axis=1)
    for key, group in grouped.items():
        first, places = group[0], [own[c] for c in group]
        if first == sloped:
            places = [np.column_stack([family.index[:, mass], own[first][:, 1:]])]
        channel, deviation = family.channels[first], gate if first < n_gate else experts
        assert deviation is not None
        if channel.intercept in dependences:
            deviation /= _INTERCEPTS  # a slope on another response, in its standard deviations
        elif first >= n_gate and not linked[first]:
            power = family.expert.units.powers.get(channel.intercept, 0.0)
            deviation *= float(response[first]) ** (1.0 if channel.response else power)
        level = [
            float(levels[c]) * family.expert.units.is_level(family.channels[c].intercept)
            for c in group
        ]
        constants = [[_constant(family, place, units) for place in each] for each in places]
        moves, reads = _moves(units, places[0].shape[1], constants[0])
        # Scores are those at a scale of 1.
        scaled = [channel.intercept in scaling and first != sloped, channel.slope in scaling]
        moves[:, 0] /= family.known_scale if scaled[0] else 1.0
        moves[:, 1:] /= family.known_scale if scaled[1] else 1.0
        yield Predictors(
            family,
            places,
            [_centres(family, *each, units) for each in zip(places, level, constants, strict=True)],
            moves,
            reads,
            deviation,
            not isinstance(key, int),
            np.array([~absent[each].all(axis=1) for each in places]).astype(np.float64),
            first < n_gate and not translated.isdisjoint(places[0].flat),
        )


def _centres(
    family: Family,
    places: IntArray,
    level: float,
    constants: list[FloatArray | None],
    units: DataUnits,
) -> FloatArray:
    """Coefficients (k, width) of a predictor that has this level at the centre of the inputs.

    Without a free intercept it has the level in every row, if a combination of inputs is constant,
    as the sum of all levels of a factor is, but for what known coefficients add.
    """
    centres = np.zeros(places.shape)
    centres[:, 0] = level
    for i, (place, constant) in enumerate(zip(places, constants, strict=True)):
        if constant is not None:
            known, value = family.lower[place] == family.upper[place], family.lower[place]
            others = known & (constant == 0.0)
            rest = level - float(value[others] @ np.append(1.0, units.centre)[others])
            centres[i] = np.where(known, value, rest * constant)
    return centres


def _constant(family: Family, place: IntArray, units: DataUnits) -> FloatArray | None:
    """Coefficients (width,) of inputs whose sum is 1 in every row, where the intercept is known."""
    lower, upper = family.lower[place], family.upper[place]
    if units.squares is None or lower[0] < upper[0]:
        return None
    free = lower[1:] < upper[1:]
    for read in (free, free | (lower[1:] != 0.0)) if free.any() else ():
        at = np.flatnonzero(read)
        squares, mean = units.squares[np.ix_(at, at)], units.centre[at]
        unit = np.sqrt(np.diag(squares)) + np.finfo(float).tiny
        inverse = np.linalg.pinv(squares / np.outer(unit, unit), _SINGULAR, hermitian=True)
        parts = inverse @ (mean / unit)
        if abs(1.0 - mean @ (parts / unit)) <= _SUM:
            constant = np.zeros(place.size)
            constant[1 + at] = np.where(np.abs(parts) > _PART, parts / unit, 0.0)
            return constant if constant[1:][free].any() else None
    return None


def variances(family: Family) -> tuple[IntArray, IntArray]:
    """Positions of the logarithms of variances of normal laws, and the channel of each."""
    channels = [
        c
        for c, channel in enumerate(family.channels)
        if channel.log and channel.response and family.plain_name(c) == "nu"
    ]
    logs, first = np.unique(family.index[:, channels], return_index=True)
    return logs, np.tile(np.array(channels, dtype=np.int64), family.n_experts)[first]


def _mass_and_slopes(family: Family) -> tuple[int | None, int | None]:
    """The channels of mass and slopes of a score that has its mass as intercept; None if not so."""
    names = [channel.intercept for channel in family.channels]
    for c, channel in enumerate(family.channels):
        is_moved = {family.gate.mass, channel.slope} <= {*family.gate.translations}
        if is_moved and channel.intercept != family.gate.mass:
            return names.index(str(family.gate.mass)), c
    return None, None


def _absent(family: Family) -> np.ndarray:
    """Which coefficients (P,) an expert, or a node of the gate, does not have."""
    absent = np.zeros(family.n_params, dtype=bool)
    absent[family.padding_positions] = True
    if family.likelihood.choices is not None:
        absent[family.index[:, -1]] = True  # the numbers of the experts' likelihoods
    for one in family.gate.constraints(family.n_experts):
        if one.value is not None:
            absent[family.meant(one)] = True
    return absent


def _levels(family: Family, units: DataUnits) -> FloatArray:
    """The predictor (R,) at the mean of each response that has a unit; 0 of others."""
    levels: list[float] = []
    for law, level in zip(family.likelihood.laws, np.ravel(units.level), strict=True):
        has_unit = law.support is None and not law.counts and law.ends[1] == np.inf
        linked = law.link if has_unit else None
        levels.append(float(level) * has_unit if linked is None else float(linked(level)))
    return np.array(levels)


def _moves(
    units: DataUnits, width: int, constants: list[FloatArray | None]
) -> tuple[FloatArray, np.ndarray]:
    """Value of a predictor at the centre, and its moves, from its coefficients (width,).

    And which of these each is about.  Where levels of a factor take the place of the intercept,
    they are the values of the predictor at each level and at the centre of the other inputs.
    """
    moves, reads = np.eye(width), np.eye(width, dtype=bool)
    reads[0] = True
    if width > 1:
        moves[0, 1:] = units.centre
        moves[1:, 1:] = np.diag(units.scale)
        constant, *more = constants
        if constant is not None and all(
            each is not None and np.array_equal(each, constant) for each in more
        ):
            others = np.where(constant == 0.0, moves[0], 0.0)
            moves[1:] += np.outer(units.scale * constant[1:], others)
            reads[constant != 0.0] = True
    moves[0] /= _INTERCEPTS
    return moves, reads
