"""A data set whose slopes are penalised, and its fits along a path of penalties."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import FloatArray, IntArray
from moestat.base.warnings import MoEWarning
from moestat.estimation.data.data import Data
from moestat.estimation.data.priors import Lasso, Prior, prior_units
from moestat.estimation.data.rounding import least_variances, resolution_of
from moestat.estimation.fit.batches import fit_data
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.standardise import LEAST_VARIANCE, standardise
from moestat.estimation.progress import LOG
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rules import PATH, SAME_HEIGHT
from moestat.model.constraints import Constraint
from moestat.model.family import Family
from moestat.solvers import Certificate, Solution
from moestat.solvers.certificate import spectrum
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Objective, Request
from moestat.solvers.proximal import Groups, SparseProblem, Stationary, slopes_of

__all__ = ["SparseData"]


class SparseData:
    """One data set whose slopes are penalised; parameters are in standardised coordinates."""

    def __init__(
        self,
        family: Family,
        data: Data,
        l1_ratio: float,
        together: str,
        gate_factor: float,
        variance: float | None,
    ) -> None:
        _check(family)
        self.family, self.l1_ratio, self.together = family, l1_ratio, together
        self.prior = Prior(None, None, variance)
        check_room(
            FLOAT_BYTES * PATH.matrices * family.n_params**2,
            f"X: a path of {family.n_params:,} parameters",
        )
        original = FitJob(family, data, prior=self.prior).problem()
        steps = data.resolution
        steps = resolution_of(family, original.data) if steps is None else steps
        self.data = replace(data, resolution=steps)
        self.standard = standardise(original, least_variances(family, original.data, steps))
        inner = self.standard.problem
        if len(inner.data.X) >= inner.data.size - 1:
            inner = replace(inner, family=_with_floor(inner.family, family))
        law = self.prior.penalty(inner.family, prior_units(inner.data, inner.family))
        inner = PenalisedProblem(inner.family, inner.data, resolved=inner.resolved, penalty=law)
        self.problem = inner
        nothing = Groups(np.full(family.n_params, -1), np.ones(0))
        group, weight = _grouping(SparseProblem(inner, nothing), together, gate_factor)
        self.sparse = SparseProblem(inner, Groups(group, weight, l1_ratio))
        self.penalised = group >= 0
        self.in_gate = np.zeros(family.n_params, dtype=bool)
        for name in {c.slope for c in family.gate.channels(family.n_features) if c.slope}:
            self.in_gate[family.blocks[name]] = True
        if not weight.size:
            raise ValueError("X: the model has no slopes that a penalty could make 0")

    @property
    def rows(self) -> float:
        """Sum of the weights of the independent units, the n of BIC."""
        return float(self.sparse.problem.data.units.sum())

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer rows than parameters."""
        return self.rows < self.sparse.single.sum()

    def plain(self, theta: FloatArray) -> FloatArray:
        """Parameters (P,) of the family: slopes as they are, with references at 0."""
        return self.family.pin(self.sparse.scaled.outward(theta))

    def outward(self, theta: FloatArray) -> FloatArray:
        """Parameters (P,) in the units of the data."""
        return self.standard.coordinates.outward(self.plain(theta))

    def log_likelihood(self, end: Stationary) -> float:
        """Log-likelihood of the data in the user's units."""
        unit = self.standard.coordinates.units.unit
        return end.log_likelihood - self.sparse.size * float(np.sum(np.log(unit)))

    def count(self, theta: FloatArray) -> int:
        """Penalised coefficients (P,) that are not 0; of a gate's input at most k - 1."""
        family, nonzero = self.family, (theta != 0.0) & self.sparse.single & self.penalised
        total = int(nonzero.sum())
        for name in family.gate.translations:
            at = family.blocks[name]
            if at.ndim > 1:
                total -= int(np.all(nonzero[at], axis=0).sum())
        return total

    def degrees(self, end: Stationary) -> float:
        """Degrees of freedom: coefficients not 0 or without penalty; effective with squares."""
        if self.sparse.groups.ratio < 1.0:
            return end.effective
        return float(self.count(end.theta) + (self.sparse.single & ~self.penalised).sum())

    def bic(self, end: Stationary) -> float:
        """Schwarz's criterion, up to a constant."""
        return np.log(self.rows) * self.degrees(end) - 2.0 * end.log_likelihood

    def collapsed(self, theta: FloatArray) -> tuple[int, ...]:
        """Experts whose scale is on its floor, if this does not follow from rounded responses."""
        family = self.sparse.family
        scales = [name for name in family.likelihood.scales if name not in self.problem.resolved]
        scale_places = [family.blocks[name] for name in scales]
        low = [
            (theta[at] <= family.lower[at]) & (family.lower[at] < family.upper[at])
            for at in scale_places
        ]
        return tuple(np.flatnonzero(np.any(low, axis=0)).tolist()) if low else ()

    def is_certified(self, end: Stationary, penalty: float) -> bool:
        """Whether a fit is a local minimum of the penalised objective without collapsed experts."""
        stationary = (
            end.residual <= PATH.stationary * penalty
            and end.curvatures.min(initial=0.0) >= -PATH.stationary
        )
        return stationary and not self.collapsed(end.theta)

    def search(self, inputs: Sequence[int], rng: np.random.Generator) -> FloatArray:
        """Parameters (P,) of the best unpenalised fit that uses only some of the inputs."""
        family, data = self.family, self.data
        columns = sorted(
            {
                *inputs,
                *self._known_inputs,
                *(() if family.offset_input is None else (family.offset_input[0],)),
            }
        )
        X = data.X[:, columns] if columns else np.zeros((len(data.y), 1))
        small = _restrict_to(family, columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoEWarning)  # of a fit that nobody sees
            own_rows = replace(data, X=np.ascontiguousarray(X), features=None, formula=None)
            # One search: the path, not its start, has to be good (`PathRules`).
            fitted = fit_data(small, own_rows, rng=rng, prior=self.prior, risk=1.0)
            standard = fitted.standard
        assert standard is not None
        theta = np.zeros(family.n_params)
        used = (slopes_of(small) < 0) | bool(columns)
        theta[np.isin(self.sparse.input_of, [-1, *columns])] = standard.solution.theta[used]
        return self.sparse.scaled.inward(theta)

    @cached_property
    def _known_inputs(self) -> tuple[int, ...]:
        """Inputs that have a known coefficient other than 0, which every fit keeps."""
        family, input_of = self.family, self.sparse.input_of
        known = (family.lower == family.upper) & (family.lower != 0.0) & (input_of >= 0)
        return tuple(np.unique(input_of[known]).tolist())

    def path(
        self,
        penalties: FloatArray | tuple[int, float],
        rng: np.random.Generator,
        report: Callable[[int], None] = lambda done: None,
    ) -> tuple[FloatArray, list[Stationary]]:
        """Penalties (m,) and a fit for each.

        `penalties` are these, or their number and the ratio of the smallest to the largest.  In the
        second case the path ends where half as many coefficients as rows are not 0.

        A path that begins at slopes of 0 follows one local minimum.  Searches without penalty, with
        the few inputs that the path has chosen at several places, may find others: their paths are
        followed upwards from the smallest penalty, and for each penalty the better fit is kept.
        """
        theta = self.sparse.solve(self.search((), rng), PATH.all_zero).theta
        max_degrees = np.inf
        if isinstance(penalties, tuple):
            count, smallest = penalties
            penalties = self.sparse.largest(theta) * np.geomspace(1.0, smallest, count)
            max_degrees = self.rows / 2.0
        ends: list[Stationary] = []
        visited: set[tuple[int, ...]] = set()
        best = np.inf
        while True:
            for penalty in penalties[len(ends) :]:
                if ends and self.degrees(ends[-1]) > max_degrees:
                    break
                ends.append(self.sparse.solve(ends[-1].theta if ends else theta, float(penalty)))
                report(len(ends))
            height = min(self.bic(end) for end in ends)
            if self.family.n_experts == 1 or not height < best - SAME_HEIGHT:
                return penalties[: len(ends)], self._in_order(ends)
            best = height
            candidates = [
                start
                for inputs in self._candidates(ends)
                for start in self._grow(inputs, visited, rng)
            ]
            for _, theta in sorted(candidates, key=lambda each: each[0])[: PATH.followed]:
                for j in range(len(ends) - 1, -1, -1):
                    end = self.sparse.solve(theta, float(penalties[j]))
                    theta = end.theta
                    ends[j] = min(ends[j], end, key=lambda each: each.value)

    def _in_order(self, ends: Sequence[Stationary]) -> list[Stationary]:
        """The fits with experts in descending order of their mean weight in the last one.

        The experts of each other fit are ordered to be nearest to those of the fit after it.
        """
        from scipy.optimize import linear_sum_assignment

        family, data = self.sparse.family, self.sparse.problem.data
        if family.n_experts == 1 or family.constraints:
            return list(ends)
        weight = data.weight @ self.sparse.problem.rowwise(self.plain(ends[-1].theta))[0].T
        order, ordered = np.argsort(-weight), list[Stationary]()
        for end in reversed(ends):
            atoms, shared = family.split(end.theta)
            if ordered:
                other = family.split(ordered[-1].theta)[0]
                far = np.sum((other[:, None] - atoms[None]) ** 2, axis=2)
                order = linear_sum_assignment(far)[1]
            theta = family.join(atoms[order], shared)
            for name in family.gate.translations:
                if family.blocks[name].ndim == 1:
                    theta[family.blocks[name]] -= theta[family.blocks[name][-1]]
            ordered.append(replace(end, theta=theta))
        return ordered[::-1]

    def _grow(
        self, inputs: tuple[int, ...], visited: set[tuple[int, ...]], rng: np.random.Generator
    ) -> Iterator[tuple[float, FloatArray]]:
        """BIC and parameters (P,) of fits without penalty, with some inputs and then more of them.

        Inputs with the steepest scores are added, up to half as many parameters as rows.
        """
        while inputs not in visited and self._n_parameters(inputs) <= self.rows / 2.0:
            visited.add(inputs)
            theta = self.search(inputs, rng)
            value, gradient = self.sparse.scores(theta)
            LOG.info("a search of %d inputs", len(inputs))
            size = np.log(self.rows) * self._n_parameters(inputs)
            yield size + 2.0 * self.sparse.size * value, theta
            steep = np.where(np.isin(self.sparse.input_of, [-1, *inputs]), 0.0, np.abs(gradient))
            steep[~(self.sparse.single & self.penalised)] = 0.0
            order = self.sparse.input_of[np.argsort(-steep)]
            new = list(dict.fromkeys(f for f in order.tolist() if f >= 0 and f not in inputs))
            inputs = tuple(sorted({*inputs, *new[: PATH.added]}))

    def _candidates(self, ends: Sequence[Stationary]) -> set[tuple[int, ...]]:
        """Some of the sets of inputs that fits have chosen, if small enough for a search."""
        known = {self.sparse.inputs_of(end.theta != 0.0): end for end in ends}
        small = [inputs for inputs in known if self._n_parameters(inputs) <= self.rows / 2.0]
        at = np.linspace(0, len(small) - 1, min(PATH.chosen, len(small)))
        return {small[int(j)] for j in at}

    def _n_parameters(self, inputs: Sequence[int]) -> int:
        """Number of parameters of a fit that reads some inputs."""
        return int((self.sparse.single & np.isin(self.sparse.input_of, [-1, *inputs])).sum())

    def result(self, end: Stationary, penalty: float) -> MoEResults:
        """A fit of the path as results."""
        family, sparse, standard = self.family, self.sparse, self.standard
        theta = self.plain(end.theta)
        zero = self.penalised & (theta == 0.0) & (sparse.family.lower < sparse.family.upper)
        inner = replace(self.problem, family=_pin_zeros(sparse.family, end.theta, zero))
        square = np.where(sparse.single & self.penalised & ~zero, 1.0 - self.l1_ratio, 0.0)
        square *= (
            penalty * sparse.size * np.append(sparse.groups.square, 0.0)[sparse.groups.group_of]
        )
        law = replace(inner.penalty, quadratic=inner.penalty.quadratic + np.diag(square))
        inner = replace(inner, penalty=law)
        evaluation = inner.evaluate(Request(Objective.OBSERVED, theta))
        on_bound = inner.family.on_bound(theta)
        certificate = Certificate(
            status="converged",
            certified=self.is_certified(end, penalty),
            gradient=end.residual,
            gain=end.gain * sparse.size,
            inertia=spectrum(end.curvatures).inertia,
            condition=spectrum(end.curvatures).condition,
            active=tuple(family.param_names[j] for j in np.flatnonzero(on_bound)),
            iterations=end.iterations,
            passes=0.0,
            start="path",
            collapsed=self.collapsed(theta),
        )
        solution = Solution(theta, end.log_likelihood, evaluation.hessian, certificate)
        standard_fit = replace(standard, problem=inner)
        lasso = Lasso(penalty, self.l1_ratio, self.together, tuple(np.flatnonzero(zero).tolist()))
        y = standard.original.data
        continuous = y.covariance.shape[0] == family.n_features + 1
        return MoEResults(
            family,
            standard_fit.outward(solution),
            "proximal Newton",
            y.weight,
            float(y.covariance[-1, -1]) if continuous else float("nan"),
            # Degrees of freedom are counted, as those of the path are.
            standard=replace(standard_fit.describe(solution), penalty=None),
            prior=lasso,  # type: ignore[arg-type]
            data=self.data,
        )


