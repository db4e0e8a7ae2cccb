"""Search among the smooth pieces of a likelihood that jumps: gates over the K largest scores.

The log-likelihood of a top-K gate jumps where a sample changes its set of active atoms, and is
smooth in between.  Such places are ties of two scores, so a smooth piece is, to first order, a
polyhedron in parameter space with the ties as facets, and the maximum is found on the edge of one:
within a piece by a Newton step that respects the ties, from piece to piece by line searches that
know where the jumps are.

Only the samples with a tie nearby, about ``sqrt(n)`` of them, need an exact look.  The sum of all
others is replaced by its quadratic model, so that one probe costs microseconds at any n.  What a
probe predicts is checked on all of the data before the search moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import positive_int, real_in
from moestat.kernels.records import Data, Sums
from moestat.model.constraints import tied_basis
from moestat.solvers.certificate import Certificate, certificate_of
from moestat.solvers.needs import Needs
from moestat.solvers.newton import Newton
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT, JUMP_SEARCH, NEGLIGIBLE, TRUST, WORK, ZERO_CURVATURE
from moestat.solvers.solution import Solution
from moestat.solvers.trust_region.newton_loop import newton_steps
from moestat.solvers.trust_region.region import free_coordinates

_MARGIN = NEGLIGIBLE * JUMP_SEARCH.shortest
"""Distance to a jump at which a step ends."""

Probe = tuple[float, FloatArray]
"""A gain of the model and the step (F,) that it is predicted for."""


@dataclass(frozen=True)
class _Ties:
    """Pairs of scores that a step u (F,) of bounded length can make equal."""

    gap: FloatArray
    """Score of the active atom minus that of the inactive one; shape (m,)."""
    normal: FloatArray
    """Change of the gap with u; shape (m, F)."""
    jump: FloatArray
    """Change of the sample's weighted log-density when the two change places; shape (m,)."""
    trend: FloatArray
    """Change of the jump with u; shape (m, F)."""
    rows: IntArray
    """Samples with such a pair; shape (r,)."""


