"""Start rules: where the solvers begin.  A new rule is one class and a line in `make_starts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from moestat.base.door import door, doors
from moestat.base.registry import UnknownNameError
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_floats, positive_int, real_in
from moestat.model.family import Family
from moestat.solvers import GaussNewtonBFGS, Newton
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Sample
from moestat.solvers.trust_region.newton_loop import newton_steps

__all__ = [
    "MOST_STARTS",
    "ClusterStarts",
    "GivenStarts",
    "LineStarts",
    "MeasureStarts",
    "RandomStarts",
    "SoftClusterStarts",
    "SplitStarts",
    "StartRule",
    "TruthStarts",
    "into_box",
    "make_starts",
    "one_expert",
    "predictor_noise",
]

MOST_STARTS = 100_000
"""Starts of one rule: a small fit from so many takes a quarter of a minute, others days."""

_CLUSTERED, _CLUSTER_STEPS = 2000, 15


class StartRule(Protocol):
    """A rule that draws starting values for a problem.

    One with `in_user_units` knows parameters in the user's units, and is shown the data in them.
    """

    in_user_units: ClassVar[bool]

    @property
    def name(self) -> str:
        """What the certificate calls its starts."""
        ...

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P), not yet put into the box."""
        ...


@doors
@dataclass(frozen=True)
class TruthStarts:
    """Around the truth, as the papers start.

    The fitted atoms are assigned to the true ones at random with no Voronoi cell empty; then
    every parameter gets independent Gaussian noise.  Blocks that only the fitted family has, such
    as free masses, are 0 in the truth.

    Parameters
    ----------
    truth_family : Family
        Family of the truth, with k* experts.
    truth : ndarray of shape (P*,)
        Its packed parameters.
    count : int
        Number of starts.
    noise : float or mapping of str to float
        Standard deviation of the noise, in the units of the parameters; by block if it is a
        mapping, and 0 for blocks that it leaves out.
    decay : float or mapping of str to float
        The noise is multiplied by ``n^-decay``: what a start that comes nearer the truth with the
        sample size does to a rate.  A mapping as that of `noise`.

    Notes
    -----
    Pham et al. (2026), Sec. 5, "Initialization".  The paper says "a small variance" and no number;
    Yan et al. (2025), App. E.1.2, says "near their ground-truth values".
    """

    truth_family: Family
    truth: FloatArray = field(repr=False)
    count: int = 1
    noise: float | Mapping[str, float] = 0.1
    decay: float | Mapping[str, float] = 0.0
    name: str = "truth"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_floats("truth", self.truth, (self.truth_family.n_params,))
        positive_int("starts: truth", self.count, maximum=MOST_STARTS)
        for key, value in (("noise", self.noise), ("decay", self.decay)):
            for each in value.values() if isinstance(value, Mapping) else (value,):
                real_in(f"starts: {key}", each, 0.0)

    def check_blocks(self, family: Family) -> None:
        """Refuse noise or decay of a block that the fitted family does not have."""
        for key, value in (("noise", self.noise), ("decay", self.decay)):
            _by_block(key, value, family)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family = problem.family
        k, k_true = family.n_experts, self.truth_family.n_experts
        fitted = family.with_experts(k_true)
        atoms, shared = fitted.split(fitted.embed(self.truth_family, self.truth))
        n = float(problem.data.weight.sum())
        noise = _by_block("noise", self.noise, family) * n ** -_by_block(
            "decay", self.decay, family
        )
        starts = np.empty((self.count, family.n_params))
        for start in starts:
            if k >= k_true:
                extra = rng.integers(0, k_true, size=k - k_true)
                cells = rng.permutation(np.concatenate([np.arange(k_true), extra]))
            else:
                cells = rng.choice(k_true, size=k, replace=False)
            start[:] = family.join(self._atoms(family, atoms, cells), shared)
            start += noise * rng.standard_normal(start.size)
        return starts

    def _atoms(self, family: Family, atoms: FloatArray, cells: IntArray) -> FloatArray:
        """The fitted atoms (k, C) around true ones (k*, C), of which they are in the cells (k,)."""
        return atoms[cells]