def _check(family: Family) -> None:
    """Refuse families in which a slope of 0 is not the absence of an input."""
    bent = any(c.axis is not None or c.products is not None for c in family.channels)
    if family.is_regression or family.has_jumps:
        raise ValueError("family: lasso_path needs a likelihood without jumps")
    if bent or family.gate.scaling:
        raise ValueError(
            f"gate: a slope of {family.gate.name!r} cannot be penalised; use a gate that is linear"
            " in the inputs, such as 'softmax'"
        )
    if family.likelihood.name.startswith("multivariate"):
        raise ValueError(
            "family: lasso_path needs responses with separate scales; use a list of likelihoods"
        )
    if family.expert.block is not None:
        raise ValueError(f"expert: lasso_path needs linear experts, got {family.expert.name!r}")
    if family.own_inputs is not None:
        raise ValueError("expert_inputs: lasso_path needs experts with the same inputs")
    bounded = {c.slope for c in family.channels if c.slope} & family.given
    if bounded:
        raise ValueError(f"bounds: {', '.join(sorted(bounded))} are penalised; leave bounds out")


def _with_floor(inner: Family, original: Family) -> Family:
    """The family with positive lower bounds of the scales, for data with fewer rows than inputs."""
    box = dict(inner.box)
    for name in set(original.likelihood.scales) - original.given:
        low, high = box[name]
        box[name] = np.maximum(low, LEAST_VARIANCE * high / original.box[name][1]), high
    return replace(inner, box=box)


