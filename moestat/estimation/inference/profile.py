"""Profile likelihood: intervals of parameters for which Wald's interval is misleading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from moestat.base.door import door
from moestat.base.figures import CURVE_POINTS, new_axes
from moestat.base.types import FloatArray
from moestat.base.validate import real_in, short
from moestat.estimation.data.naming import present_names
from moestat.estimation.fit.delta import features
from moestat.estimation.fit.identified import gap_places
from moestat.estimation.inference.hypotheses import check_not_higher
from moestat.estimation.inference.inner_fit import InnerFit, check_likelihood, inner_fit
from moestat.estimation.inference.restricted import (
    differences,
    minimise,
    negative_log_likelihood,
)
from moestat.model.constraints import averaged
from moestat.solvers.rules import HALF_OF_DIGITS, TINY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from moestat.estimation.fit.fitted import Fitted


__all__ = ["Profile", "combination", "intervals_of_means", "profile"]

_FARTHEST = 1e3
"""Distance, in standard errors or units of the predictors, beyond which an end is at infinity."""

_MOST_ROWS = 200
"""Largest number of means whose intervals are computed one by one."""


@dataclass(frozen=True)
class Profile:
    """The profile log-likelihood of one parameter.

    Parameters
    ----------
    name : str
        Name of the parameter.
    estimate : float
        Its estimate.
    values, log_likelihood : ndarray of shape (m,)
        Values at which the parameter was fixed, ascending, and the maximum over all others there,
        minus the overall maximum.
    interval : tuple of float
        The values at which twice the decrease of the log-likelihood is below the quantile of the
        chi-square distribution with one degree of freedom.  An end is infinite if the
        log-likelihood does not decrease enough on that side.
    alpha : float
        One minus the level.
    """

    name: str
    estimate: float
    values: FloatArray = field(repr=False)
    log_likelihood: FloatArray = field(repr=False)
    interval: tuple[float, float]
    alpha: float

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{self.name}: {1.0 - self.alpha:.4g} profile interval ({low:.4g}, {high:.4g})"
        far = zip(self.interval, (self.values[0], self.values[-1]), strict=True)
        ends = [f"{last:.4g}" for end, last in far if not np.isfinite(end)]
        if not ends:
            return text
        return (
            f"{text}. Followed to {' and '.join(ends)}, the log-likelihood stays above the cut:"
            " no finite end there"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the profile log-likelihood and the level that defines the interval.

        Between the computed points the signed root of the decrease is interpolated, which is nearly
        linear if the profile is nearly a parabola.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, which are also returned; by default those of a new figure.
        """
        from scipy.interpolate import PchipInterpolator
        from scipy.stats import chi2

        axes: Axes = new_axes() if ax is None else ax
        values, first = np.unique(self.values, return_index=True)
        height = self.log_likelihood[first]
        root = np.sign(values - values[height.argmax()]) * np.sqrt(np.maximum(-height, 0.0))
        grid = np.linspace(values[0], values[-1], CURVE_POINTS)
        (line,) = axes.plot(grid, -(PchipInterpolator(values, root)(grid) ** 2))
        axes.plot(self.values, self.log_likelihood, "o", color=line.get_color())
        axes.axhline(-0.5 * float(chi2.isf(self.alpha, 1)), linestyle=":", color="0.5")
        axes.set(xlabel=self.name, ylabel="profile log-likelihood less its maximum")
        return axes


@door()
def profile(result: Fitted, name: str, alpha: float = 0.05) -> Profile:
    """Compute the profile likelihood interval of a parameter.

    Parameters
    ----------
    result : MoEResults
        A certified fit.
    name : str
        One of ``result.param_names``.
    alpha : float
        One minus the level.

    Returns
    -------
    Profile
        The interval, and the points at which the profile was computed.

    Raises
    ------
    ValueError
        If the name is unknown, the parameter is not identified, the fit is not certified, or the
        computation finds a higher likelihood, so that the fit was not the maximum.

    Notes
    -----
    The ends of the interval are searched up to a thousand standard errors away from the estimate.
    A parameter at infinity has no standard error; its ends are searched up to a thousand units of
    the predictors, or until 0.

    Examples
    --------
    >>> from moestat import family, fit
    >>> x = np.linspace(-1, 1, 40)
    >>> y = 1 + 2 * x + np.where(np.arange(40) % 2, 0.5, -0.5)
    >>> result = fit(family("gaussian", gate="softmax", n_experts=1), x, y, rng=0)
    >>> [round(end, 3) for end in profile(result, "log nu[1]").interval]
    [-1.797, -0.915]
    """
    level = real_in("alpha", alpha, 0.0, 0.999, open_low=True)
    check_likelihood("profile", result.family)
    names, name = result.param_names, present_names(name, result.family, result.data)
    if name not in names:
        known = [each for own in result._terms.values() for each in own]
        raise ValueError(f"name: unknown parameter {short(name)}; known: {', '.join(known)}")
    if not result.certificate.certified:
        raise ValueError(
            "profile needs a certified fit, and this one is not certified as a local maximum"
        )
    j = names.index(name)
    theta = float(result.theta[j])
    inner = inner_fit(result)
    ends, visited, unit = _find_interval(inner, inner.row(j), theta, level, name)
    order = sorted(visited)
    return Profile(
        name,
        theta,
        theta + unit * np.array(order),
        np.array([visited[t] for t in order]),
        ends,
        level,
    )


