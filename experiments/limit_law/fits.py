"""Maximum likelihood of two normal atoms on counts of a standard normal sample, at any size.

Data are counts on a lattice: what a sample of any size n is up to the lattice's step, since sums
over a lattice of half a standard deviation or finer are integrals of normal densities to rounding.
The deviance is a sum of squares, its terms written in the relative difference of the density to
the truth, which the means' own size does not cancel: rounding in it is of order n^(3/8) 1e-16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from experiments.limit_law.law import FLOOR, SCALES
from moestat.base.types import FloatArray

__all__ = ["Fit", "draw_counts", "fit"]

_STEP, _REACH = 0.25, 9.0
_NODES = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
_MASSES = _STEP * np.exp(-0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)
_NARROW = -0.45
"""Least half variance over the truth's; no fit ends there."""
_MANY = 1e9
"""Counts with a larger mean are drawn as normal."""
_SAME = 0.01
"""Starts whose log-likelihoods differ by at most this agree."""


@dataclass(frozen=True)
class Fit:
    """An estimate.

    Parameters
    ----------
    error : float
        The larger error of a mean.
    variance_error : float
        The larger error of a variance.
    mass : float
        The lighter atom's mass.
    fourth : float
        The fourth score of the data, standardised.
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
    fourth: float
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


def _excess(x: FloatArray) -> FloatArray:
    """(1 + x) log(1 + x) - x, without cancellation."""
    small = np.abs(x) < 1e-3
    near = np.where(small, x, 0.0)
    series = near**2 * (0.5 - near / 6 + near**2 / 12 - near**3 / 20 + near**4 / 30)
    far = np.where(small, 1.0, np.maximum(x, -1.0))
    logs = np.log1p(np.where(far <= -1.0, 0.0, far))
    return np.where(small, series, (1.0 + far) * logs - far)


def _log_ratios(means: FloatArray, halves: FloatArray) -> FloatArray:
    """Log N(y; mean, 1 + 2 half) / N(y; 0, 1) at the nodes, a row an atom."""
    means, halves = means[:, None], halves[:, None]
    top = _NODES * means - 0.5 * means**2 + halves * _NODES**2
    # A trial step may be far out; it is rejected, and must not overflow.
    return np.minimum(top / (1.0 + 2.0 * halves) - 0.5 * np.log1p(2.0 * halves), 100.0)


class _Problem:
    """The deviance in scaled coordinates (mean, b', d, beta', w)."""

    def __init__(self, n: float, deviations: FloatArray, powers: tuple[float, float]) -> None:
        self.n, self.deviations = n, deviations
        self.scales = n ** -np.array([0.5, 0.5, *powers, 0.0])

    def atoms(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Masses, means and half variances."""
        mean, level, d, split, w = theta * self.scales
        q = w * (1.0 - w)
        beta = split - (1.0 - 2.0 * w) * d**2 / 6.0
        masses = np.array([w, 1.0 - w])
        means = mean + np.array([(1.0 - w) * d, -w * d])
        halves = level - 0.5 * q * d**2 + np.array([(1.0 - w) * beta, -w * beta])
        return masses, means, np.maximum(halves, _NARROW)

    def relative(self, theta: FloatArray) -> FloatArray:
        """The density over the truth's, less 1."""
        masses, means, halves = self.atoms(theta)
        return np.maximum(masses @ np.expm1(_log_ratios(means, halves)), -1.0 + 1e-12)

    def slopes(self, theta: FloatArray) -> FloatArray:
        """Derivatives of `relative` in the scaled coordinates."""
        masses, means, halves = self.atoms(theta)
        _, _, d, split, w = theta * self.scales
        logs = _log_ratios(means, halves)
        p = masses[:, None] * np.exp(logs)
        means, variance = means[:, None], 1.0 + 2.0 * halves[:, None]
        in_mean = (_NODES - means) / variance
        in_half = in_mean**2 - 1.0 / variance
        q, beta = w * (1.0 - w), split - (1.0 - 2.0 * w) * d**2 / 6.0
        turn = 1.0 - 2.0 * w
        # Rows: how means and half variances of the two atoms move with (d, beta', w).
        moved = np.array([[1.0 - w, -w], [0.0, 0.0], [-d, -d]])
        level = -0.5 * np.array([2.0 * q * d, 0.0, turn * d**2])
        inner = np.array([-turn * d / 3.0, 1.0, d**2 / 3.0])
        outer = inner[:, None] * np.array([1.0 - w, -w]) + np.outer([0.0, 0.0, -1.0], [beta] * 2)
        outer += level[:, None]
        columns = [np.sum(p * in_mean, axis=0), np.sum(p * in_half, axis=0)]
        for mean, half in zip(moved, outer, strict=True):
            columns.append(np.sum(p * (mean[:, None] * in_mean + half[:, None] * in_half), axis=0))
        columns[-1] = columns[-1] + np.expm1(logs[0]) - np.expm1(logs[1])
        return np.stack(columns, axis=1) * self.scales

    def residuals(self, theta: FloatArray) -> FloatArray:
        """Signed roots of the deviance's terms."""
        relative = self.relative(theta)
        means = self.n * _MASSES * (1.0 + relative)
        x = np.maximum((self.deviations - self.n * _MASSES * relative) / means, -1.0)
        return np.sign(x) * np.sqrt(np.maximum(2.0 * means * _excess(x), 0.0))

    def jacobian(self, theta: FloatArray) -> FloatArray:
        """Derivatives of `residuals`: -x / residual per unit of a cell's mean."""
        relative, slopes = self.relative(theta), self.slopes(theta)
        means = self.n * _MASSES * (1.0 + relative)
        x = np.maximum((self.deviations - self.n * _MASSES * relative) / means, -1.0)
        residuals = self.residuals(theta)
        ratio = np.where(np.abs(x) < 1e-8, 1.0 / np.sqrt(means), x / np.where(x, residuals, 1.0))
        return -(ratio * self.n * _MASSES)[:, None] * slopes

    def gain(self, theta: FloatArray) -> float:
        """Log-likelihood over that of the truth."""
        r = self.relative(theta)
        return float(self.deviations @ np.log1p(r) + self.n * (_MASSES @ (np.log1p(r) - r)))


