"""Distances between two conditional densities, averaged over the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, short
from moestat.metrics.at_truth import at_truth
from moestat.metrics.panels import NODES, ORDER, ResponseRule
from moestat.metrics.quadrature import log_densities, response_rules
from moestat.model.designs import Design, Uniform, design_of, nodes_per_input
from moestat.model.family import Family, check_family

_PANEL = 8  # Gauss-Legendre nodes per panel and axis
# By whether the response is summed or integrated: nodes per axis by the number of inputs, and
# draws where there are more.
_NODES = {"classes": {1: 512, 2: 64}, "density": {1: 128, 2: 24}}
_DRAWS = {"classes": 20_000, "density": 5_000}
_SWITCH_GRID = 1024  # cells in which a change of the active atoms is looked for
_BISECTIONS = 48
SEED = 20_231_014  # of the Monte-Carlo inputs, the same in every call


@dataclass(frozen=True)
class Distance:
    """A distance with its numerical error.

    Parameters
    ----------
    value : float
        The distance; between densities it is in [0, 1].
    error : float
        One or two inputs: change of the value when the number of nodes is doubled, per input and
        in a continuous response (the value is the finer one's).  More inputs: standard error of
        the Monte-Carlo mean, to which the change from doubling the nodes in the response is added.
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


def _finite(value: float, error: float, largest: float = np.inf) -> Distance:
    """A distance; an error if parameters are so large that the densities over- or underflow."""
    if not np.isfinite(value + error) or value > largest + 10.0 * error + 1e-9:
        raise ValueError(
            "theta, truth_theta: a density there is beyond the range of float64, or too narrow for"
            " the nodes"
        )
    return Distance(value, error)


def _hellinger(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2, axis=1))


def _total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    return 0.5 * np.sum(np.abs(p - q), axis=1)


@dataclass(frozen=True)
class _Pair:
    """Two densities at the nodes (m, q) of a rule, so that close ones do not cancel.

    With p the larger of the two, they are p and ``p (1 + e)^2``.
    """

    larger: FloatArray  # p
    e: FloatArray  # in [-1, 0]
    first_is_larger: np.ndarray


def _pair(log_p: FloatArray, log_q: FloatArray) -> _Pair:
    """Two densities from their logarithms."""
    e = np.expm1(-0.5 * np.abs(log_p - log_q))
    return _Pair(np.exp(np.maximum(log_p, log_q)), e, log_p >= log_q)


def _hellinger_density(pair: _Pair, rule: ResponseRule, n: int) -> FloatArray:
    """Hellinger distance at each of n inputs."""
    return np.sqrt(0.5 * rule.per_input(pair.larger * pair.e**2, n))


def _total_variation_density(pair: _Pair, rule: ResponseRule, n: int) -> FloatArray:
    """Total variation at each of n inputs."""
    difference = -pair.larger * pair.e * (pair.e + 2.0)
    if rule.summed:
        return 0.5 * rule.per_input(difference, n)
    signed = np.where(pair.first_is_larger, difference, -difference)
    return 0.5 * rule.per_owner(_absolute_integrals(signed, rule.weight), n)


_STATIONS = np.concatenate([[-1.0], NODES, [1.0]])


def _padded(series: ArrayLike) -> FloatArray:
    """Legendre series (terms, ORDER) with zeros up to ORDER + 1 terms."""
    known = np.asarray(series, dtype=np.float64)
    return np.vstack([known, np.zeros((ORDER + 1 - len(known), ORDER))])


# Legendre series of the interpolant, of its derivative and of its integral from -1, from values.
_INTERPOLANT = np.linalg.inv(legendre.legvander(NODES, ORDER - 1))
_SERIES = _padded(_INTERPOLANT)
_SLOPE = _padded(legendre.legder(_INTERPOLANT))
_INTEGRAL = legendre.legint(_INTERPOLANT, lbnd=-1.0)
_ENDS = legendre.legvander(np.array([-1.0, 1.0]), ORDER) @ _SERIES