def combination(result: Fitted, row: FloatArray, alpha: float) -> tuple[float, float]:
    """The profile likelihood interval of a linear combination of parameters."""
    inner = inner_fit(result)
    matrix = np.eye(row.size) if inner.coordinates is None else inner.coordinates.matrix
    return _find_interval(inner, row @ matrix, float(row @ result.theta), alpha, "a mean")[0]


@np.errstate(all="ignore")
def intervals_of_means(result: Fitted, alpha: float, X: FloatArray) -> FloatArray | None:
    """Profile likelihood intervals of means (n, 2), or probabilities (n, 2, 2), at inputs X (n, d).

    They exist for one expert without groups whose mean is a function of one predictor, a linear
    combination of the parameters.  Returns None for other models, for posterior modes, for fits
    without their data, and at more than 200 rows.
    """
    family, two = result.family, result.family.likelihood.name == "multinomial"
    one = family.n_experts == 1 and (family.n_classes == 2 if two else family.likelihood.counts)
    plain = result.has_rows and result.prior is None and result.certificate.certified
    if not (one and plain) or len(X) > _MOST_ROWS or family.expert.name != "linear":
        return None
    c, theta = family.first_expert_channel, result.theta
    first, others = int(family.index[0, c]), np.arange(1, int(family.width[c]))
    phi, eta = features(X), family.predictors(theta, np.ascontiguousarray(X.T))
    _, places, back = np.unique(phi, axis=1, return_index=True, return_inverse=True)
    ends = np.empty((places.size, 2))
    for i, at in enumerate(places):
        row = np.zeros(theta.size)
        row[first] = 1.0
        row[first + others] = phi[family.offset[c] + others - 1, at]
        try:
            ends[i] = combination(result, row, alpha)
        except ValueError:  # a higher maximum, or the data do not determine the predictor
            ends[i] = -np.inf, np.inf
        ends[i] += eta[0, 0, at] - row @ theta
    ends = ends[back.ravel()]
    if two:
        chance = expit(ends)
        return np.stack([chance, 1.0 - chance[:, ::-1]], axis=1)
    assert family.likelihood.spread is not None
    means = []
    for side in ends.T:
        shifted = eta.copy()
        shifted[0, 0] = side
        means.append(family.likelihood.spread(shifted)[0][0])
    return np.stack(means, axis=1)