def _grouping(
    sparse: SparseProblem, together: str, gate_factor: float
) -> tuple[IntArray, FloatArray]:
    """Group of each parameter (P,), -1 for none, and the factors (G,) of their norms."""
    family = sparse.family
    label, factor = np.full((2, family.n_params), -1.0)
    for c in sparse.sloped:
        in_gate = c < family.first_expert_channel
        if in_gate and gate_factor == 0.0:
            continue
        names = [family.channels[other].slope for other in sparse.sloped]
        block = names.index(family.channels[c].slope)  # one for all classes
        at = family.index[:, c, None] + 1 + np.arange(family.n_features)
        labels = {
            "coefficients": at,
            "experts": block * family.n_features + np.arange(family.n_features),
            "inputs": np.arange(family.n_features),
        }
        label[at] = labels[together]
        factor[at] = gate_factor if in_gate else 1.0
    label[~sparse.single] = -1
    group = np.full(family.n_params, -1)
    at = np.flatnonzero(label >= 0)
    _, group[at] = np.unique(label[at], return_inverse=True)
    size = np.bincount(group[at]).astype(np.float64) if at.size else np.empty(0)
    mean = np.bincount(group[at], factor[at]) / size
    return group, np.sqrt(size) * mean


def _restrict_to(family: Family, columns: Sequence[int]) -> Family:
    """The family restricted to some inputs; without any, to one input without effect."""
    place = {f: j for j, f in enumerate(columns)}

    def renumber(inputs: Sequence[int] | None) -> tuple[int, ...] | None:
        return None if inputs is None else tuple(place[f] for f in inputs if f in place)

    offset = family.offset_input
    constraints = [replace(one, inputs=renumber(one.inputs)) for one in family.constraints]
    return replace(
        family,
        n_features=max(len(columns), 1),
        held=tuple(place[f] for f in family.held if f in place) if columns else (0,),
        gate_inputs=renumber(family.gate_inputs) if columns else None,
        expert_inputs=renumber(family.expert_inputs) if columns else None,
        offset_input=None if offset is None else (place[offset[0]], offset[1]),
        constraints=tuple(one for one in constraints if one.inputs is None or one.inputs),
    )


def _pin_zeros(inner: Family, theta: FloatArray, zero: np.ndarray) -> Family:
    """The family with zeros pinned, and with equal coefficients of the gate tied.

    `theta` (P,) has the slopes of all atoms of a gate; those that are 0 are equal.
    """
    box, constraints = dict(inner.box), list(inner.constraints)
    for c in inner.channels:
        if c.slope is None or c.slope not in inner.blocks:
            continue
        at = inner.blocks[c.slope]
        low, high = inner.lower[at], inner.upper[at]
        box[c.slope] = np.where(zero[at], 0.0, low), np.where(zero[at], 0.0, high)
        if c.slope in inner.gate.translations:
            for f in np.flatnonzero(theta[at[-1]] != 0.0):
                same = tuple(np.flatnonzero(theta[at[:, f]] == 0.0).tolist())
                if len(same) > 1:
                    constraints.append(Constraint(c.slope, (int(f),), same))
    return replace(inner, box=box, constraints=tuple(constraints))
