"""Profile likelihood: the interval of a parameter where Wald's is misleading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.figures import new_axes
from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.estimation.inference.found import check_likelihood, found
from moestat.estimation.inference.restricted import minimise, negative_log_likelihood

__all__ = ["Profile", "profile"]

_FARTHEST = 1e3
"""An end that is not met within so many standard errors is reported as infinite."""


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
        Values at which it was held, ascending, and the maximum over all others less the overall
        one.
    interval : tuple of float
        Where twice the loss of log-likelihood is below the quantile of chi-square with one degree
        of freedom; an end is infinite when the log-likelihood stays above on that side.
    alpha : float
        One minus the level.
    """

    name: str
    estimate: float
    values: FloatArray = field(repr=False)
    log_likelihood: FloatArray = field(repr=False)
    interval: tuple[float, float]
    alpha: float

    def plot(self, ax: Any = None) -> Any:
        """The profile with its cut.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from scipy.stats import chi2

        if ax is None:
            ax = new_axes()
        ax.plot(self.values, self.log_likelihood, "o-")
        ax.axhline(-0.5 * chi2.ppf(1.0 - self.alpha, 1), linestyle=":", color="0.5")
        ax.set_xlabel(self.name)
        ax.set_ylabel("profile log-likelihood less its maximum")
        return ax


def profile(result: Any, name: str, alpha: float = 0.05) -> Profile:
    """The profile likelihood interval of a parameter.

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
        The interval, and the points that were visited.

    Raises
    ------
    ValueError
        If the name is unknown, the parameter has no standard error, the fit is not certified, or
        a higher likelihood is met on the way: the fit was not the maximum then.

    Examples
    --------
    >>> from moestat import family, fit
    >>> x = np.linspace(-1, 1, 40)
    >>> y = 1 + 2 * x + np.where(np.arange(40) % 2, 0.5, -0.5)
    >>> result = fit(family("gaussian", gate="softmax", n_experts=1), x, y, rng=0)
    >>> [round(end, 3) for end in profile(result, "log nu[0]").interval]
    [-1.797, -0.915]
    """
    from scipy.stats import chi2

    level = real_in("alpha", alpha, 0.0, 0.999, open_low=True)
    check_likelihood("profile", result.family)
    names = result.param_names
    if name not in names:
        raise ValueError(f"name: unknown parameter {name!r}; known: {', '.join(names)}")
    if not result.certificate.certified:
        raise ValueError("profile needs a certified fit: nothing is known about this one's height")
    j = names.index(name)
    inner = found(result)
    V = inner.covariance
    row = inner.row(j)
    spread = float(np.sqrt(row @ V @ row))
    error = float(np.asarray(result.bse)[j])
    if not np.isfinite(error) or error <= 0.0:
        raise ValueError(
            f"name: {name!r} has no standard error (it is a reference, on a bound, or not"
            " identified)"
        )
    free = inner.free
    objective = negative_log_likelihood(inner.problem)
    top = objective(inner.theta)[0]
    direction = V @ row / spread**2
    cut = float(np.sqrt(chi2.ppf(1.0 - level, 1)))
    visited = {0.0: 0.0}

    def side(sign: float) -> float:
        start, root = inner.theta, 0.0
        last, last_root, step = 0.0, 0.0, cut
        while step < _FARTHEST:
            moved = start + sign * (step - last) * spread * direction
            end, value, _ = minimise(
                objective, moved, free, row[None], inner.family.lower, inner.family.upper
            )
            loss = value - top
            if loss < -1e-3:
                raise ValueError(
                    f"a log-likelihood higher by {-loss:.3g} was met at {name} ="
                    f" {result.theta[j] + sign * step * spread:.6g}: the fit was not the maximum;"
                    " fit again with more starts"
                )
            visited[sign * step] = -max(loss, 0.0)
            root = float(np.sqrt(2.0 * max(loss, 0.0)))
            if abs(root - cut) < 1e-6 * cut:
                return step
            # The signed root is nearly linear in the parameter.
            slope = (root - last_root) / (step - last) if step != last else 0.0
            start, previous = end, (step, root)
            if slope <= 0.0:
                step *= 2.0
            else:
                step = min(max(step + (cut - root) / slope, 0.25 * step), 3.0 * step)
            last, last_root = previous
            if abs(step - last) < 1e-9 * step:
                return step
        return np.inf

    ends = result.theta[j] - side(-1.0) * spread, result.theta[j] + side(1.0) * spread
    order = sorted(visited)
    return Profile(
        name,
        float(result.theta[j]),
        result.theta[j] + spread * np.array(order),
        np.array([visited[t] for t in order]),
        (float(ends[0]), float(ends[1])),
        level,
    )