def _find_interval(
    inner: InnerFit, row: FloatArray, theta: float, level: float, name: str
) -> tuple[tuple[float, float], dict[float, float], float]:
    """Ends of the interval of a combination, profile by steps from the estimate, and their unit."""
    from scipy.optimize import root_scalar
    from scipy.stats import chi2

    row = averaged(row, inner.family.ties)
    unit, direction = _scale(inner, row, name)
    lower, upper = inner.open_box
    free = np.flatnonzero(
        (lower < upper) & ((row != 0.0) | np.isin(range(row.size), inner.movable))
    )
    tied = differences(inner.family.ties, free)
    objective = negative_log_likelihood(inner.problem)
    top = objective(inner.theta)[0]
    cut = float(np.sqrt(chi2.isf(level, 1)))
    # A parameter at infinity may be far from the end of its interval.
    farthest = max(_FARTHEST, 2.0 * abs(theta) / unit)
    visited = {0.0: 0.0}

    def side(sign: float) -> float:
        near = 0.0, 0.0, inner.theta

        def root(step: float) -> float:
            """Root of twice the loss, with the parameter fixed so many units from the estimate."""
            if sign * step in visited:
                return float(np.sqrt(-2.0 * visited[sign * step]))
            fixed_value = float(row @ inner.theta) + sign * step * unit
            return climb(step, _starting_points(inner, row, fixed_value, direction, near[2]))

        def climb(step: float, moves: list[FloatArray]) -> float:
            """The root from the best of these points; -1 if all are outside the box."""
            nonlocal near
            inside = [np.clip(move, lower, upper) for move in moves]
            pairs = zip(moves, inside, strict=True)
            slack = HALF_OF_DIGITS * unit
            begins = [point for move, point in pairs if abs(row @ (point - move)) <= slack]
            if not begins:
                return -1.0  # the box ends before the likelihood falls
            begin = min(begins, key=lambda at: objective(at)[0])
            inside = inner.off_limits(begin, row != 0.0)
            ends = [
                minimise(objective, at, free, row[None], lower, upper, tied)
                for at in [begin, inside][: 1 + bool(np.any(inside != begin))]
            ]
            end, value, _ = min(ends, key=lambda one: one[1])
            loss = value - top
            check_not_higher(-loss, f"{name} = {theta + sign * step * unit:.6g}")
            visited[sign * step] = max(-max(loss, 0.0), visited.get(sign * step, -np.inf))
            distance = float(np.sqrt(2.0 * max(loss, 0.0)))
            if distance < cut and step > near[0]:
                near = step, distance, end
            return distance

        used = np.flatnonzero(row)
        edge = np.where(sign * row > 0.0, upper, lower)[used]
        longest = min(float(sign * row[used] @ (edge - inner.theta[used])) / unit, farthest)
        # On the way back from infinity experts could change places beyond 0: half of it at most.
        back = -sign * float(row @ inner.far_out) / unit

        def find(step: float) -> float:
            """The step to the end of the interval, from a step to begin with."""
            while (far := root(step)) < cut:
                if step >= longest or far < 0.0:
                    return np.inf
                # The signed root is nearly linear in the parameter.
                further = step * min(1.01 * cut / max(far, TINY), 3.0)
                if step < back:
                    further = min(further, step + max(0.5 * (back - step), cut))
                step = min(further, longest)
            return float(
                root_scalar(
                    lambda at: root(at) - cut, bracket=(near[0], step), rtol=HALF_OF_DIGITS
                ).root
            )

        end = find(min(cut, longest))
        # With several experts the maximum at the end may be another than the one followed.
        for _ in range(inner.family.n_experts - 1):
            if not np.isfinite(end):
                break
            here = inner.theta + sign * end * unit * row / (row @ row)
            if not 0.0 <= climb(end, [here]) < cut - HALF_OF_DIGITS**0.5:
                break
            end = find(end)
        return end

    return (theta - side(-1.0) * unit, theta + side(1.0) * unit), visited, unit


def _starting_points(
    inner: InnerFit, row: FloatArray, fixed_value: float, direction: FloatArray, near: FloatArray
) -> list[FloatArray]:
    """Starting points (P,) with a combination fixed at a value, next to a maximum with another one.

    Far from the maximum the likelihood may have slopes without curvature.  So besides the nearest
    point there is one without the component along flat directions, and one where this component has
    grown in proportion: predictors by a factor, logarithms of distances between thresholds by the
    logarithm of the factor.
    """
    centre = inner.theta - inner.far_out
    moves = [at + (fixed_value - row @ at) * direction for at in (near, centre)]
    gaps, ray = gap_places(inner.family), near - centre
    ray[gaps] = 0.0
    with np.errstate(all="ignore"):
        one = fixed_value - row @ near
        factor = np.exp(one) if np.any(row[gaps]) else 1.0 + one / (row @ ray)
        grown = near + (factor - 1.0) * ray
        grown[gaps] += np.log(factor)
    return [*moves, grown] if np.isfinite(grown).all() else moves


def _scale(inner: InnerFit, row: FloatArray, name: str) -> tuple[float, FloatArray]:
    """A unit of a parameter, and the direction (P,) along which to move it by 1.

    They are its standard error and the best linear guess of the maxima on the way; where the
    likelihood is flat, a unit of the predictors and the flat direction.
    """
    identified = inner.identified
    basis = identified.determined if identified.seen(row[None])[0] else identified.flat
    if not identified.definite or np.any(row[identified.held]) or identified.related(row[None])[0]:
        basis = identified.determined[:, :0]
    along = row @ basis
    spread = float(np.linalg.norm(along))
    if spread == 0.0:
        raise ValueError(
            f"name: {name!r} has no standard error (it is a reference, on a bound, or not"
            " identified)"
        )
    return spread, basis @ along / spread**2
