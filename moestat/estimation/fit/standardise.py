"""Fits in standardised coordinates: the data, the box of the parameters, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import listed
from moestat.estimation.data.priors import Prior, data_units, with_prior
from moestat.estimation.data.rounding import least_variances
from moestat.estimation.fit.fitted import StandardFit
from moestat.estimation.fit.identified import channel_metric
from moestat.estimation.rules import ROUNDING
from moestat.estimation.starts import StartRule, draw_starts
from moestat.model.constraints import Constraint
from moestat.model.family import Family
from moestat.model.members import Channel
from moestat.model.units import Coordinates, DataUnits, closed_part
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.rules import EPSILON
from moestat.solvers.solution import Solution

__all__ = ["LEAST_VARIANCE", "Standardised", "data_units", "prepare", "standardise"]

_WIDER = 1e3
"""Width of the default box, as a multiple of the compact box of the papers."""

LEAST_VARIANCE = 1e-6
"""Smallest variance of an atom, in residual variances of the linear regression of y on x."""

_FINEST = 0.5 * EPSILON
"""Smallest share of the variance of y that float64 leaves to residuals."""


_NEARLY_EQUAL = 1e-10
"""Smallest share of its variance that a response may keep, given earlier ones: with 2e-11 climbs of
two experts end 30 below the maximum, with 2e-9 at it, to 1e-3."""


def _residual_share(data: Rows) -> FloatArray:
    """Share of the variance of y, or of each of several (R,), that its regression on x leaves."""
    units, covariance = data_units(data), data.covariance
    deviation = np.append(units.scale, units.unit)
    correlation = covariance / np.outer(deviation, deviation)
    d = units.scale.size
    inputs, response = correlation[:d, :d], correlation[:d, d:]
    slope = np.linalg.lstsq(inputs, response, rcond=None)[0]
    return np.maximum(0.0, np.diag(correlation)[d:] - np.sum(response * slope, axis=0))


def _pair_bounds(family: Family, data: Rows) -> dict[str, float]:
    """Bound of each dependence of a response on earlier ones, by block.

    A response keeps at least a millionth of the variance that linear regression on the inputs and
    the earlier responses leaves: as for a variance, the bound follows the data.
    """
    if not family.likelihood.pairs:
        return {}
    covariance = data.covariance
    d = len(covariance) - len(family.likelihood.parts)
    deviation = np.sqrt(np.diag(covariance))
    deviation[deviation == 0.0] = 1.0
    correlation = covariance / np.outer(deviation, deviation)

    def left(r: int, others: int) -> float:
        """Share of the variance of response r that the first of the other columns leave."""
        known, own = correlation[:others, :others], correlation[:others, d + r]
        return float(1.0 - own @ np.linalg.lstsq(known, own, rcond=None)[0])

    bounds: dict[str, float] = {}
    parts = [one.name for one in family.likelihood.parts]
    for r, names in enumerate(family.likelihood.pairs.values()):
        share = max(left(r, d + r), _FINEST) / max(left(r, d), _FINEST)
        if names and share < _NEARLY_EQUAL and left(r, d) > _FINEST:
            raise ValueError(
                f"y: response {parts[r]!r} is a linear function of {listed(parts[:r])} and the"
                f" inputs, up to a share of {share:.1g} of its variance: their likelihood has no"
                f" maximum that float64 can find. Leave {parts[r]!r} out, or give what differs"
                f" in place of it, such as {parts[r]} - {parts[r - 1]}: the model is the same"
            )
        bounds |= dict.fromkeys(names, float(1.0 / np.sqrt(LEAST_VARIANCE * min(share, 1.0))))
    return bounds


def _default_box(family: Family, data: Rows, units: DataUnits) -> dict[str, tuple[Any, Any]]:
    """The compact box of the family about the data: in standard deviations, and wider.

    Data that are not standardised, for want of closure, have wider bounds in proportion: `units`
    are those of the data as they are fitted.
    """
    linked = np.array([law.link is not None for law in family.likelihood.laws])
    levels = np.where(linked, 0.0, units.level)[family.response_of]
    widths = np.where(linked, 1.0, units.unit)[family.response_of]
    steepness = 1.0 / units.scale
    reach = 1.0 + float(np.sum(np.abs(units.centre) / units.scale))
    powers = {**family.expert.units.powers, **family.likelihood.units.powers}
    box: dict[str, tuple[Any, Any]] = {}
    pairs = _pair_bounds(family, data)
    for c, channel in enumerate(family.channels):
        name, unit, chosen = channel.intercept, widths[c], family.likelihood.set_by_options
        size = _WIDER * unit ** powers.get(name, 0.0)
        low, high = family.box[name]
        if name in pairs:
            box[name] = (low, high) if name in family.given else (-pairs[name], pairs[name])
        elif name in (*chosen, *family.likelihood.shapes):
            box[name] = (low, high)
        elif channel.log:
            residual = _residual_share(data)[family.response_of[c]]
            floor = max(LEAST_VARIANCE * residual, _FINEST) * unit**2
            box[name] = (floor, high * unit**2)
            if linked.flat[family.response_of[c]] and name in powers:
                # Of a response with a link the mean is its unit.
                level = abs(np.ravel(units.level)[family.response_of[c]]) ** powers[name]
                box[name] = (low * level, high * level)
        elif channel.axis is not None:
            length = size * float(units.scale.max())
            box[name] = (units.centre + low * length, units.centre + high * length)
        elif name in family.gate.units.lengths:
            length = float(units.scale.max())
            box[name] = (low * size * length, high * size * length)
            if low > 0.0:
                box[name] = (low / _WIDER * length, high * size * length)
        elif low > 0.0:
            box[name] = (low / _WIDER, high * size)
        else:
            wide = size * (reach if channel.slope or channel.products else 1.0)
            level = abs(levels[c]) if family.expert.units.is_level(name) else 0.0
            box[name] = (low * wide - level, high * wide + level)
        if channel.slope is not None:
            low, high = family.box[channel.slope]
            box[channel.slope] = (low * size * steepness, high * size * steepness)
        if channel.products is not None:
            low, high = family.box[channel.products]
            rows, columns = np.triu_indices(units.scale.size)
            steep = size * steepness[rows] * steepness[columns]
            box[channel.products] = (low * steep, high * steep)
    return box


@dataclass(frozen=True)
class Standardised:
    """A data set in standardised coordinates."""

    original: Problem  # family and data in the units of the user
    # the family, with the box of a fit to data, and the data in standardised units
    problem: Problem = field(repr=False)
    coordinates: Coordinates = field(repr=False)  # how packed parameters change

    def draw(self, rule: StartRule, rng: np.random.Generator) -> FloatArray:
        """Starting values (count, P); a rule that knows parameters has them in the user's units."""
        if not getattr(rule, "in_user_units", True):
            return draw_starts(rule, self.problem, rng)
        return np.array([self.coordinates.inward(p) for p in draw_starts(rule, self.original, rng)])

    def describe(self, solution: Solution) -> StandardFit:
        """A solution with what it takes to understand it."""
        metric = channel_metric(self.problem, solution.theta)
        penalty, log_prior = None, 0.0
        if isinstance(self.problem, PenalisedProblem):
            penalty = self.problem.penalty.hessian(solution.theta)
            log_prior = -self.problem.penalty.value(solution.theta)
        return StandardFit(
            self.problem.family,
            solution,
            self.coordinates,
            metric,
            penalty,
            log_prior,
            tuple(sorted(self.problem.resolved)),
        )

    @property
    def log_units(self) -> float:
        """The log-likelihood in standardised units minus that in the user's."""
        return float(self.original.data.weight.sum()) * float(
            np.sum(np.log(self.coordinates.units.unit))
        )

    def outward(self, solution: Solution) -> Solution:
        """A solution in the units of the user."""
        coordinates, log_units = self.coordinates, self.log_units
        return replace(
            solution,
            theta=coordinates.outward(solution.theta),
            log_likelihood=solution.log_likelihood - log_units,
            information=coordinates.information(solution.information),
            path=tuple(value - log_units for value in solution.path),
        )


