"""Typical sizes of the predictors of a problem, and what start rules make of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats
from moestat.model.family import Family
from moestat.solvers import GaussNewtonBFGS, Newton
from moestat.solvers.driver import Cores, Unfinished, attempt, drive
from moestat.solvers.problem import Problem
from moestat.solvers.rules import ZERO_CURVATURE

_EFFECT = 0.5
"""Standard deviation of a random effect where starts are drawn, in that of the response."""


class StartRule(Protocol):
    """A rule that draws starting values for a problem.

    A rule with `in_user_units` draws parameters in the user's units, from data in these units.
    """

    in_user_units: ClassVar[bool]

    @property
    def name(self) -> str:
        """Name of its starts in the certificate."""
        ...

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P), not yet put into the box."""
        ...


def draw_starts(rule: StartRule, problem: Problem, rng: np.random.Generator) -> FloatArray:
    """The starting values (count, P) of a rule, checked, because users may write rules."""
    points, P = rule.draw(problem, rng), problem.family.n_params
    starts = as_floats(f"starts: what rule {rule.name!r} draws", points, (None, P))
    if not starts.size:
        raise ValueError(f"starts: rule {rule.name!r} draws no start")
    return starts


@dataclass(frozen=True)
class Scale:
    """Typical sizes of the predictors of a problem: where starts are drawn."""

    problem: Problem

    @cached_property
    def inputs(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each input, 1 for a constant one, shapes (d,)."""
        data, d = self.problem.data, self.problem.family.n_features
        return data.mean[:d], _unit(data.mean[:d], data.deviation[:d])

    @property
    def standardised(self) -> FloatArray:
        """Inputs (d, n) with mean 0 and standard deviation 1; constant ones are 0."""
        centre, spread = self.inputs
        return (self.problem.data.X - centre[:, None]) / spread[:, None]

    @cached_property
    def features(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of inputs and products, shapes (d + d (d + 1) / 2,).

        The latter is 1 for constant ones.
        """
        X, weight = self.problem.data.X, self.problem.data.weight
        rows, columns = np.triu_indices(X.shape[0])
        scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
        pairs = zip(scale, rows, columns, strict=True)
        moments = []
        for feature in (*X, *(s * X[i] * X[j] for s, i, j in pairs)):
            mean = np.average(feature, weights=weight)
            moments.append((mean, np.sqrt(np.average((feature - mean) ** 2, weights=weight))))
        centre, spread = np.array(moments).T
        return centre, _unit(centre, spread)

    @property
    def response(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each continuous response (R,); 0 and 1 for classes.

        They are computed once for the data of a problem: every rule asks for them.
        """
        likelihood = self.problem.family.likelihood
        return self.problem.data.remember("response", likelihood, self._response)

    def _response(self) -> tuple[FloatArray, FloatArray]:
        weight, y = self.problem.data.weight, self.levels
        share = weight / weight.sum()
        centre = y @ share
        deviation = np.sqrt((y - centre[:, None]) ** 2 @ share)
        varies = self.numbers & (deviation > 0.0)  # counts may all be alike
        return np.where(self.numbers, centre, 0.0), np.where(varies, deviation, 1.0)

    @cached_property
    def levels(self) -> FloatArray:
        """Responses as numbers (R, n)."""
        return np.atleast_2d(self.problem.family.likelihood.level(self.problem.data.y))

    @cached_property
    def numbers(self) -> np.ndarray:
        """Which of the responses are numbers (R,), and not classes."""
        return np.array([law.support is None for law in self.problem.family.likelihood.laws])

    @property
    def places(self) -> FloatArray:
        """Those of the responses that are numbers, with mean 0 and standard deviation 1."""
        centre, deviation = self.response
        at = self.numbers
        return (self.levels[at] - centre[at, None]) / deviation[at, None]

    @cached_property
    def predictor(self) -> tuple[FloatArray, FloatArray]:
        """Typical predictor of each mean (R,), and the unit in which predictors differ."""
        centre, unit = (values.copy() for values in self.response)
        for r, law in enumerate(self.problem.family.likelihood.laws):
            if law.link is not None:
                centre[r], unit[r] = law.link(max(centre[r], np.finfo(float).tiny)), 1.0
        return centre, unit

    @cached_property
    def dependences(self) -> dict[str, float]:
        """Dependence of each response on earlier ones in all rows, by block.

        Row i of the factor of the correlation matrix is in proportion to ``(w_i1, ..., 1)``.  From
        independent responses a climb to nearly equal ones would be long, along a curved ridge.
        """
        if not (pairs := self.problem.family.likelihood.pairs):
            return {}
        share = self.problem.data.weight / self.problem.data.weight.sum()
        _, r = np.linalg.qr((self.places * np.sqrt(share)).T)
        factor, found = r.T * np.sign(np.diag(r)), {}
        for i, names in enumerate(pairs.values()):
            rest = max(abs(float(factor[i, i])), np.finfo(float).eps)
            found |= {name: float(factor[i, j]) / rest for j, name in enumerate(names)}
        return found

    def centre(self, family: Family) -> FloatArray:
        """Middle of the parameters (P,): places in x, means and logarithms of variances."""
        theta = np.zeros(family.n_params)
        mean, deviation = (values[family.response_of] for values in self.predictor)
        for (_, c), first in np.ndenumerate(family.index):
            channel = family.channels[c]
            if channel.reads is not None:
                # A column of a factor: at 0 the likelihood is even in it, and has no slope.
                f = channel.reads[0]
                unit = self.inputs[1][f - 1] if f else 1.0
                theta[first + f] = _EFFECT * deviation[c] / unit
            elif channel.axis is not None:
                theta[first] = self.inputs[0][channel.axis]
            elif channel.intercept in self.dependences:
                w = self.dependences[channel.intercept]
                theta[first] = np.clip(w, family.lower[first], family.upper[first])
            elif channel.intercept in family.likelihood.shapes:
                theta[first] = 0.5 * (family.lower[first] + family.upper[first])
            elif channel.log:
                theta[first] = 2.0 * np.log(deviation[c])
            elif channel.response and channel.slope is not None:
                theta[first] = mean[c]
        return theta

    def noise(self, family: Family, rng: np.random.Generator, count: int = 1) -> FloatArray:
        """Parameters (count, P) of random predictors around 0.

        Each channel is standard normal at the centre of the inputs and changes by a normal
        amount, of standard deviation 2, per standard deviation of each input, in units of the
        response where it has them.  A quadratic channel changes so for all its features together.
        """
        normal = rng.standard_normal((count, family.n_experts * int(family.width.sum())))
        theta = np.empty((count, family.n_params))
        quadratic = any(channel.products is not None for channel in family.channels)
        centre, spread = self.features if quadratic else self.inputs
        used = 0
        units = self.predictor[1][family.response_of]
        for (_, c), first in np.ndenumerate(family.index):
            channel, last = family.channels[c], family.width[c] - 1
            unit = units[c] if channel.response and not channel.log else 1.0
            at = slice(family.offset[c] - 1, family.offset[c] - 1 + last)
            slope = unit * normal[:, used : used + last] * 2.0 / spread[at]
            if channel.products is not None:
                slope /= np.sqrt(last)
            theta[:, first] = unit * normal[:, used + last] - slope @ centre[at]
            theta[:, first + 1 : first + 1 + last] = slope
            if channel.axis is not None:
                theta[:, first] *= 2.0 * spread[channel.axis]
            used += last + 1
        return theta


def _unit(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Standard deviations, 1 in place of those that are 0 to the rounding of the mean."""
    return np.where(deviation > ZERO_CURVATURE * np.abs(mean), deviation, 1.0)


@door()
def predictor_noise(problem: Problem, rng: np.random.Generator, count: int) -> FloatArray:
    """Parameters (count, P) of random predictors around 0, in the units of a problem."""
    return Scale(problem).noise(problem.family, rng, count)


@door()
def one_expert(problem: Problem, rng: np.random.Generator | None = None) -> FloatArray:
    """Parameters (P,) of which every atom is the one-expert fit.

    Random numbers are for experts whose coefficients 0 are a saddle point.
    """
    family, scale = problem.family, Scale(problem)
    known = problem.data.memory.get("one expert")
    if known is not None and known[0] is family:
        return known[1]
    single = Problem(family.alone, problem.data)
    origin = scale.centre(single.family)
    if single.family.expert.block is not None:
        origin += scale.noise(single.family, rng or np.random.default_rng(0))[0]
    origin = single.family.feasible(origin)
    if family.is_regression:
        (solution,) = drive([GaussNewtonBFGS().steps(single, origin)], [single], threads=1)
        theta = solution.theta
    else:
        (end,) = attempt([Newton().climb(single, origin)], [single], Cores(1))
        if isinstance(end, Exception):
            # Out of the range of float64: starts about the origin may be nearer to a maximum.
            if not isinstance(end, np.linalg.LinAlgError):
                raise end
            theta = origin
        else:
            theta = (end if isinstance(end, Unfinished) else end[0]).theta
    atom, shared = single.family.split(theta)
    centre = family.join(np.repeat(atom, family.n_experts, axis=0), shared)
    if single.family.expert.block is None:
        problem.data.memory["one expert"] = family, centre
    return centre


@door()
def into_box(family: Family, starts: FloatArray) -> FloatArray:
    """Starting values (count, P) inside bounds and constraints of the family.

    Each is contiguous: for a strided vector every loop would be compiled a second time.
    """
    inside = family.feasible(family.pin(starts).reshape(-1, family.n_params))
    return np.ascontiguousarray(inside)