def _by_block(key: str, value: Any, family: Family) -> FloatArray:
    """A number, or one by block, for every parameter (P,)."""
    if not isinstance(value, Mapping):
        return np.full(family.n_params, float(value))
    spread = np.zeros(family.n_params)
    for name, each in value.items():
        if name not in family.blocks:
            known = ", ".join(family.blocks)
            raise ValueError(f"starts: {key}: unknown block {name!r}; known: {known}")
        spread[family.blocks[name]] = each
    return spread


@doors
@dataclass(frozen=True)
class MeasureStarts(TruthStarts):
    """Around mixing measures that are the truth's.

    As `TruthStarts`, with the true atom's mass shared by the fitted atoms of its Voronoi cell, so
    that without noise the density is the true one.  With a `decay` of 1/4 these starts are as far
    from the truth as an estimate with two atoms in a cell is, whatever the sample size: fits are
    cheaper then, but end in maxima near the truth, which are not always the highest.  Gates
    without free masses have nothing to share.

    Parameters
    ----------
    truth_family, truth, count, noise, decay
        As of `TruthStarts`.

    Notes
    -----
    That masses add up over a Voronoi cell is what the losses compare, as of Pham et al. (2026),
    eq. (4).

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> theta = [1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 1.0, -1.0]
    >>> X, y = sample(F, theta, n=500, rng=0)
    >>> fit(F.with_experts(3), X, y, starts=[MeasureStarts(F, theta)], rng=0).certificate.start
    'measure 0'
    """

    name: str = "measure"

    def _atoms(self, family: Family, atoms: FloatArray, cells: IntArray) -> FloatArray:
        shared = atoms[cells]
        if family.mass_column is not None:
            shared[:, family.mass_column] -= np.log(np.bincount(cells)[cells])
        return shared


@doors
@dataclass(frozen=True)
class GivenStarts:
    """Starting values of the user's own.

    Parameters
    ----------
    points : array_like of shape (count, P)
        Packed parameters of the family that is fitted, one start per row.

    Raises
    ------
    ValueError
        If a value is nan or infinite, there is no row, or, when a fit begins, P is another.

    Examples
    --------
    >>> import numpy as np
    >>> from moestat import family, fit
    >>> F = family("gaussian", n_experts=1)
    >>> F = family("multinomial", n_experts=1, n_classes=2)
    >>> own = GivenStarts(np.zeros((1, F.n_params)))
    >>> fit(F, [0, 1, 2, 3, 4], [1, 2, 1, 2, 2], starts=[own]).certificate.start
    'given 0'
    """

    points: Any
    name: str = "given"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        points = as_floats("starts: points", self.points, (None, None))
        if not len(points):
            raise ValueError("starts: points must hold at least one row")
        object.__setattr__(self, "points", points)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        n_params = self.points.shape[1]
        if n_params != problem.family.n_params:
            raise ValueError(
                f"starts: points have {n_params} parameters, the family {problem.family.n_params}"
            )
        return self.points.copy()