def standardise(original: Problem, least: Mapping[str, float] | None = None) -> Standardised:
    """A data set in the coordinates in which it is fitted.

    Inputs and a continuous response have mean 0 and standard deviation 1 as far as the family is
    closed under such maps, so that the box, the noise of starts and the smallest variances mean the
    same in any units.  Blocks that the user has bounded keep these bounds; so that they stay
    a box, inputs are not shifted then when the intercept of a bounded slope would follow.  The
    `least` variances, by block, are those that steps of the responses support, in the user's units.
    """
    family, data = original.family, original.data
    known = data_units(data)
    units = closed_part(family, known)
    if any(
        {channel.intercept, channel.slope, channel.products} & family.given
        or _is_bound_alone(family, channel)
        for channel in family.channels
        if channel.slope is not None or channel.products is not None
    ):
        units = replace(units, centre=np.zeros_like(units.centre))
    coordinates = Coordinates(family, units)
    inner = data.convert(units)
    box, resolved = _default_box(family, data, known.compose(units)), set[str]()
    for c, channel in enumerate(family.channels):
        name, unit = channel.intercept, float(np.ravel(units.unit)[family.response_of[c]])
        if name not in (least or {}) or name in family.given:
            continue
        low, high = box[name]
        raised = min((least or {})[name] / unit**2, ROUNDING.share * low / LEAST_VARIANCE)
        if raised > low:
            box[name] = (raised, high)
            resolved.add(name)
    if family.given:
        scale = np.diag(coordinates.matrix)
        lower = (family.lower - coordinates.shift) / scale
        upper = (family.upper - coordinates.shift) / scale
        logs = {channel.intercept for channel in family.channels if channel.log}
        for name in family.given:
            at = family.blocks[name][:1] if family.blocks[name].ndim else family.blocks[name]
            low, high = lower[at], upper[at]
            box[name] = (np.exp(low), np.exp(high)) if name in logs else (low, high)
    offset = family.offset_input
    if offset is not None:
        at = family.offset_positions[0]
        offset = offset[0], offset[1] / float(coordinates.matrix[at, at])
    constraints = _inward(family, coordinates)
    fitted_family = replace(family, box=box, offset_input=offset, constraints=constraints)
    problem = Problem(fitted_family, inner, resolved=frozenset(resolved))
    return Standardised(original, problem, coordinates)


