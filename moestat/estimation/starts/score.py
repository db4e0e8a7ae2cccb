"""Starts at a smaller fit with a further atom, steered by the directional derivative."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.starts.given import CopyStarts
from moestat.estimation.starts.planes import planes_through
from moestat.estimation.starts.scale import Scale, into_box
from moestat.model.family import Family
from moestat.solvers.problem import Problem
from moestat.solvers.rows import Rows

_CANDIDATES = 10
"""Number of atoms whose gains are compared, for each start: five times as many do no better."""
_SPREAD = (0.03, 2.0)
"""Smallest and largest distance of a candidate from an atom of the fit, in units of random
predictors: from copies of it to atoms that have nothing to do with it."""
_NARROWEST = 0.05
"""Smallest standard deviation of a candidate, in that of the response: narrower experts lie on a
few rows, where the likelihood has no maximum but the border of the box."""
_ALIKE = 0.8
"""Correlation of the directions of two atoms from which on climbs from them end alike: with .95
fourteen starts reach the best end known in fewer cells."""
_FURTHER = 4
"""Number of candidates whose directions are compared, for each start, the highest first."""
_LEAST = 1e-3
"""Part of a direction that the scores leave, below which rounding decides: it is taken as this."""
_STEP = 1e-6
"""Step of differences, in units of a parameter: the root of the rounding of a log-density."""
_CELLS = 1 << 20
"""Atoms times rows of one evaluation: some tens of megabytes."""


@dataclass(frozen=True)
class ScoreProcess:
    """How the log-likelihood of a fit rises in the direction of a further atom.

    An atom eta of mass e with log-score a and log-density l, beside atoms whose log-sum-exps are A
    of the scores and B of scores and log-densities, changes the log-likelihood at the rate

        D(eta) = sum_t w_t d_t,  d_t = exp(a + l - B) - exp(a - A)

    at e = 0.  What it may gain when the other atoms give way is ``T^2 / 2``, where T = max(D, 0) /
    |d| in the norm ``sum w d^2`` with d less its projection on the scores of the fit.

    Parameters
    ----------
    family : Family
        The family of the fit, with k experts.
    theta : ndarray of shape (P,)
        Its parameters.
    data : Rows
        The rows of the fit.

    Notes
    -----
    The derivative is that of Lindsay (1983), T the score process of Dacunha-Castelle and Gassiat
    (1999), whose supremum over eta is the limit of the likelihood ratio.
    """

    family: Family
    theta: FloatArray = field(repr=False)
    data: Rows = field(repr=False)

    @staticmethod
    def supports(family: Family) -> bool:
        """Whether its atoms have densities and masses, and any number of them may stand together.

        Not where their laws or inputs differ, in a tree, or where not all atoms are active.
        """
        alike = family.likelihood.choices is None and family.own_inputs is None
        free = family.mass_column is not None and not family.gate.constraints(family.n_experts)
        return alike and free and not family.is_regression and family.gate.n_active is None

    @cached_property
    def _tangent(self) -> FloatArray:
        """Orthonormal directions (r, n) that the scores of the fit span, by the root of weights.

        Central differences do: of a direction two digits are enough.
        """
        family, data = self.family, self.data
        scores = list[FloatArray]()
        for j in np.flatnonzero(family.lower < family.upper):
            step = np.zeros_like(self.theta)
            step[j] = _STEP * max(1.0, abs(self.theta[j]))
            up, down = (family.rowwise(self.theta + s, data.X, data.y)[2] for s in (step, -step))
            scores.append((up - down) * np.sqrt(data.weight))
        rows = np.array(scores).reshape(-1, data.size)
        size = np.sqrt(np.sum(rows**2, axis=1))
        rows = rows[np.isfinite(size) & (size > 0.0)]
        rows /= np.sqrt(np.sum(rows**2, axis=1))[:, None]
        values, vectors = np.linalg.eigh(rows @ rows.T)
        real = values > _STEP * values.max(initial=0.0)
        return (vectors[:, real] / np.sqrt(values[real])).T @ rows

    def directions(self, atoms: FloatArray) -> FloatArray:
        """The changes d (m, n) of the log-densities of all rows, for atoms (m, p) of mass 0.

        They are by the mass that the atoms have; a row out of the range of float64 has 0.
        """
        family, k = self.family, self.family.n_experts
        own, shared = family.split(self.theta)
        together = family.with_experts(k + len(atoms))
        theta = together.join(np.vstack([own, atoms]), shared)
        prior, posterior, _ = together.rowwise(theta, self.data.X, self.data.y)
        with np.errstate(all="ignore"):
            d = posterior[k:] * (1.0 / posterior[:k].sum(axis=0))
            d -= prior[k:] * (1.0 / prior[:k].sum(axis=0))
        d[~np.isfinite(d)] = 0.0
        return d

    def judge(self, atoms: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gains (m,) of atoms (m, p), steps to them (m,), and unit directions (m, n).

        The gain is ``T^2 / 2``, the step ``D / |d|^2`` the mass, in units of the atom's own, after
        one step of Newton's method from 0, and the direction that of T, by the root of weights.
        """
        root = np.sqrt(self.data.weight)
        d = self.directions(atoms)
        d *= root
        size = np.maximum(np.sqrt(np.einsum("in,in->i", d, d)), np.finfo(float).tiny)
        d /= size[:, None]
        step = np.maximum(d @ root, 0.0) / size
        along = d @ self._tangent.T
        d -= along @ self._tangent
        d /= np.sqrt(np.maximum(1.0 - np.sum(along**2, axis=1), _LEAST))[:, None]
        return 0.5 * np.maximum(d @ root, 0.0) ** 2, step, d

    def gains(self, atoms: FloatArray) -> FloatArray:
        """The gains ``T^2 / 2`` of any number of atoms (m, p), shape (m,)."""
        count = max(1, _CELLS // self.data.size)
        parts = [self.judge(atoms[i : i + count])[0] for i in range(0, len(atoms), count)]
        return np.concatenate(parts)


@dataclass(frozen=True)
class ScoreStarts(CopyStarts):
    """A fit with fewer experts, and further atoms in whose directions the likelihood rises most.

    The atoms are chosen among candidates by their gains (`ScoreProcess`), the highest first, and so
    that no two directions are alike.  Gate and expert of a candidate are each near those of an atom
    of the fit, or random; a random expert of a continuous response is a plane through random rows,
    with a random variance.  If more than one atom is missing, the others are random ones of those
    chosen.  Where atoms cannot be added one by one, the starts are those of `CopyStarts`.

    Parameters
    ----------
    family, theta, count
        As of `CopyStarts`.

    Notes
    -----
    For mixtures without a gate, adding the atom of the largest derivative is the vertex direction
    method, as of Lindsay (1983).
    """

    name: str = "score"

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family = problem.family
        if not ScoreProcess.supports(family):
            return super().draw(problem, rng)
        process = ScoreProcess(self.family, self.theta, problem.data)
        own, shared = self.family.split(self.theta)
        found = candidates(problem, own, _CANDIDATES * self.count, rng)
        chosen = choose(process, found, self.count)
        starts = []
        for atom in chosen:
            more = family.n_experts - len(own) - 1
            others = chosen[rng.integers(len(chosen), size=more)]
            starts.append(family.join(np.vstack([atom[None], others, own]), shared))
        return into_box(family, np.array(starts))


def choose(process: ScoreProcess, atoms: FloatArray, count: int) -> FloatArray:
    """Atoms (count, p) of the largest gains whose directions differ, with the masses of one step.

    If too few of those that are looked at differ, the highest of the others fill up.
    """
    order = np.argsort(-process.gains(atoms), kind="stable")[: _FURTHER * count]
    kept, left, steps = list[int](), list[int](), dict[int, float]()
    directions = np.empty((count, process.data.size))
    for batch in np.split(order, range(count, len(order), count)):
        _, step, direction = process.judge(atoms[batch])
        for i, atom in enumerate(batch):
            n, steps[atom] = len(kept), step[i]
            if n == count or np.any(directions[:n] @ direction[i] > _ALIKE):
                left.append(atom)
            else:
                directions[n] = direction[i]
                kept.append(atom)
        if len(kept) == count:
            break
    kept = [*kept, *left][:count]
    chosen = atoms[kept]
    mass = [steps[atom] for atom in kept]
    chosen[:, process.family.mass_column] += np.log(np.maximum(mass, np.finfo(float).tiny))
    return chosen


def candidates(
    problem: Problem, own: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Atoms (count, p) in the box, whose gate and expert are each near one of own (k, p) or not."""
    family, scale = problem.family.alone, Scale(problem)
    p = family.n_atom_params
    noise = scale.noise(family, rng, 2 * count)[:, :p]
    far = scale.centre(family)[:p] + noise[:count]
    _draw_planes(far, family, scale, rng)
    size = np.exp(rng.uniform(np.log(_SPREAD[0]), np.log(_SPREAD[1]), (count, 1)))
    near = own[rng.integers(len(own), size=count)] + size * noise[count:]
    is_expert = np.arange(p) >= family.index[0, family.first_expert_channel]
    near_gate, near_expert = rng.random((2, count, 1)) < 0.5
    atoms = np.where(np.where(is_expert, near_expert, near_gate), near, far)
    lower, upper = (
        problem.family.split(bound)[0][0] for bound in (problem.family.lower, problem.family.upper)
    )
    return np.clip(atoms, lower, upper)


def _draw_planes(atoms: FloatArray, family: Family, scale: Scale, rng: np.random.Generator) -> None:
    """Let linear experts of atoms (m, p) be planes through random rows, with random variances."""
    data, laws = scale.problem.data, family.likelihood.laws
    centre, spread = scale.inputs
    inputs = np.vstack([np.ones(data.size), scale.standardised]).T
    rows = rng.integers(data.size, size=(len(atoms), inputs.shape[1]))
    for c, channel in enumerate(family.channels):
        first, width, r = family.index[0, c], family.width[c], family.response_of[c]
        own = channel.response and not channel.shared and channel.reads is None
        if not own or not scale.numbers[r]:
            continue
        if channel.log:
            low = 2.0 * np.log(_NARROWEST)
            variance = 2.0 * np.log(scale.response[1][r])
            atoms[:, first] = variance + rng.uniform(low, 0.0, len(atoms))
        elif width == inputs.shape[1] and laws[r].link is None and family.expert.block is None:
            response = scale.levels[r][rows][..., None].astype(np.float64)
            slopes = planes_through(inputs[rows], response)[..., 0]
            atoms[:, first + 1 : first + width] = slopes[:, 1:] / spread
            atoms[:, first] = slopes[:, 0] - (slopes[:, 1:] / spread) @ centre
