"""How many rows an estimate needs: by the information, or by fits where experts merge."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.figures import new_axes
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import as_floats, as_generator, positive_int, real_in
from moestat.base.warnings import MoEWarning
from moestat.estimation.data.data import Data
from moestat.estimation.data.naming import present_names
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.job import FitJob
from moestat.estimation.inference.constraints import linear_constraints
from moestat.estimation.inference.covariance import AtInputs
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rules import DOUBT, REQUIRED
from moestat.estimation.starts import MeasureStarts
from moestat.metrics.information import expected_information, free_basis
from moestat.model.designs import Design, Lattice, Uniform, design_of
from moestat.model.family import Family
from moestat.model.generate import sample_weighted
from moestat.solvers import MomentNewton
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Rows
from moestat.solvers.rules import HALF_OF_DIGITS, ZERO_CURVATURE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RequiredN", "required_n"]


@dataclass(frozen=True)
class RequiredN:
    """The number of rows at which an estimate has a standard error.

    Parameters
    ----------
    what : str
        A parameter, or a linear combination of parameters.
    n : int
        Number of rows.
    error : float
        The standard error that was requested.
    unit_error : float
        Standard error with one row; with n rows it is this number times ``n^exponent``.
    exponent : float
        -1/2 if the information matrix is not singular; if experts merge, the exponent of a power of
        the number of rows that is fitted to the simulated errors around `n`.
    interval : (float, float)
        A 95% interval of `n` by the Monte Carlo error of the simulation; both ends are equal to `n`
        if nothing was simulated.
    curve : ndarray of shape (m, 4)
        Simulated numbers of rows, root mean squared errors at these, and the ends of their 95%
        bootstrap intervals; empty if nothing was simulated.
    """

    what: str
    n: int
    error: float
    unit_error: float
    exponent: float = -0.5
    interval: tuple[float, float] = (np.nan, np.nan)
    curve: FloatArray = field(default_factory=lambda: np.empty((0, 4)), repr=False)

    def error_at(self, n: ArrayLike) -> FloatArray:
        """Errors at numbers of rows (m,); if experts merge, by the power law around `n`."""
        sizes = as_floats("n", n, (None,) * np.ndim(n))
        if np.any(sizes <= 0.0):
            raise ValueError(f"n must be positive, got {sizes.min():g}")
        return self.unit_error * sizes**self.exponent

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot errors against numbers of rows, with the simulated errors and their 95% intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, which are also returned; by default those of a new figure.
        """
        axes: Axes = new_axes() if ax is None else ax
        sizes = np.append(self.curve[:, 0], [self.n / 10.0, self.n * 10.0])
        ends = np.array([sizes.min(), sizes.max()])
        axes.loglog(ends, self.error_at(ends), label=f"$n^{{{self.exponent:.2f}}}$")
        if len(self.curve):
            n, root, low, high = self.curve.T
            axes.errorbar(n, root, [root - low, high - root], fmt="o", label="simulated")
        axes.plot(self.n, self.error, "s", label=f"{self.n:.3g} rows")
        axes.set(xlabel="rows", ylabel=f"error of {self.what}")
        axes.legend(frameon=False)
        return axes

    def __str__(self) -> str:
        if not len(self.curve):
            return f"{self.what}: {self.n} rows for a standard error of {self.error:g}"
        low, high = self.interval
        return (
            f"{self.what}: {self.n:.3g} rows ({low:.3g} to {high:.3g}) for a root mean squared"
            f" error of {self.error:g}: experts merge, and errors fall like n^{self.exponent:.2f}"
        )