def _absolute_integrals(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Integral over each panel of the modulus of a function with values (m, q) at its nodes.

    The modulus has a kink at each change of sign, which a rule for smooth functions would pay
    for.  With A the integral of the interpolant from the left end and s the sign to the right of
    the change at z, the integral of the modulus is ``s_last A(right end) - 2 sum_z s A(z)``.
    """
    ends = values @ _ENDS.T
    stations = np.concatenate([ends[:, :1], values, ends[:, 1:]], axis=1)
    negative = stations < 0.0
    total = np.where(negative[:, -1], -1.0, 1.0) * np.einsum("mq,mq->m", weight, values)
    panel, station = np.nonzero(negative[:, 1:] != negative[:, :-1])
    if panel.size == 0:
        return total
    first, last = stations[panel, station], stations[panel, station + 1]
    low, high = _STATIONS[station], _STATIONS[station + 1]
    inside = values[panel]
    series, slope = inside @ _SERIES.T, inside @ _SLOPE.T
    root = low + (high - low) * first / (first - last)
    for _ in range(3):
        at = legendre.legvander(root, ORDER)
        steepness = np.einsum("rt,rt->r", at, slope)
        step = np.einsum("rt,rt->r", at, series) / np.where(steepness == 0.0, np.inf, steepness)
        root = np.clip(root - step, low, high)
    half = 0.5 * weight[panel].sum(axis=1)
    before = half * np.einsum("rt,rt->r", legendre.legvander(root, ORDER), inside @ _INTEGRAL.T)
    after = np.where(negative[panel, station + 1], -1.0, 1.0)
    return total - 2.0 * np.bincount(panel, weights=after * before, minlength=total.size)


def _switches(laws: Sequence[tuple[Family, FloatArray]], design: Uniform) -> FloatArray:
    """Places (m,) on the line where the active atoms of a sparse gate change, ascending.

    They are bracketed on a grid and found by bisection: close parameters differ in their active
    atoms only on slivers, which no fixed rule would hit but which are all of their distance.
    """
    switches = [np.empty(0)]
    for family, theta in laws:
        if family.gate.n_active is None or family.n_features > 1:
            continue
        grid = np.linspace(design.low, design.high, _SWITCH_GRID + 1)
        active = family.gate_probabilities(theta, grid) > 0.0
        at = np.flatnonzero(np.any(active[1:] != active[:-1], axis=1))
        low, high = grid[at], grid[at + 1]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            same = np.all((family.gate_probabilities(theta, middle) > 0.0) == active[at], axis=1)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        switches.append(high)
    return np.sort(np.concatenate(switches))


def _rule_size(n_nodes: int, n_features: int, design: Design) -> int:
    """Check `n_nodes`; a uniform design of two inputs has as many nodes on each axis."""
    axes = n_features if n_features <= 2 and isinstance(design, Uniform) else 1
    return nodes_per_input(n_nodes, axes, 2)


def _quadrature(
    design: Design, n_features: int, n_nodes: int, laws: Sequence[tuple[Family, FloatArray]] = ()
) -> tuple[FloatArray, FloatArray]:
    """Nodes (n, d) and weights (n,): panels of a uniform design, else the design's own rule.

    A steep gate or a change of sign of p - q spoils one rule of high order, but only one panel.
    """
    if not isinstance(design, Uniform):
        nodes, weights = design.quadrature(n_features, n_nodes)
        return nodes.T, weights
    switches = _switches(laws, design)
    if switches.size:
        edges = np.concatenate([_edges(design.low, design.high, n_nodes), switches])
        line, mass = _on_panels(np.sort(edges))
    else:
        line, mass = _line(design.low, design.high, n_nodes)
    if n_features == 1:
        return line[:, None], mass
    grid = np.meshgrid(*[line] * n_features, indexing="ij")
    weights = np.meshgrid(*[mass] * n_features, indexing="ij")
    points = np.stack([axis.ravel() for axis in grid], axis=1)
    return points, np.prod([axis.ravel() for axis in weights], axis=0)


@lru_cache(maxsize=16)
def _line(low: float, high: float, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (n,) on equal panels, with `n_nodes` nodes or a few more.

    Every cell of a sweep asks for the same ones.
    """
    line, mass = _on_panels(_edges(low, high, n_nodes))
    line.flags.writeable = mass.flags.writeable = False
    return line, mass


def _edges(low: float, high: float, n_nodes: int) -> FloatArray:
    """Edges of equal panels with `n_nodes` nodes or a few more."""
    return np.linspace(low, high, -(-n_nodes // _PANEL) + 1)


def _on_panels(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (n,) on panels between ascending edges."""
    unit, mass = Uniform(0.0, 1.0).quadrature(1, _PANEL)
    width = np.diff(edges)
    line = (edges[:-1, None] + width[:, None] * unit).ravel()
    return line, np.outer(width / (edges[-1] - edges[0]), mass).ravel()


def check_pair(
    family: Family, theta: ArrayLike, truth_family: Family, truth_theta: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Both parameter vectors, checked; the families must agree in inputs and classes."""
    check_family("family", family)
    check_family("truth_family", truth_family)
    d = family.n_features
    if truth_family.n_features != d or truth_family.n_classes != family.n_classes:
        # A continuous response counts as one class.
        raise ValueError(
            f"truth_family must have the inputs and classes of family: d = {d} and "
            f"K = {family.n_classes}, got d = {truth_family.n_features} and "
            f"K = {truth_family.n_classes}"
        )
    return (
        as_floats("theta", theta, (family.n_params,)),
        as_floats("truth_theta", truth_theta, (truth_family.n_params,)),
    )


# Distances at each input: from class probabilities (n, K), and by a rule over the response.
_POINTWISE = {
    "hellinger": (_hellinger, _hellinger_density),
    "total_variation": (_total_variation, _total_variation_density),
}
DISTANCES = tuple(_POINTWISE)
"""Names of distances of densities."""


@np.errstate(over="ignore", invalid="ignore")  # `_finite` looks
def distances(
    names: Sequence[str],
    family: Family,
    theta: ArrayLike,
    truth_family: Family,
    truth_theta: ArrayLike,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> dict[str, Distance]:
    """Distances of two conditional densities by name, from one set of densities.

    `names` are some of `DISTANCES`; the other arguments are those of `hellinger`.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> found = distances(DISTANCES, F, [0, 0, 1, 0], F, [0, 0, -1, 0])
    >>> {name: round(distance.value, 6) for name, distance in found.items()}
    {'hellinger': 0.336424, 'total_variation': 0.462117}
    """
    if not set(names) <= set(DISTANCES):
        raise ValueError(f"names must be some of {', '.join(DISTANCES)}, got {short(list(names))}")
    if not names:
        return {}
    pointwise = [_POINTWISE[name] for name in names]
    theta, truth_theta = check_pair(family, theta, truth_family, truth_theta)
    d = family.n_features
    design = design_of(design)
    discrete = family.likelihood.support is not None
    kind = "classes" if discrete else "density"
    default = _NODES[kind].get(d, _DRAWS[kind])
    size = default if n_nodes is None else _rule_size(n_nodes, d, design)
    laws = ((family, theta), (truth_family, truth_theta))

    def at(X: FloatArray, refinement: int) -> FloatArray:
        if discrete:
            p = family.probabilities(theta, X)
            q = at_truth(Family.probabilities, truth_family, truth_theta, X)
            return np.stack([of_classes(p, q) for of_classes, _ in pointwise])
        inputs = np.ascontiguousarray(X.T)
        values = np.empty((len(pointwise), inputs.shape[1]))
        for chunk, rule in response_rules(laws, inputs, refinement):
            part = inputs[:, chunk]
            pair = _pair(*(log_densities(*law, part, rule) for law in laws))
            for row, (_, of_density) in zip(values, pointwise, strict=True):
                row[chunk] = of_density(pair, rule, part.shape[1])
        return values

    if d not in _NODES[kind]:
        X = design.draw(size, d, np.random.default_rng(SEED)).T
        values = at(X, 2)
        errors = [float(row.std(ddof=1) / np.sqrt(size)) for row in values]
        if not discrete:
            changes = at(X, 1) - values
            errors = [e + abs(float(np.mean(row))) for e, row in zip(errors, changes, strict=True)]
        values_and_errors = zip((float(row.mean()) for row in values), errors, strict=True)
    else:
        rules = [_quadrature(design, d, m * size, laws) for m in (1, 2)]
        if discrete:
            ends = np.cumsum([len(X) for X, _ in rules])
            values = np.split(at(np.concatenate([X for X, _ in rules]), 1), ends[:-1], axis=1)
        else:
            values = [at(X, m) for m, (X, _) in enumerate(rules, 1)]
        coarse, fine = (
            [float(weights @ row) for row in row]
            for row, (_, weights) in zip(values, rules, strict=True)
        )
        values_and_errors = ((f, abs(f - c)) for c, f in zip(coarse, fine, strict=True))
    return {
        name: _finite(*each, largest=1.0)
        for name, each in zip(names, values_and_errors, strict=True)
    }


@door()
def hellinger(
    family: Family,
    theta: ArrayLike,
    truth_family: Family,
    truth_theta: ArrayLike,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> Distance:
    """Expected Hellinger distance between two conditional densities, ``E_X d_H(p(.|X), q(.|X))``.

    Parameters
    ----------
    family : Family
        Model of the estimate.
    theta : array_like of shape (P,)
        Packed parameters of the estimate.
    truth_family : Family
        Model of the truth, with the same inputs and the same classes or continuous response;
        gate, expert and number of experts may differ.
    truth_theta : array_like of shape (P*,)
        Packed parameters of the truth.
    design : Design, optional
        Distribution of X; uniform on [0, 1]^d by default.
    n_nodes : int, optional
        Nodes per axis for d <= 2 (512 for d = 1, 64 for d = 2; 128 and 24 for a continuous
        response), number of draws for d > 2 (20000 or 5000, from a generator with a fixed seed).

    Returns
    -------
    Distance
        The value in [0, 1] and its numerical error.

    Raises
    ------
    ValueError
        If the families differ in inputs, in classes or in having any, parameters have another
        length or are not finite, or `n_nodes` < 2.

    Notes
    -----
    Pham et al. (2026), end of Sec. 1: ``d_H(p, q)^2 = (1/2) sum_s (sqrt(p_s) - sqrt(q_s))^2``; for
    densities an integral over y in place of the sum, Nguyen et al. (2025), table of notation.  The
    sum over classes is exact; an integral is a quadrature as in
    `moestat.metrics.quadrature.response_rules`. The mean over X is Gauss-Legendre quadrature on
    panels for d <= 2 and Monte Carlo for d > 2. Pointwise ``d_H^2 <= d_V <= sqrt(2) d_H``.  A top-K
    gate jumps where its active atoms change: with one uniform input these places are found and end
    panels.  With more inputs, or another design, slivers on which only one of the two gates has
    switched may be missed.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> round(hellinger(F, [0, 0, 1, 0], F, [0, 0, -1, 0]).value, 6)
    0.336424

    Two normal densities with variance 1, a distance of 1 apart:

    >>> F = family("gaussian", gate="competition", n_experts=1)
    >>> round(hellinger(F, [0, 0, 0], F, [1, 0, 0]).value, 6)
    0.342787
    """
    pair = (family, theta, truth_family, truth_theta)
    return distances(("hellinger",), *pair, design, n_nodes)["hellinger"]


@door()
def total_variation(
    family: Family,
    theta: ArrayLike,
    truth_family: Family,
    truth_theta: ArrayLike,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> Distance:
    """Expected total variation between two conditional densities, ``E_X d_V(p(.|X), q(.|X))``.

    Parameters
    ----------
    family, theta, truth_family, truth_theta, design, n_nodes
        As in `hellinger`.

    Returns
    -------
    Distance
        The value in [0, 1] and its numerical error.

    Raises
    ------
    ValueError
        As `hellinger`.

    Notes
    -----
    Pham et al. (2026), end of Sec. 1: ``d_V(p, q) = (1/2) sum_s |p_s - q_s|``; for densities an
    integral over y in place of the sum, Nguyen et al. (2025), table of notation.  Sum, integral and
    mean are taken as in `hellinger`, and an integral is split where p - q changes its sign.  As x
    moves, such places come and go, which limits the mean over X to about five digits.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> round(total_variation(F, [0, 0, 1, 0], F, [0, 0, -1, 0]).value, 6)
    0.462117

    >>> F = family("gaussian", gate="competition", n_experts=1)
    >>> round(total_variation(F, [0, 0, 0], F, [1, 0, 0]).value, 6)
    0.382925
    """
    pair = (family, theta, truth_family, truth_theta)
    return distances(("total_variation",), *pair, design, n_nodes)["total_variation"]


@np.errstate(over="ignore", invalid="ignore")
@door()
def regression_error(
    family: Family,
    theta: ArrayLike,
    truth_family: Family,
    truth_theta: ArrayLike,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> Distance:
    """Distance of two regression functions, ``||f - f*||`` in L2 of the inputs' distribution.

    Parameters
    ----------
    family : Family
        Model of the estimate, of regression functions or of a continuous response.
    theta, truth_family, truth_theta, design, n_nodes
        As in `hellinger`; 512 nodes for d = 1, 64 for d = 2 and 20000 draws for d > 2.

    Returns
    -------
    Distance
        The value, in the units of y, and its numerical error.

    Raises
    ------
    ValueError
        If the families differ in inputs, have class responses, parameters have another length or
        are not finite, or `n_nodes` < 2.

    Notes
    -----
    Yan et al. (2025), Proposition 1.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> round(regression_error(F, [0, 0, 0, 1], F, [0, 0, 1, 1]).value, 12)
    1.0
    """
    theta, truth_theta = check_pair(family, theta, truth_family, truth_theta)
    d = family.n_features
    design = design_of(design)
    default = _NODES["classes"].get(d, _DRAWS["classes"])
    size = default if n_nodes is None else _rule_size(n_nodes, d, design)

    def squares(X: FloatArray) -> FloatArray:
        return (family.mean(theta, X) - at_truth(Family.mean, truth_family, truth_theta, X)) ** 2

    if d not in _NODES["classes"]:
        values = squares(design.draw(size, d, np.random.default_rng(SEED)).T)
        value = float(np.sqrt(values.mean()))
        # Of the root, by the delta method.
        error = float(values.std(ddof=1) / np.sqrt(size)) / (2.0 * value) if value > 0 else 0.0
        return _finite(value, error)
    coarse, fine = (
        float(np.sqrt(weights @ squares(X)))
        for X, weights in (_quadrature(design, d, m * size) for m in (1, 2))
    )
    return _finite(fine, abs(fine - coarse))
