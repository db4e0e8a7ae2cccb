"""Maximum likelihood of m normal atoms on counts of a standard normal sample, at any size.

Data are counts on a lattice: what a sample of any size n is up to the lattice's step, since sums
over a lattice of half a standard deviation or finer are integrals of normal densities to rounding.
In the units of the limit (`experiments.limit_law.law`) the likelihood is a narrow valley: what the
first 2 m coefficients miss of their scores are variables of their own, tied to the atoms by
equations, so that the valley is walked along and its sides are never divided by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from experiments.limit_law.law import FLOOR, coefficients, scales
from moestat.base.types import FloatArray

__all__ = ["REPLICATES", "SIZES", "Fit", "draw_counts", "fit"]

SIZES = tuple(10.0**power for power in range(6, 21, 2))
REPLICATES = {2: 300, 3: 300, 4: 100}
"""The design, fixed before any run, by the number of atoms: an ascent of four atoms takes ten times
as long as one of three."""
_STEP, _REACH = 0.25, 9.0
_NODES = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
_MASSES = _STEP * np.exp(-0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)
_NARROW, _WIDE, _FAR = -0.45, 4.5, 4.0
"""Half variances less that of the truth, and means, of the compact set; no fit ends there."""
_MANY = 1e9
"""Counts with a larger mean are drawn as normal."""
_SAME = 0.01
"""Starts whose log-likelihoods differ by at most this agree."""
_BEYOND = 8
"""Coefficients after the first 2 m that enter one by one; later ones are below rounding."""
_STARTS, _TRIED = 8, 40
"""Ascents that end, and the most that are tried for them."""
_TIED = 1e-8
"""An ascent ends where its equations hold so well; what else it says of itself does not count."""


@dataclass(frozen=True)
class Fit:
    """An estimate.

    Parameters
    ----------
    error : float
        The largest error of a mean.
    variance_error : float
        The largest error of a variance.
    mass : float
        The lightest atom's mass.
    score : float
        The score of order 2 m of the data, standardised.
    gain : float
        Log-likelihood over that of the truth.
    agree : float
        Share of the starts that end within 0.01 of the best.
    doubling : float
        What the second half of the starts added to the log-likelihood.
    """

    error: float
    variance_error: float
    mass: float
    score: float
    gain: float
    agree: float
    doubling: float


def draw_counts(n: float, rng: np.random.Generator) -> FloatArray:
    """Deviations of the counts of about `n` draws from their means."""
    means = n * _MASSES
    few = np.minimum(means, _MANY)
    normal = np.sqrt(means) * rng.standard_normal(means.size)
    deviations = np.where(means > _MANY, normal, rng.poisson(few) - means)
    return deviations - _MASSES / _MASSES.sum() * deviations.sum()


class _Problem:
    """Masses, means and half variances in the units of the limit, and misses of 2 m scores."""

    def __init__(self, n: float, deviations: FloatArray, m: int) -> None:
        self.n, self.deviations, self.m = n, deviations, m
        most = 2 * m + _BEYOND
        order = np.arange(most + 1)
        self.weights = n ** (0.5 - order / (4 * m)) * scales(most)
        hermite = np.polynomial.hermite_e.hermevander(_NODES, most)
        self.scores = deviations @ hermite / (np.sqrt(n) * scales(most))
        first = slice(1, 2 * m + 1)
        self._hermite = hermite[:, first] * n ** (-order[first] / (4 * m))
        self._misses = np.diag(-1.0 / self.weights[: 2 * m + 1])[:, 1:]
        self._last: tuple[FloatArray, tuple[FloatArray, FloatArray]] | None = None
        self.units = np.repeat(n ** np.array([0.0, -1.0 / (4 * m), -1.0 / (2 * m)]), m)

    def _series(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients and slopes, which all functions of one iteration share."""
        if self._last is None or not np.array_equal(self._last[0], v):
            self._last = (v.copy(), coefficients(v[: 3 * self.m], self.weights.size - 1))
        return self._last[1]

    def mean_loss(self, v: FloatArray) -> tuple[float, FloatArray]:
        """Half the sum of squares of the normal limit, and its slopes."""
        c, slopes = self._series(v)
        missed, late = v[3 * self.m :], slice(2 * self.m + 1, None)
        after = self.weights[late] * c[late] - self.scores[late]
        turned = (self.weights[late] * after) @ slopes[late]
        return 0.5 * float(missed @ missed + after @ after), np.concatenate([turned, missed])

    def loss(self, v: FloatArray) -> tuple[float, FloatArray]:
        """The negative log-likelihood but for a constant: the former less what is not quadratic."""
        value, slopes = self.mean_loss(v)
        rest, turned = self.cubic(v)
        return value - rest, slopes - turned

    def cubic(self, v: FloatArray) -> tuple[float, FloatArray]:
        """The log-likelihood's terms of third and higher order in the density, and slopes.

        Where the equations do not hold yet the first 2 m coefficients are taken as they ask, so
        that the density stays near the truth's.
        """
        masses, means, halves = np.split(v[: 3 * self.m] * self.units, 3)
        variance = 1.0 + 2.0 * halves
        y = _NODES[:, None]
        top = y * means - 0.5 * means**2 + halves * y**2
        logs = np.minimum(top / variance - 0.5 * np.log1p(2.0 * halves), 100.0)
        r = np.expm1(logs) @ masses - self._hermite @ self.tied(v)[1:]
        r = np.maximum(r, -1.0 + 1e-9)
        small = np.abs(r) < 1e-4
        log = np.where(small, -(r**2) / 2 + r**3 / 3 - r**4 / 4, np.log1p(r) - r)
        cubed = np.where(small, r**3 / 3 - r**4 / 4, log + r**2 / 2)
        value = float(self.n * (_MASSES @ cubed) + self.deviations @ log)
        turned = r / (1.0 + r) * (self.n * _MASSES * r - self.deviations)
        p, z = masses * np.exp(logs), (y - means) / variance
        slopes = np.hstack([np.expm1(logs), p * z, p * (z**2 - 1.0 / variance)])
        moved = np.concatenate([(turned @ slopes) * self.units, np.zeros(2 * self.m)])
        return value, moved - turned @ self._hermite @ self.ties(v)[1:]

    def tied(self, v: FloatArray) -> FloatArray:
        """Zero where masses add up to one and misses are those of the atoms."""
        first = slice(1, 2 * self.m + 1)
        wanted = (self.scores[first] + v[3 * self.m :]) / self.weights[first]
        return self._series(v)[0][: 2 * self.m + 1] - np.concatenate([[1.0], wanted])

    def ties(self, v: FloatArray) -> FloatArray:
        """Derivatives of `tied`."""
        return np.hstack([self._series(v)[1][: 2 * self.m + 1], self._misses])

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Atoms at random in the units of the limit, mean and mean variance as the truth's."""
        masses = FLOOR + (1.0 - self.m * FLOOR) * rng.dirichlet(np.ones(self.m))
        size = (np.abs(self.scores[2 * self.m]) / scales(2 * self.m)[-1]) ** (0.5 / self.m)
        means = size * rng.uniform(1.0, 4.0) * rng.standard_normal(self.m)
        means -= masses @ means
        spread = 0.3 * np.mean(means**2) * rng.standard_normal(self.m)
        halves = spread - 0.5 * masses @ means**2
        return np.concatenate([masses, means, halves, np.zeros(2 * self.m)])

    def solved(self, v: FloatArray) -> OptimizeResult:
        """An ascent of the normal limit, then of the likelihood from where it ends."""
        m, (_, far, wide) = self.m, self.units.reshape(3, self.m)[:, 0]
        bounds = [(FLOOR, 1.0)] * m + [(-_FAR / far, _FAR / far)] * m
        bounds += [(_NARROW / wide, _WIDE / wide)] * m + [(None, None)] * (2 * m)
        with np.errstate(over="ignore", invalid="ignore"):  # far trial points, never ends
            for aim in (self.mean_loss, self.loss):
                found = minimize(
                    aim, v, jac=True, method="SLSQP", bounds=bounds,
                    constraints={"type": "eq", "fun": self.tied, "jac": self.ties},
                    options={"maxiter": 2000, "ftol": 1e-10},
                )  # fmt: skip
                v = found.x
        if not np.abs(self.tied(v)).max() <= _TIED:
            found.fun = np.inf
        return found