class _Model:
    """The log-likelihood around a centre: exact for samples near a tie, quadratic for the others.

    A step is ``theta = centre + axes u`` with u in standard errors of the smooth piece.
    """

    def __init__(
        self, problem: Problem, data: Rows, theta: FloatArray, current: Evaluation, radius: float
    ) -> None:
        family = problem.family
        self.problem = problem
        self.data = data
        self.theta = theta
        self.radius = radius
        self.lower, self.upper = family.box_at(theta)
        at = free_coordinates(theta, current.gradient, self.lower, self.upper)
        # Steps keep coefficients equal that are equal by constraint, of which all are free or none.
        basis = tied_basis(theta.size, family.ties)
        basis = basis[:, (basis[at] != 0.0).any(axis=0)]
        metric = basis.T @ problem.metric(theta) @ basis
        values, vectors = scipy.linalg.eigh(basis.T @ current.hessian @ basis, metric)
        self.values = values
        self.slope = float(np.linalg.norm(vectors.T @ (basis.T @ current.gradient)))
        size = np.abs(values)
        # Where the likelihood is flat, a predictor known to 10 / sqrt(n) sets the scale.
        scale = np.maximum(size, JUMP_SEARCH.flattest * data.weight.sum())
        self.axes = basis @ (vectors / np.sqrt(scale))
        self.gradient = self.axes.T @ current.gradient
        self.curvature = values / scale
        flat = size <= ZERO_CURVATURE * size.max(initial=0.0)
        self.stiffness = np.where(flat, 1.0, size / scale)
        self.ties = self._find_ties()
        length = np.linalg.norm(self.ties.normal, axis=1)
        self.normal, self.distance = self.ties.normal / length[:, None], self.ties.gap / length
        rows = self.ties.rows
        self.X = np.ascontiguousarray(data.X[:, rows])
        self.y, self.weight = data.y[rows].copy(), data.weight[rows]
        score, hessian = np.empty(theta.size), np.empty((theta.size, theta.size))
        self.base = self._exact(theta, 2, score, hessian)
        self.smooth_gradient = current.gradient + score
        self.smooth_hessian = current.hessian + hessian

    def _exact(
        self, theta: FloatArray, order: int, score: FloatArray, hessian: FloatArray
    ) -> float:
        """Log-likelihood of the samples near a tie."""
        family = self.problem.family
        self.problem.passes += self.y.size / self.problem.data.size
        data = Data(self.X, self.y, self.weight, np.empty((0, 0)))
        sums = Sums(score, hessian, np.empty((0, 0)))
        return family.loops.log_likelihood(theta, family.coefficients, data, order, sums)

    def place(self, u: FloatArray) -> FloatArray:
        """Parameters (P,) of the step u, inside the box."""
        return np.clip(self.theta + self.axes @ u, self.lower, self.upper)

    def gain(self, u: FloatArray) -> float:
        """Log-likelihood that the step u gains."""
        theta = self.place(u)
        step = theta - self.theta
        smooth = step @ self.smooth_gradient + 0.5 * step @ self.smooth_hessian @ step
        if not self.y.size:
            return -float(smooth)
        exact = self._exact(theta, 0, np.empty(0), np.empty((0, 0)))
        return exact - self.base - float(smooth)

    def _find_ties(self) -> _Ties:
        family, data = self.problem.family, self.data
        dense = replace(family, gate=replace(family.gate, n_active=None))
        k = family.n_experts
        n_axes = self.axes.shape[1]
        active = family.layout[3]
        tiny, nudge = np.finfo(float).tiny, JUMP_SEARCH.nudge

        def scores(theta: FloatArray, X: FloatArray) -> FloatArray:
            prior = dense.rowwise(theta, X, family.placeholder(X.shape[1]))[0]
            return np.log(np.maximum(prior, tiny))

        def shifted(j: int) -> FloatArray:
            return self.theta + nudge * self.axes[:, j]

        origin = scores(self.theta, data.X)
        inside = np.zeros(origin.shape, dtype=bool)
        order = np.argsort(-origin, axis=0, kind="stable")[:active]
        np.put_along_axis(inside, order, True, axis=0)
        one, other = np.triu_indices(k, 1)
        sign = np.where(inside[one], 1.0, -1.0)
        gap = sign * (origin[one] - origin[other])
        square = np.zeros_like(gap)
        for j in range(n_axes):
            change = (scores(shifted(j), data.X) - origin) / nudge
            square += (change[one] - change[other]) ** 2
        near = (gap <= self.radius * np.sqrt(square)) & (inside[one] != inside[other])
        near &= (square > 0.0) & (data.weight > 0.0)
        pair, sample = np.nonzero(near)
        rows, row_of_pair = np.unique(sample, return_inverse=True)
        X, y = np.ascontiguousarray(data.X[:, rows]), data.y[rows].copy()
        before = inside[:, sample]
        after = before.copy()
        column = np.arange(pair.size)
        after[one[pair], column] ^= True
        after[other[pair], column] ^= True

        def gap_and_jump(theta: FloatArray) -> FloatArray:
            """Gaps and jumps, shape (2, m), for the atoms that are active at the centre."""
            prior, posterior, density = dense.rowwise(theta, X, y)
            score = np.log(np.maximum(prior, tiny))[:, row_of_pair]
            joint = np.log(np.maximum(posterior, tiny))[:, row_of_pair] + density[row_of_pair]
            after_less_before = _log_sum(joint, after) - _log_sum(score, after)
            after_less_before -= _log_sum(joint, before) - _log_sum(score, before)
            gap = sign[pair, sample] * (score[one[pair], column] - score[other[pair], column])
            return np.array([gap, data.weight[sample] * after_less_before])

        gap, jump = gap_and_jump(self.theta)
        change = np.empty((2, pair.size, n_axes))
        for j in range(n_axes):
            change[:, :, j] = (gap_and_jump(shifted(j)) - [gap, jump]) / nudge
        return _Ties(gap, change[0], jump, change[1], rows)

    def step_inside(self, cell: FloatArray) -> tuple[FloatArray, IntArray]:
        """The best step (F,) in the smooth piece of the step `cell`, and the ties that stop it.

        It is the point of the polyhedron nearest to the free Newton step, found as the dual of a
        non-negative least-squares problem (Lawson and Hanson 1974, ch. 23).
        """
        soft = np.sqrt(np.maximum(self.stiffness, ZERO_CURVATURE))
        target = -self.gradient / soft
        u, binding = target / soft, np.empty(0, dtype=np.int64)
        distance = self.distance + self.normal @ cell
        nearest = np.argsort(np.abs(distance), kind="stable")[: JUMP_SEARCH.ties]
        if nearest.size:
            side = np.where(distance[nearest] < 0.0, -1.0, 1.0)
            rows = side[:, None] * self.normal[nearest] / soft
            bound = _MARGIN - side * self.distance[nearest] - rows @ target
            size = np.linalg.norm(rows, axis=1)
            system = np.vstack([rows.T / size, bound / size])
            unit = np.append(np.zeros(target.size), 1.0)
            try:
                weight, _ = scipy.optimize.nnls(system, unit)
            except RuntimeError:
                return cell, binding
            residual = unit - system @ weight
            if residual[-1] <= TRUST.rounding:
                return cell, binding
            u = (target - residual[:-1] / residual[-1]) / soft
            binding = nearest[weight > 0.0]
        far = float(np.linalg.norm(u))
        return (u if far <= self.radius else u * (self.radius / far)), binding

    def list_crossings(self, binding: IntArray) -> FloatArray:
        """Unit steps (r, F) across one tie each: the `binding` ones first, then the nearest others.

        A step across a binding tie keeps the other binding ties.  The nearest other ties follow,
        each independent of those before it.
        """
        n_axes = self.axes.shape[1]
        if binding.size:
            basis = list(np.linalg.pinv(self.normal[binding]).T)
            span = scipy.linalg.orth(self.normal[binding].T).T
        else:
            basis, span = [], np.empty((0, n_axes))
        for t in np.argsort(self.distance, kind="stable")[: JUMP_SEARCH.ties]:
            if len(span) == n_axes:
                break
            remainder = self.normal[t] - span.T @ (span @ self.normal[t])
            size = np.linalg.norm(remainder)
            if size > NEGLIGIBLE:
                basis.append(remainder / size)
                span = np.vstack([span, basis[-1]])
        return _unit_rows(np.array(basis).reshape(-1, n_axes))

    def scatter(
        self, across: FloatArray, n_binding: int, count: int, rng: np.random.Generator
    ) -> list[Probe]:
        """The best steps in the pieces of largest predicted gain among `count` random ones.

        Points are combinations of the steps `across` ties, so that directions without jumps
        stay at their optimum.  The predicted gain is the quadratic model and the sum of the jumps.
        """
        if not len(across):
            return []
        length = np.sort(self.radius * 10.0 ** rng.uniform(-1.0, 0.0, count))
        mixing = rng.standard_normal((count, len(across)))
        # Half of them keep to the ties that matter most.
        mixing[::2, n_binding + 1 :] = 0.0
        mixing *= np.exp(rng.standard_normal(mixing.shape))
        points = length[:, None] * _unit_rows(mixing @ across)
        predicted = -points @ self.gradient - 0.5 * points**2 @ self.curvature
        label = rng.standard_normal(self.distance.size)
        piece = np.empty(count)
        for part in np.array_split(np.arange(count), max(1, count // WORK.block)):
            ties = np.flatnonzero(self.distance < length[part[-1]])
            crossed = (points[part] @ self.normal[ties].T < -self.distance[ties]).astype(float)
            predicted[part] += crossed @ self.ties.jump[ties]
            predicted[part] += np.sum((crossed @ self.ties.trend[ties]) * points[part], axis=1)
            piece[part] = crossed @ label[ties]
        order = np.argsort(-predicted, kind="stable")
        # The best point of each piece; the piece of the centre has the label 0.
        best = order[np.sort(np.unique(piece[order], return_index=True)[1])]
        best = best[piece[best] != 0.0][: JUMP_SEARCH.pieces]
        steps = [self.step_inside(points[j])[0] for j in best]
        return [(self.gain(u), u) for u in steps]

    def best_along(self, v: FloatArray) -> Probe:
        """The best probe on the line ``s v``, |s| <= radius, with v of length 1."""
        count = int(
            np.ceil(np.log(self.radius / JUMP_SEARCH.shortest) / np.log(JUMP_SEARCH.ladder))
        )
        ladder = self.radius * JUMP_SEARCH.ladder ** -np.arange(count + 1.0)
        probes = [*ladder, *-ladder]
        rate = self.normal @ v
        slope, curve = -self.gradient @ v, -0.5 * self.curvature @ v**2
        for side in (1.0, -1.0):
            hit = np.flatnonzero(side * rate * self.radius < -self.distance)
            if not hit.size:
                continue
            place = -side * self.distance[hit] / rate[hit]
            order = np.argsort(place, kind="stable")
            hit, place = hit[order], place[order]
            jump, trend = self.ties.jump[hit], side * self.ties.trend[hit] @ v
            margin = np.minimum(
                _MARGIN / np.abs(rate[hit]),
                NEGLIGIBLE * np.maximum(place, JUMP_SEARCH.shortest),
            )
            edges = np.concatenate([place + margin, place - margin])
            level, rise = np.cumsum(jump), np.cumsum(trend)
            predicted = np.concatenate([level, level - jump])
            predicted += edges * np.concatenate([rise, rise - trend])
            predicted += side * slope * edges + curve * edges**2
            best = np.argsort(-predicted, kind="stable")[: JUMP_SEARCH.crossings]
            probes += list(side * edges[best])
        gains = [self.gain(s * v) for s in probes]
        best = int(np.argmax(gains))
        return gains[best], probes[best] * v

    def rounds(
        self, binding: IntArray, directions: int, scattered: int, rng: np.random.Generator
    ) -> Iterator[list[Probe]]:
        """Groups of probes, the most promising group first."""
        n_axes = self.axes.shape[1]
        count = directions * n_axes
        across = self.list_crossings(binding)
        yield [self.best_along(v) for v in across]
        yield [self.best_along(v) for v in np.eye(n_axes)]
        if len(across):
            mixing = rng.standard_normal((count, len(across)))
            mixing *= np.exp(2.0 * rng.standard_normal(mixing.shape))
            yield [self.best_along(v) for v in _unit_rows(mixing @ across)]
        yield [self.best_along(v) for v in _unit_rows(rng.standard_normal((count, n_axes)))]
        if scattered:
            yield self.scatter(across, binding.size, scattered, rng)


def _log_sum(values: FloatArray, chosen: np.ndarray) -> FloatArray:
    """``log sum exp`` of the chosen values (k, m) in each column."""
    return np.logaddexp.reduce(np.where(chosen, values, -np.inf), axis=0)


def _unit_rows(rows: FloatArray) -> FloatArray:
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@dataclass(frozen=True)
class PieceSearch:
    """Newton in the smooth pieces of a likelihood that jumps, and a search for the best piece.

    For gates over the K largest scores (``softmax-top``, ``competition-top``).  Without jumps, and
    with as many active atoms as there are, it is Newton's method.

    Parameters
    ----------
    tolerance : float
        The search ends when no probe gains more than this many units of log-likelihood.
    max_iterations : int
        Largest number of moves.
    directions : int
        Random lines per parameter and kind in the last round.

    Notes
    -----
    Eq. (7) of Pham et al. (2024) asks for the maximum over the parameters of eq. (6), and the paper
    names no way to find it.  The search alternates Newton steps that stay in a smooth piece,
    limited by the ties of scores around it, with line searches over the jumps, within 12 and then
    within 4 standard errors of the smooth piece.  A Gaussian likelihood starts on a part of the
    data where it has many.

    The certificate says "searched" and is no proof: the likelihood has as many pieces as samples
    can be divided, and no derivative sees the next one.  ``certified`` claims that

    - no probe of the last round gained more than 1e-4.  Along each line these are, both ways, steps
      from 4 standard errors down to 1e-6 of one, and to either side of the jumps of largest
      predicted gain; the lines cross the nearest ties one by one, follow the eigenvectors of the
      information, and mix the former or go anywhere at random, `directions` times P each.  Then
      the best points of the 100 pieces of largest predicted gain among 20,000 random points;
    - no curvature of the smooth piece is negative, and no atom has collapsed.

    ``gain`` is the largest gain that the last round saw.  ``gradient`` belongs to the smooth piece
    and does not vanish where a jump stops the climb; standard errors are those of the smooth piece,
    as if jumps did not tell anything.  The random lines are the same in every run.

    Examples
    --------
    >>> from moestat import Uniform, family, fit, sample
    >>> from moestat.estimation.starts import TruthStarts
    >>> F = family("gaussian", gate="competition-top", n_experts=2)
    >>> theta = F.pack({"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]})
    >>> X, y = sample(F, theta, n=500, rng=0, design=Uniform(-2, 2))
    >>> result = fit(F, X, y, solver=PieceSearch(), starts=[TruthStarts(F, theta, 1, 0.05)], rng=0)
    >>> result.certificate.status, result.certificate.certified
    ('searched', True)
    >>> bool(result.log_likelihood > F.log_density(theta, X, y).sum())
    True
    """

    tolerance: float = GAIN_LIMIT
    max_iterations: int = 500
    directions: int = 8
    name: str = "search"

    needs: ClassVar[Needs] = Needs()

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)
        positive_int("directions", self.directions)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        if not problem.family.has_jumps:
            return (yield from Newton().steps(problem, start))
        rng = np.random.default_rng(JUMP_SEARCH.seed)
        theta, moves = start, 0
        # Compressed data are made for likelihoods without jumps.
        levels = problem.data.levels
        visited = [level for level, data in enumerate(levels[:-1]) if data.preview]
        while True:
            level = visited.pop(0) if visited else len(levels) - 1
            last = levels[level] is problem.data
            tolerance = self.tolerance if last else max(self.tolerance, TRUST.preview)
            ran = yield from newton_steps(
                problem, Objective.OBSERVED, theta, tolerance, self.max_iterations, level
            )
            budget = self.max_iterations - moves
            theta, current, model, gain, status, n_moves = yield from self._climb(
                problem, level, ran.theta, ran, tolerance, budget, rng
            )
            moves += n_moves
            if last:
                certificate = _certificate(problem, theta, current, model, gain, status, moves)
                return Solution(theta, -current.value, current.hessian, certificate)

    def _climb(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        current: Evaluation,
        tolerance: float,
        budget: int,
        rng: np.random.Generator,
    ) -> Iteration[tuple[FloatArray, Evaluation, _Model, float, str, int]]:
        """Rounds of probes on one level of the data until one finds nothing."""
        data = problem.data.levels[level]
        last = data is problem.data
        stage, moves = 0, 0
        while True:
            model = _Model(problem, data, theta, current, JUMP_SEARCH.radii[stage])
            inside, binding = model.step_inside(np.zeros(model.axes.shape[1]))
            small = NEGLIGIBLE * tolerance
            best = yield from _check(model, [(model.gain(inside), inside)], current, level, small)
            if best[0] <= small:
                full = last and stage + 1 == len(JUMP_SEARCH.radii)
                effort = (self.directions, JUMP_SEARCH.scattered) if full else (1, 0)
                for probes in model.rounds(binding, *effort, rng):
                    best_probe = yield from _check(model, probes, current, level, tolerance)
                    best = max(best, best_probe, key=lambda probe: probe[0])
                    if best[0] > tolerance:
                        break
            if best[0] > small and moves == budget:
                return theta, current, model, best[0], "iteration limit", moves
            if best[0] > small:
                theta, moves = model.place(best[1]), moves + 1
                current = yield Request(Objective.OBSERVED, theta, level)
            elif stage + 1 < len(JUMP_SEARCH.radii):
                stage += 1
            else:
                return theta, current, model, best[0], "searched", moves


def _check(
    model: _Model,
    probes: list[Probe],
    current: Evaluation,
    level: int,
    tolerance: float,
) -> Iteration[Probe]:
    """The best of the probes on all of the data: its gain, 0 for none, and its step.

    Probes are checked in the order of their predicted gains, until one has half of its predicted
    gain.
    """
    best, step = 0.0, np.zeros(model.axes.shape[1])
    candidates = sorted((p for p in probes if p[0] > tolerance), key=lambda p: -p[0])
    for predicted, u in candidates:
        value = (yield Request(Objective.VALUE, model.place(u), level)).value
        if current.value - value > best:
            best, step = current.value - value, u
        if best > 0.5 * predicted:
            break
    return best, step


def _certificate(
    problem: Problem,
    theta: FloatArray,
    current: Evaluation,
    model: _Model,
    gain: float,
    status: str,
    moves: int,
) -> Certificate:
    """The certificate of theta from the last round of probes."""
    doubt = status != "searched" or not np.isfinite(current.value)
    arguments = problem, theta, model.values, model.slope, gain, status, moves, doubt
    return certificate_of(*arguments, across_ties=False)