@dataclass(frozen=True)
class _Scale:
    """Typical sizes of the predictors of a problem: where starts are drawn."""

    problem: Problem

    @cached_property
    def inputs(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each input, 1 for a constant one, shapes (d,)."""
        X, weight = self.problem.data.X, self.problem.data.weight
        centre = np.average(X, axis=1, weights=weight)
        deviation = np.sqrt(np.average((X.T - centre) ** 2, axis=0, weights=weight))
        deviation[deviation == 0.0] = 1.0
        return centre, deviation

    @property
    def standardised(self) -> FloatArray:
        """Inputs (d, n) with mean 0 and standard deviation 1; constant ones are 0."""
        centre, spread = self.inputs
        return (self.problem.data.X - centre[:, None]) / np.maximum(spread, 1e-12)[:, None]

    @cached_property
    def features(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of inputs and products, shapes (d + d (d + 1) / 2,)."""
        X, weight = self.problem.data.X, self.problem.data.weight
        rows, columns = np.triu_indices(X.shape[0])
        scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
        pairs = zip(scale, rows, columns, strict=True)
        moments = []
        for feature in (*X, *(s * X[i] * X[j] for s, i, j in pairs)):
            mean = np.average(feature, weights=weight)
            moments.append((mean, np.sqrt(np.average((feature - mean) ** 2, weights=weight))))
        centre, spread = np.array(moments).T
        return centre, spread

    @cached_property
    def response(self) -> tuple[float, float]:
        """Mean and standard deviation, 1 for counts all alike; 0 and 1 for classes."""
        if self.problem.family.likelihood.support is not None:
            return 0.0, 1.0
        level, weight = self.problem.family.likelihood.level, self.problem.data.weight
        y = level(self.problem.data.y)
        centre = float(np.average(y, weights=weight))
        spread = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
        return centre, spread or 1.0

    @cached_property
    def predictor(self) -> tuple[float, float]:
        """Typical predictor of the mean, and the unit in which predictors differ."""
        link = self.problem.family.likelihood.link
        if link is None:
            return self.response
        return float(link(max(self.response[0], np.finfo(float).tiny))), 1.0

    def centre(self, family: Family) -> FloatArray:
        """Middle of the parameters (P,): places in x, means and logarithms of variances."""
        theta = np.zeros(family.n_params)
        mean, deviation = self.predictor
        for (_, c), first in np.ndenumerate(family.index):
            channel = family.channels[c]
            if channel.axis is not None:
                theta[first] = self.inputs[0][channel.axis]
            elif channel.intercept in family.likelihood.shapes:
                theta[first] = 0.5 * (family.lower[first] + family.upper[first])
            elif channel.log:
                theta[first] = 2.0 * np.log(deviation)
            elif channel.response and channel.slope is not None:
                theta[first] = mean
        return theta

    def noise(self, family: Family, rng: np.random.Generator, count: int = 1) -> FloatArray:
        """Parameters (count, P) of random predictors around 0.

        Each channel is standard normal at the centre of the inputs and changes by a normal
        amount, of standard deviation 2, per standard deviation of each input, in units of the
        response where it has them.  A quadratic channel changes so for all its features together.
        """
        drawn = rng.standard_normal((count, family.n_experts * int(family.width.sum())))
        theta = np.empty((count, family.n_params))
        quadratic = any(channel.products is not None for channel in family.channels)
        centre, spread = self.features if quadratic else self.inputs
        spread, used = np.maximum(spread, 1e-12), 0
        for (_, c), first in np.ndenumerate(family.index):
            channel, last = family.channels[c], family.width[c] - 1
            unit = self.predictor[1] if channel.response and not channel.log else 1.0
            at = slice(family.offset[c] - 1, family.offset[c] - 1 + last)
            slope = unit * drawn[:, used : used + last] * 2.0 / spread[at]
            if channel.products is not None:
                slope /= np.sqrt(last)
            theta[:, first] = unit * drawn[:, used + last] - slope @ centre[at]
            theta[:, first + 1 : first + 1 + last] = slope
            if channel.axis is not None:
                theta[:, first] *= 2.0 * spread[channel.axis]
            used += last + 1
        return theta


@door()
def predictor_noise(problem: Problem, rng: np.random.Generator, count: int) -> FloatArray:
    """Parameters (count, P) of random predictors around 0, in the units of a problem."""
    return _Scale(problem).noise(problem.family, rng, count)


@door()
def one_expert(problem: Problem, rng: np.random.Generator | None = None) -> FloatArray:
    """Parameters (P,) of which every atom is the one-expert fit.

    Random numbers are for experts whose coefficients 0 are a saddle point.
    """
    family, scale = problem.family, _Scale(problem)
    known = problem.data.memory.get("one expert")
    if known is not None and known[0] is family:
        return known[1]
    single = Problem(family.with_experts(1), problem.data)
    origin = scale.centre(single.family)
    if single.family.expert.block is not None:
        origin += scale.noise(single.family, rng or np.random.default_rng(0))[0]
    origin = single.family.feasible(origin)
    solver = GaussNewtonBFGS() if family.is_regression else Newton()
    (solution,) = drive([solver.steps(single, origin)], [single], threads=1)
    atom, shared = single.family.split(solution.theta)
    centre = family.join(np.repeat(atom, family.n_experts, axis=0), shared)
    if single.family.expert.block is None:
        problem.data.memory["one expert"] = family, centre
    return centre


@door()
def into_box(family: Family, starts: FloatArray) -> FloatArray:
    """Starting values (count, P) inside bounds and constraints of the family."""
    pinned = np.array([family.pin(start) for start in starts])
    return np.array([family.feasible(start) for start in pinned]).reshape(-1, family.n_params)


@doors
@dataclass(frozen=True)
class RandomStarts:
    """Predictors drawn at random.

    Each channel is standard normal at the centre of the inputs and changes by a normal amount,
    of standard deviation 2, per standard deviation of each input; means are so in units of a
    continuous response.

    Parameters
    ----------
    count : int
        Number of starts.
    """

    count: int = 1
    name: str = "random"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: random", self.count, maximum=MOST_STARTS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family, scale = problem.family, _Scale(problem)
        starts = scale.centre(family) + scale.noise(family, rng, self.count)
        positive = (family.lower > 0.0) & (family.lower < family.upper)
        starts[:, positive] = np.exp(0.5 * rng.standard_normal((self.count, int(positive.sum()))))
        return starts


@doors
@dataclass(frozen=True)
class SplitStarts:
    """Noisy copies of the one-expert fit: every atom is that fit, split by Gaussian noise.

    The noise is scaled per predictor like that of `RandomStarts`, so it does not depend on the
    units of the data.

    Parameters
    ----------
    count : int
        Number of starts.
    noise : float
        Standard deviation of the predictors around the one-expert fit.
    """

    count: int = 1
    noise: float = 0.5
    name: str = "split"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: split", self.count, maximum=MOST_STARTS)
        real_in("starts: noise", self.noise, 0.0, open_low=True)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        centre = one_expert(problem, rng)
        scale = _Scale(problem)
        return centre + self.noise * scale.noise(problem.family, rng, self.count)


@doors
@dataclass(frozen=True)
class ClusterStarts:
    """The complete-data fit to clusters of the samples.

    Seeds are drawn as in k-means++ (Arthur and Vassilvitskii 2007) from the standardised inputs
    and continuous response; every sample belongs to its nearest seed, and gate and experts are
    fitted to these memberships by Newton steps.  At most 2000 samples are looked at;
    weighted ones are drawn by their weights.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    """

    count: int = 1
    steps: int = _CLUSTER_STEPS
    threads: int | None = 1
    name: str = "cluster"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int(f"starts: {self.name}", self.count, maximum=MOST_STARTS)
        positive_int("steps", self.steps)
        if self.threads is not None:
            positive_int("threads", self.threads)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family, data = problem.family, problem.data
        if data.begin is not None:
            at = np.flatnonzero(data.owner <= data.owner[:_CLUSTERED].max())
        elif np.ptp(data.weight) == 0.0:
            at = rng.permutation(data.size)[:_CLUSTERED]
        else:
            at = rng.choice(data.size, _CLUSTERED, p=data.weight / data.weight.sum())
        some = Problem(family, Sample(data.X[:, at].copy(), data.y[at].copy(), np.ones(at.size)))
        scale = _Scale(some)
        points = self.places(scale)
        if data.begin is not None:
            # Rows of a group are where its mean is.
            owner = data.owner[at]
            size = np.bincount(owner)
            points = np.array([(np.bincount(owner, row) / size)[owner] for row in points])
        problems, iterations = [], []
        for _ in range(self.count):
            origin = scale.centre(family)
            if family.expert.block is not None:
                origin += scale.noise(family, rng)[0]
            origin = family.feasible(family.pin(origin))
            own = some.restart()
            own.assign(self.memberships(points, family, rng))
            steps = newton_steps(
                own,
                Objective.COMPLETE,
                origin,
                tolerance=1e-3,
                max_iterations=self.steps,
                bounds=(own.metric(origin), family.lower, family.upper),
            )
            problems.append(own)
            iterations.append(steps)
        return np.array([end.theta for end in drive(iterations, problems, self.threads)])

    def places(self, scale: _Scale) -> FloatArray:
        """Where samples are (q, n): standardised inputs and a continuous response."""
        points, family = scale.standardised, scale.problem.family
        if family.likelihood.support is None:
            mean, deviation = scale.response
            points = np.vstack([points, (np.real(scale.problem.data.y) - mean) / deviation])
        return points

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, 1 for the points (q, n) nearest to its k-means++ seed, else 0."""
        n, k = points.shape[1], family.n_experts
        distance = np.full((k, n), np.inf)
        chance = np.full(n, 1.0 / n)
        for i in range(k):
            seed = points[:, rng.choice(n, p=chance)]
            distance[i] = np.sum((points - seed[:, None]) ** 2, axis=0)
            nearest = distance.min(axis=0)
            total = nearest.sum()
            chance = nearest / total if total > 0.0 else np.full(n, 1.0 / n)
        return (np.argmin(distance, axis=0) == np.arange(k)[:, None]).astype(np.float64)


@doors
@dataclass(frozen=True)
class SoftClusterStarts(ClusterStarts):
    """The complete-data fit to soft clusters of the samples.

    As `ClusterStarts`, with seeds that are k samples drawn at random, and memberships in proportion
    to ``exp(-s |z - c|^2)`` at a squared distance from the seed c; s is log-uniform on [1/4, 4].
    Every atom then has samples of all classes, which hard clusters of inputs need not have.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    """

    name: str = "soft cluster"

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, which sum to 1 over the atoms."""
        seeds = points[:, rng.choice(points.shape[1], family.n_experts, replace=False)]
        sharpness = 4.0 ** rng.uniform(-1.0, 1.0)
        score = -sharpness * np.sum((points[:, None] - seeds[:, :, None]) ** 2, axis=0)
        share = np.exp(score - score.max(axis=0))
        return share / share.sum(axis=0)


@dataclass(frozen=True)
class LineStarts(ClusterStarts):
    """The complete-data fit to samples near random lines, or planes.

    Each of k planes is that through as many samples, drawn at random, as it has coefficients, and
    every sample belongs to the nearest one; of classes the planes are of their indicators.  So
    experts may cross, and one may lie close to few samples, which no cluster shows.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.

    Notes
    -----
    Elemental sets, as of Rousseeuw and Leroy (1987).
    """

    name: str = "line"

    def places(self, scale: _Scale) -> FloatArray:
        """Standardised inputs with a first row of ones, and responses, one above the other."""
        family, y = scale.problem.family, np.real(scale.problem.data.y)
        if family.likelihood.support is None:
            response = ((y - scale.response[0]) / scale.response[1])[None]
        else:
            response = (y == np.arange(family.n_classes)[:, None]).astype(np.float64)
        return np.vstack([np.ones_like(response[:1]), scale.standardised, response])

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, 1 for the samples nearest to its plane, else 0."""
        k, size = family.n_experts, 1 + family.n_features
        inputs, response = points[:size].T, points[size:].T
        drawn = np.array(
            [rng.choice(len(inputs), size, replace=len(inputs) < size) for _ in range(k)]
        )
        slopes = np.linalg.pinv(inputs[drawn]) @ response[drawn]
        distance = np.sum((response - inputs @ slopes) ** 2, axis=2)
        return (np.argmin(distance, axis=0) == np.arange(k)[:, None]).astype(np.float64)


@door()
def make_starts(
    options: Mapping[str, Any],
    truth_family: Family | None = None,
    truth: FloatArray | None = None,
    fitted: Family | None = None,
) -> list[StartRule]:
    """Start rules from their table in a spec.

    Parameters
    ----------
    options : mapping
        Counts per rule, ``{"truth": 3, "measure": 3, "random": 2, "split": 1, "cluster": 2}``,
        and ``"noise"`` and ``"decay"`` of the truth-centred ones, "truth" and "measure", each a
        number or a table by block.  A list of noises asks for as many starts at each of them.
        ``"given"`` is a list of tables with the values of every block, one start each.
    truth_family, truth : Family and ndarray of shape (P*,), optional
        Needed by truth-centred starts.
    fitted : Family, optional
        The family that is fitted: needed by given starts, and by noise by block.

    Returns
    -------
    list of StartRule
        In the order given, truth, measure, split, cluster, random; rules with count 0 are left
        out.

    Raises
    ------
    ValueError
        If a key or block is unknown, a count negative, no start remains, or the truth is missing.

    Examples
    --------
    >>> [rule.name for rule in make_starts({"random": 2, "split": 1})]
    ['split', 'random']
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> rules = make_starts({"truth": 2, "noise": [0.1, 1.0]}, F, [0.0, 0.0, 1.0, -2.0])
    >>> [(rule.name, rule.count, rule.noise) for rule in rules]
    [('truth', 2, 0.1), ('truth', 2, 1.0)]
    >>> [rule.name for rule in make_starts({"given": [F.unpack([0, 0, 1, -2])]}, fitted=F)]
    ['given']
    """
    centred: dict[str, type[TruthStarts]] = {"truth": TruthStarts, "measure": MeasureStarts}
    others: dict[str, type] = {
        "split": SplitStarts,
        "cluster": ClusterStarts,
        "random": RandomStarts,
    }
    known = (*centred, *others, "noise", "decay", "given")
    for key in options:
        if key not in known:
            raise UnknownNameError(f"unknown start rule {key!r}; known: {', '.join(known)}")
    counts = {key: options.get(key, 0) for key in (*centred, *others)}
    for key, count in counts.items():
        positive_int(f"starts: {key}", count, 0, MOST_STARTS)
    if not any(counts.values()) and "given" not in options:
        raise ValueError(f"starts must ask for at least one start, got {dict(options)}")
    around = any(counts[key] for key in centred)
    for key in ("noise", "decay"):
        if key in options and not around:
            raise ValueError(
                f"starts: {key} belongs to truth-centred starts, but truth and measure are 0"
            )
    rules: list[StartRule] = []
    if "given" in options:
        rules.append(GivenStarts(_given(options["given"], fitted)))
    for key, rule in centred.items():
        if counts[key]:
            if truth_family is None or truth is None:
                raise ValueError("starts: truth-centred starts need a truth")
            decay = options.get("decay", 0.0)
            for noise in _distances(options.get("noise", 0.1)):
                start = rule(truth_family, truth, counts[key], noise, decay)
                if fitted is not None:
                    start.check_blocks(fitted)
                rules.append(start)
    rules += [rule(counts[key]) for key, rule in others.items() if counts[key]]
    return rules


def _given(tables: Any, fitted: Family | None) -> list[FloatArray]:
    """Starting values from tables of blocks."""
    if fitted is None:
        raise ValueError("starts: given starts need the fitted family")
    listed = isinstance(tables, (list, tuple)) and tables
    if not listed or not all(isinstance(table, Mapping) for table in tables):
        raise ValueError("starts: given must be a list of one or more tables of blocks")
    return [fitted.pack(table) for table in tables]


def _distances(noise: Any) -> list[Any]:
    """One noise or a list of them; what each of them is, the rules check."""
    if not isinstance(noise, (list, tuple)):
        return [noise]
    if not noise:
        raise ValueError("starts: noise must be a number >= 0 or a list of them, got an empty list")
    return list(noise)