def fit(n: float, deviations: FloatArray, m: int, rng: np.random.Generator) -> Fit:
    """The best of eight ascents of the likelihood, masses at least `FLOOR`.

    Parameters
    ----------
    n : float
        Sample size.
    deviations : ndarray
        As `draw_counts` gives them.
    m : int
        Atoms.
    rng : numpy.random.Generator
        Draws the starts.

    Returns
    -------
    Fit
        The estimate.

    Raises
    ------
    RuntimeError
        If no start ends.
    """
    problem = _Problem(n, deviations, m)
    ends: list[OptimizeResult] = []
    for _ in range(_TRIED):
        found = problem.solved(problem.start(rng))
        ends += [found] if np.isfinite(found.fun) else []
        if len(ends) == _STARTS:
            break
    if len(ends) < 2:
        raise RuntimeError(f"{len(ends)} of {_TRIED} ascents ended at n = {n:g} with {m} atoms")
    losses = np.array([end.fun for end in ends])
    best, half = int(np.argmin(losses)), len(ends) // 2
    masses, means, halves = np.split(ends[best].x[: 3 * m] * problem.units, 3)
    return Fit(
        error=float(np.abs(means).max()),
        variance_error=float(2.0 * np.abs(halves).max()),
        mass=float(masses.min()),
        score=float(problem.scores[2 * m]),
        gain=float(0.5 * np.sum(problem.scores[1:] ** 2) - losses[best]),
        agree=float(np.mean(losses <= losses[best] + _SAME)),
        doubling=float(max(losses[:half].min() - losses[best], 0.0)),
    )