@door()
def required_n(
    model: Family | MoEResults,
    truth: ArrayLike | None = None,
    design: Design | None = None,
    *,
    error: float,
    what: str,
    replicates: int = 80,
    rng: Seed = 0,
) -> RequiredN:
    """Compute the number of rows at which an estimate has a given standard error.

    Parameters
    ----------
    model : Family or MoEResults
        The model; or a fit, whose estimate is then the truth and whose inputs are the design.  Fits
        with groups, with censored responses or with numbers of trials by row are refused.
    truth : array_like of shape (P,), optional
        Packed parameters that generate the data; needed with a family.
    design : Design, optional
        Distribution of the inputs; uniform on [0, 1]^d by default, or the inputs of the fit.
    error : float
        Standard error, in units of what is estimated.
    what : str
        Name of a parameter, or a linear combination of them such as ``"a[2,0] - a[1,0]"``.
    replicates : int
        If experts merge, the number of simulated data sets at each number of rows.  As many more
        are drawn, at the two powers of 4 that enclose the answer, until the ends of its interval
        differ from it by a factor of at most 1.25, or 16 times.
    rng : numpy.random.Generator, int or None
        Source of the simulated data.

    Returns
    -------
    RequiredN
        The number of rows, and the standard errors at other numbers of rows.

    Raises
    ------
    ValueError
        If a name is unknown; if the data do not determine `what` although no experts of the truth
        are equal; or if experts are equal and more than 10,000 rows are needed, but there is no
        lattice for this model or design.

    Notes
    -----
    ``n = g' I^-1 g / error^2`` with the expected information I of one row and the derivative g of
    `what`.  The formula is from the normal limit of the maximum-likelihood estimate for large n; if
    experts overlap, standard errors at small n are larger.  The formula is not valid for a fit with
    more experts than its data need; the function then issues an `OverSpecifiedWarning`.

    **Equal experts in the truth.**  The fitted experts merge: the information matrix is singular,
    and errors decrease like ``n^(-1/4)`` or ``n^(-1/8)`` (Nguyen et al. 2023), so the formula does
    not apply.  The function then simulates data, fits the model from starts around the truth, and
    looks for the number of rows at which a power law through the root mean squared errors has the
    requested value.  More than 10,000 rows are drawn on a lattice, `moestat.Lattice`, which is
    available for normal responses and classes, with inputs that are uniform or on a lattice.
    Several fitted experts can belong to one expert of the truth.  The squared error is then their
    average, weighted by their shares of the rows, because an expert with almost no rows may be
    anywhere.  The result is the error of the highest maximum near the truth.
    `moestat.theory.explorer.explore` gives only the exponent of the largest error for large n,
    without a constant, so no number of rows follows from it.

    Examples
    --------
    With 400 rows, the mean of normal responses with variance 4 has the standard error 0.1.  In a
    regression on an input in [0, 1], the intercept, the mean at 0, needs four times as many rows.

    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> truth = F.pack({"beta0": [0], "beta1": [0], "a": [0], "b": [1], "nu": [4]})
    >>> print(required_n(F, truth, error=0.1, what="b[1] + 0.5 * a[1,0]"))
    b[1] + 0.5 * a[1,0]: 400 rows for a standard error of 0.1
    >>> required_n(F, truth, error=0.1, what="b[1]").n
    1600
    """
    target = real_in("error", error, 0.0, open_low=True)
    fitted = not isinstance(model, Family)
    family, names = (model.family if fitted else model), model.param_names
    if family.likelihood.effects is not None:
        raise ValueError("model: available only for models without random effects")
    if fitted and family.likelihood.is_censored:
        raise ValueError("model: available only for fits without censored responses")
    if fitted and model.rows.groups is not None:
        raise ValueError("model: available only for fits without groups")
    if fitted and family.likelihood.with_trials is not None:
        raise ValueError("model: available only if all rows have the same number of trials")
    if family.likelihood.parts:
        count = len(family.likelihood.parts)
        raise ValueError(f"model: available only for models of one response, got {count}")
    if truth is None and not fitted:
        raise ValueError("truth: give the parameters of the family")
    parameters = model.theta if fitted and truth is None else truth
    theta = as_floats("truth", parameters, (family.n_params,))
    if fitted and design is None:
        rows = model.rows
        X = np.ascontiguousarray(rows.X.T)
        at = AtInputs(Rows(X, np.empty(0), rows.weight / rows.weight.sum()))
        information = expected_information(family, theta, at, n_nodes=1)
    else:
        information = expected_information(family, theta, design)
    what = present_names(what, family, model.data if fitted else None)
    (row,), _ = linear_constraints(what, names, "what")
    groups = equal_experts(family, theta)
    variance = _variance(family, information, row)
    if variance is not None and variance > 0.0:
        unit = float(np.sqrt(variance))
        with np.errstate(over="ignore"):
            rows_needed = (unit / np.float64(target)) ** 2
        if not np.isfinite(rows_needed):
            raise ValueError(f"error: {target:g} takes more rows than float64 can count")
        if fitted and truth is None:
            model._warn_of_order()
        count = max(1, int(np.ceil(rows_needed * (1.0 - ZERO_CURVATURE))))
        return RequiredN(what, count, target, unit, interval=(count, count))
    if variance is not None or all(len(group) == 1 for group in groups):
        raise ValueError(
            f"what: the data do not determine {what!r}, whatever the number of rows: it belongs to"
            " the reference, or is not identified"
        )
    count = positive_int("replicates", replicates, 10)
    law = design_of(design)
    merged = Merged(family, theta, groups, row, law, count)
    return merged.search(target, what, as_generator(rng))