def _starts(
    n: float, deviations: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[tuple[float, float], FloatArray]]:
    """Powers of n for (d, beta') and a start in such units: both regimes, three masses each.

    The second half is the first one moved at random, means and variances by their own size.
    """
    first, second, third, fourth = (_score(order, n, deviations) for order in (1, 2, 3, 4))
    level = (first / SCALES[1], second / SCALES[2])
    for scale in (0.0, 0.5):
        for w in (FLOOR, 0.5, 1.0 - FLOOR):
            q = w * (1.0 - w)
            apart = (36.0 * abs(fourth) / SCALES[4] / (q * (1.0 - q))) ** 0.25
            spread = np.sqrt(2.0 * abs(fourth) / SCALES[4] / q)
            cubic = third / SCALES[3] / q
            for powers, d, split in (
                ((0.125, 0.375), apart, cubic / apart),
                ((0.25, 0.25), cubic / spread, spread),
            ):
                start = np.array([*level, d, split, w])
                start[:4] *= np.exp(scale * rng.standard_normal(4))
                yield powers, start


def _score(order: int, n: float, deviations: FloatArray) -> float:
    """The standardised score of one Hermite polynomial."""
    polynomial = np.polynomial.hermite_e.HermiteE.basis(order)(_NODES)
    return float(polynomial @ deviations / (np.sqrt(n) * SCALES[order]))


def fit(n: float, deviations: FloatArray, rng: np.random.Generator) -> Fit:
    """The best of twelve ascents of the likelihood, masses at least `FLOOR`.

    Parameters
    ----------
    n : float
        Sample size.
    deviations : ndarray
        As `draw_counts` gives them.
    rng : numpy.random.Generator
        Moves the second half of the starts.

    Returns
    -------
    Fit
        The estimate.
    """
    low = np.array([-np.inf, -np.inf, -np.inf, -np.inf, FLOOR])
    high = np.array([np.inf, np.inf, np.inf, np.inf, 1.0 - FLOOR])
    gains, problems, ends = [], [], []
    for powers, start in _starts(n, deviations, rng):
        problem = _Problem(n, deviations, powers)
        inside = np.clip(start, low + 1e-6, high - 1e-6)
        found = least_squares(
            problem.residuals,
            inside,
            jac=problem.jacobian,  # pyright: ignore[reportArgumentType]
            bounds=(low, high),
            x_scale=np.maximum(np.abs(inside), 0.1),
            xtol=1e-8,
            ftol=1e-10,
            max_nfev=60,
        )
        gains.append(problem.gain(found.x))
        problems.append(problem)
        ends.append(found.x)
    best = int(np.argmax(gains))
    masses, means, halves = problems[best].atoms(ends[best])
    half = len(gains) // 2
    return Fit(
        error=float(np.abs(means).max()),
        variance_error=float(2.0 * np.abs(halves).max()),
        mass=float(masses.min()),
        fourth=_score(4, n, deviations),
        gain=gains[best],
        agree=float(np.mean(np.array(gains) >= gains[best] - _SAME)),
        doubling=float(max(max(gains[half:]) - max(gains[:half]), 0.0)),
    )