def _is_bound_alone(family: Family, channel: Channel) -> bool:
    """Whether intercepts are equal, or known, where the slopes are not equal, or 0."""
    return any(
        replace(one, block=channel.slope, value=None if one.value is None else 0.0)
        not in family.constraints
        for one in family.constraints
        if one.block == channel.intercept
    )


def _inward(family: Family, coordinates: Coordinates) -> tuple[Constraint, ...]:
    """The constraints in the coordinates of a fit, in which coefficients have other values."""
    matrix, shift = coordinates.matrix, coordinates.shift
    inward: list[Constraint] = []
    for one in family.constraints:
        if one.value is None:
            inward.append(one)
            continue
        log = any(c.log for c in family.channels if c.intercept == one.block)
        packed = np.log(one.value) if log else one.value
        for single in family.single(one):
            at = int(family.meant(single).flat[0])
            value = (packed - shift[at]) / matrix[at, at]
            inward.append(replace(single, value=float(np.exp(value) if log else value)))
    return tuple(inward)


def prepare(
    problem: Problem, rows: Rows, steps: tuple[float, ...], prior: Prior | None
) -> Standardised:
    """What a solver works on: the problem in units of its data, with the prior density.

    Bounds of variances follow from `rows` in memory, all or a sample, and the steps of responses.
    """
    standard = standardise(problem, least_variances(problem.family, rows, steps))
    return replace(standard, problem=with_prior(standard.problem, prior))