def _variance(family: Family, information: FloatArray, row: FloatArray) -> float | None:
    """``g' I^-1 g`` over the free coordinates; None where the information does not determine g."""
    basis = free_basis(family)
    block = basis.T @ information @ basis
    size = np.sqrt(np.maximum(np.diag(block), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(block / np.outer(size, size))
    along = vectors.T @ (basis.T @ row / size)
    null = values <= ZERO_CURVATURE * values[-1]
    if np.linalg.norm(along[null]) > DOUBT.part * np.linalg.norm(along):
        return None
    return float(np.sum(along[~null] ** 2 / values[~null]))


def equal_experts(family: Family, theta: FloatArray) -> list[IntArray]:
    """Groups of atoms that differ only in their masses."""
    atoms, _ = family.split(theta)
    if family.mass_column is not None:
        atoms = np.delete(atoms, family.mass_column, axis=1)
    gap = np.abs(atoms[:, None] - atoms[None]).max(axis=2) <= HALF_OF_DIGITS
    return [np.flatnonzero(gap[i]) for i in range(len(gap)) if not gap[i, :i].any()]


class _PowerLaw(NamedTuple):
    """A power law of errors in numbers of rows, with NaN where errors do not decrease."""

    unit: float
    exponent: float
    n: float
    interval: tuple[float, float]
    curve: FloatArray


def _power_law(
    squares_of: dict[float, FloatArray], centre: float, target: float, rng: np.random.Generator
) -> _PowerLaw:
    """Fit a power law to the errors at numbers of rows near a first guess.

    Squared errors have heavy tails: a line through the logarithms of their means would be too low,
    and weights by their spread would favour small means.  So their expectation is fitted, by the
    equations of a gamma distribution with log link.
    """
    sizes = np.array(sorted(squares_of))
    squares = [squares_of[n] for n in sizes]
    draws = np.array([np.mean(rng.choice(each, (400, each.size)), axis=1) for each in squares])
    means = np.array([each.mean() for each in squares])
    ends = np.sqrt(np.quantile(draws, [0.025, 0.975], axis=1))
    curve = np.column_stack([sizes, np.sqrt(means), *ends])
    distance = np.abs(np.log(sizes / centre))
    near = distance <= max(np.log(REQUIRED.near), np.sort(distance)[min(3, sizes.size - 1)])
    logs, squares_near = np.log(sizes[near]), np.column_stack([means, draws])[near]
    count = np.sqrt([each.size for each in squares])[near]
    lines = np.polyfit(logs, np.log(squares_near), 1, w=count)
    for _ in range(REQUIRED.rounds):
        mean = np.exp(np.outer(logs, lines[0]) + lines[1])
        lines = lines + np.polyfit(logs, np.clip(squares_near / mean - 1.0, -1.0, 1.0), 1, w=count)
    (slope, *slopes), (level, *levels) = 0.5 * lines
    slopes, levels = np.array(slopes), np.array(levels)
    fall = slopes < 0.0
    n, interval = np.nan, (np.nan, np.nan)
    if slope < 0.0 and fall.mean() >= 0.8:
        n = float(np.exp((np.log(target) - level) / slope))
        low, high = np.exp(
            np.quantile((np.log(target) - levels[fall]) / slopes[fall], [0.025, 0.975])
        )
        interval = float(low), float(high)
    return _PowerLaw(float(np.exp(level)), float(slope), n, interval, curve)


@dataclass(frozen=True)
class Merged:
    """A truth with equal experts, and fits to data from it of any size."""

    family: Family
    theta: FloatArray
    groups: list[IntArray]
    row: FloatArray
    law: Design
    replicates: int

    @property
    def lattice(self) -> Lattice:
        """The lattice on which data of any size are drawn."""
        law = self.law
        if isinstance(law, Lattice):
            return law
        if not isinstance(law, Uniform):
            raise ValueError(
                f"design: more than {REQUIRED.drawn:.0f} rows are needed, and so many can be"
                " simulated only if the inputs are uniform or on a moestat.Lattice, got"
                f" {type(law).__name__}; a larger error= needs fewer"
            )
        return Lattice(law.low, law.high, nodes=max(REQUIRED.nodes, 2 * self.family.n_free_params))

    def search(self, target: float, what: str, rng: np.random.Generator) -> RequiredN:
        """Change the number of rows by powers of 10 until the errors enclose the target."""
        n = REQUIRED.first
        squares = {n: self.squares(n, rng)}
        above = [squares[n].mean() > target**2]
        while len(set(above)) < 2 and REQUIRED.least < n < REQUIRED.largest:
            n = n * 10.0 if above[-1] else n / 10.0
            squares[n] = self.squares(n, rng)
            above.append(squares[n].mean() > target**2)
        if not any(above):
            raise ValueError(f"error: {n:.0f} rows already have a smaller error than {target:g}")
        ends = np.sort(list(squares)[-2:])
        centre = float(np.sqrt(np.prod(ends)))
        one_sided, batches_left = len(set(above)) < 2, REQUIRED.batches
        while True:
            below = float(4.0 ** np.floor(0.5 * np.log2(centre)))
            for size in (below, 4.0 * below):
                squares[size] = np.append(squares.get(size, ()), self.squares(size, rng))
            law, batches_left = _power_law(squares, centre, target, rng), batches_left - 1
            away = np.max(np.abs(np.log(np.divide(law.interval, law.n))))
            if one_sided or batches_left == 0 or away <= np.log(REQUIRED.known):
                break
            if np.isfinite(law.n):
                centre = float(np.clip(law.n, *ends))
        if one_sided or not np.isfinite(law.n):
            raise ValueError(
                f"error: errors of {what!r} do not decrease from {min(squares):.0e} to"
                f" {max(squares):.0e} rows: {', '.join(f'{root:.3g}' for root in law.curve[:, 1])}"
            )
        count = int(np.ceil(law.n))
        return RequiredN(
            what, count, target, law.unit, law.exponent, interval=law.interval, curve=law.curve
        )

    def bounded(self) -> Family:
        """The family with a lower bound of variances that a lattice of responses can represent."""
        family, collapse = self.family, self.family.likelihood.collapse
        if collapse is None:
            return family
        least = REQUIRED.narrow * float(np.min(family.unpack(self.theta)[collapse]))
        return replace(family, box={**family.box, collapse: (least, family.box[collapse][1])})

    def squares(self, n: float, rng: np.random.Generator) -> FloatArray:
        """Squared errors (r,) of fits to r data sets of n rows."""
        small, truth = self.smaller()
        starts = [
            MeasureStarts(small, truth, count=REQUIRED.starts, noise=noise) for noise in (0.1, 1.0)
        ]
        jobs, family = [], self.bounded()
        for child in rng.spawn(self.replicates):
            design = self.law if n <= REQUIRED.drawn else self.lattice
            rows = sample_weighted(small, truth, round(n), child, design)
            data = Data.of(family, *rows)
            jobs.append(FitJob(family, data, MomentNewton(), starts, child))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoEWarning)
            ends = fit_jobs(jobs, Cores())
        return np.array([self.square(end) for end in ends if isinstance(end, Fitted)])

    def smaller(self) -> tuple[Family, FloatArray]:
        """The truth with each group of equal experts merged into one."""
        atoms, shared = self.family.split(self.theta)
        merged = atoms[[group[0] for group in self.groups]]
        column = self.family.mass_column
        if column is not None:
            merged[:, column] = [np.logaddexp.reduce(atoms[group, column]) for group in self.groups]
        small = self.family.with_experts(len(self.groups))
        return small, small.pin(small.join(merged, shared))

    def square(self, end: Fitted) -> float:
        """Mean squared error over the fitted experts next to those in `row`, by their masses.

        It is a matter of chance which expert of the truth a superfluous expert is next to.
        """
        family = self.family
        nodes, share = self.law.quadrature(family.n_features, REQUIRED.nodes)
        small, truth = self.smaller()
        fitted_lines, true_lines = (
            family.predictors(end.theta, nodes),
            small.predictors(truth, nodes),
        )
        gaps = np.sum((fitted_lines[:, None] - true_lines[None]) ** 2 @ share, axis=2)
        nearest = np.argmin(gaps, axis=1)
        mass = share @ family.gate_probabilities(end.theta, nodes.T)
        atoms, shared = family.split(end.theta)
        derivatives, _ = family.split(self.row)
        # Contrasts of the gate are with the last expert.
        labels = sorted({*np.flatnonzero(derivatives.any(axis=1)).tolist(), family.n_experts - 1})
        cells = []
        for label in labels:
            nearest_group = next(g for g, group in enumerate(self.groups) if label in group)
            cell = np.flatnonzero(nearest == nearest_group)
            cells.append(cell if cell.size else [int(np.argmin(gaps[:, nearest_group]))])
        errors, weights = [], []
        for chosen in product(*cells):
            order = np.arange(family.n_experts)
            order[labels] = chosen
            matched = family.pin(family.join(atoms[order], shared))
            errors.append(float(self.row @ (matched - self.theta)) ** 2)
            weights.append(float(np.prod(mass[list(chosen)])))
        return float(np.average(errors, weights=weights))
