"""Classes of a fit and other variables, with the errors of classification and of both steps.

A fit is the first step.  Each unit is assigned to an expert, with known probabilities of an error;
a third step relates the assignments to other variables and corrects for these errors (Bolck, Croon
and Hagenaars 2004; Vermunt 2010), or keeps the fitted densities in place of assignments (Bakk and
Kuha 2018).  Standard errors are those of stacked estimating equations, which take into account that
the first step is an estimate (Newey and McFadden 1994, Sec. 6; Bakk, Oberski and Vermunt 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, TableLike
from moestat.base.validate import as_plain_array, short
from moestat.base.warnings import AliasedWarning, SeparationWarning, warn_caller
from moestat.estimation.data.rows import places_of_units
from moestat.estimation.fit.delta import COMPLEX_STEP, normal_reach
from moestat.estimation.inference.classification import (
    FirstStep,
    assigned,
    classification_errors,
    first_step,
)
from moestat.estimation.inference.hypotheses import TestResult, chi_square
from moestat.estimation.inference.restricted import minimise
from moestat.estimation.inference.structures import Levels, Logit, Means, Normal, Structure
from moestat.estimation.reading.hints import FEW_LEVELS, hint_of_words
from moestat.estimation.reading.inputs import read_inputs
from moestat.estimation.reading.table import Column, as_column, as_table, index_of
from moestat.estimation.rules import DOUBT, SAME_HEIGHT
from moestat.estimation.tables import Row, Sheet, significant
from moestat.solvers.rules import BFGS, TINY

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted

__all__ = ["METHODS", "ThreeStep", "covariates", "distal"]

METHODS = ("bch", "ml", "two-step")
"""Weights that correct the errors; the likelihood of the assignments, or of the responses."""

_WORST = 1e-6
"""Smallest singular value of the table of errors for which assignments distinguish the classes."""


@dataclass(frozen=True, repr=False, kw_only=True)
class ThreeStep(Sheet):
    """Labelled estimates of a third step; standard errors take all steps into account.

    Parameters
    ----------
    title, facts, head, rows, notes
        Contents of the printed table.
    params, bse : pandas.Series of shape (r,)
        Estimates and standard errors, labelled by class, from 1, and quantity.
    covariance : ndarray of shape (r, r)
        Covariance matrix of the estimates.
    bse_known : pandas.Series of shape (r,)
        Standard errors as if the first step were known, for comparison.
    tests : tuple of TestResult
        Wald tests that classes do not differ, or that a covariate has no effect.
    classification : pandas.DataFrame of shape (k, k)
        Probability that a unit of a class (row) is assigned to a class (column).
    method : str
        Method that corrects the classification errors.
    """

    params: pd.Series
    bse: pd.Series
    covariance: FloatArray = field(repr=False)
    bse_known: pd.Series = field(repr=False)
    tests: tuple[TestResult, ...]
    classification: pd.DataFrame
    method: str

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Normal intervals (r, 2) of level ``1 - alpha``."""
        from moestat.estimation.columns import EstimateTable

        half = normal_reach(alpha) * self.bse
        return EstimateTable({"conf_low": self.params - half, "conf_high": self.params + half})

    def cov_params(self) -> pd.DataFrame:
        """Covariance matrix (r, r) of the estimates."""
        import pandas as pd

        return pd.DataFrame(self.covariance, self.params.index, self.params.index)

    @property
    def frame(self) -> pd.DataFrame:
        """Estimates, standard errors and 95% intervals, one row each."""
        table = self.conf_int()
        table.insert(0, "estimate", self.params)
        table.insert(1, "std_error", self.bse)
        return table.reset_index()


@dataclass(frozen=True, eq=False)
class _Correction:
    """How a third step uses the first one: the shares of the classes in a unit.

    `tables` is the table of errors (k, k), or a density of each unit (m, k).
    """

    objective: Callable[[FloatArray, FloatArray], FloatArray]
    """``objective(log q, tables)``: what is maximised, per unit (m,)."""
    shares: Callable[[FloatArray, FloatArray], FloatArray]
    """``shares(log q, tables)``: weights (m, k) of the derivatives of log q."""


def _weighting(assignment: FloatArray) -> _Correction:
    """Weights ``omega D^-1``, whose mean in class t is 1 for t and 0 for others: BCH."""

    def shares(log_q: FloatArray, errors: FloatArray) -> FloatArray:
        return assignment @ np.linalg.inv(errors)

    return _Correction(lambda q, errors: np.sum(shares(q, errors) * q, axis=1), shares)


def _likelihood(assignment: FloatArray) -> _Correction:
    """``sum_s omega_is log sum_t q_it P(s | t)``: Vermunt (2010), eq. (15)."""

    def joint(log_q: FloatArray, errors: FloatArray) -> FloatArray:
        return log_q[:, :, None] + np.log(errors + TINY)

    def objective(log_q: FloatArray, errors: FloatArray) -> FloatArray:
        return np.sum(assignment * _log_sum(joint(log_q, errors)), axis=1)

    def shares(log_q: FloatArray, errors: FloatArray) -> FloatArray:
        terms = joint(log_q, errors)
        posterior = np.exp(terms - _log_sum(terms)[:, None, :])
        return np.sum(assignment[:, None, :] * posterior, axis=2)

    return _Correction(objective, shares)


def _two_step() -> _Correction:
    """``log sum_t q_it f_t(y_i)`` with the fitted densities: Bakk and Kuha (2018), eq. (6)."""

    def objective(log_q: FloatArray, density: FloatArray) -> FloatArray:
        return _log_sum(log_q + np.log(density))

    def shares(log_q: FloatArray, density: FloatArray) -> FloatArray:
        terms = log_q + np.log(density)
        return np.exp(terms - _log_sum(terms)[:, None])

    return _Correction(objective, shares)


def _log_sum(terms: FloatArray) -> FloatArray:
    """``log sum_t exp`` along the second axis; the values may be complex."""
    top = terms.real.max(axis=1, keepdims=True)
    return np.log(np.sum(np.exp(terms - top), axis=1)) + top[:, 0]


def _densities(prior: FloatArray, posterior: FloatArray) -> FloatArray:
    """Densities (m, k) of the responses within classes, up to a factor of each unit."""
    ratio = np.maximum(posterior, TINY) / prior
    return ratio / ratio.max(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _ThirdStep:
    """A structure, a correction and the first step, as estimating equations of beta (p,)."""

    step: FirstStep
    structure: Structure
    correction: _Correction
    assignment: FloatArray | None  # (m, k); None where densities are used

    def tables(self, prior: FloatArray, posterior: FloatArray) -> FloatArray:
        """The tables of the first step that the correction uses."""
        if self.assignment is None:
            return _densities(prior, posterior)
        return classification_errors(posterior, self.step.weight, self.assignment)

    def contributions(self, beta: FloatArray, tables: FloatArray) -> FloatArray:
        """Estimating function of each unit (m, p), without its weight."""
        log_q, slope = self.structure.log_density(beta)
        return np.einsum("mt,mtp->mp", self.correction.shares(log_q, tables), slope)

    def total(self, beta: FloatArray, tables: FloatArray) -> FloatArray:
        """Weighted sum (p,) of the estimating functions of the units."""
        return self.step.weight @ self.contributions(beta, tables)

    def jacobian(self, beta: FloatArray, tables: FloatArray) -> FloatArray:
        """Derivatives (p, p) of the sum in beta, by complex steps (Squire and Trapp 1998)."""
        moves = beta + 1j * COMPLEX_STEP * np.eye(beta.size)
        return np.column_stack([self.total(move, tables).imag / COMPLEX_STEP for move in moves])

    def solve(self, tables: FloatArray) -> FloatArray:
        """The root (p,) of the sum that is a maximum near the start."""
        start = self.structure.start(self.step.posterior * self.step.weight[:, None])

        def objective(beta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            log_q, _ = self.structure.log_density(beta)
            value = float(self.step.weight @ self.correction.objective(log_q, tables))
            curve = self.jacobian(beta, tables)
            return -value, -self.total(beta, tables), -0.5 * (curve + curve.T)

        free, wide = np.arange(start.size), np.full(start.size, np.inf)
        nothing_held = np.empty((0, start.size))
        beta, _, converged = minimise(objective, start, free, nothing_held, -wide, wide)
        if converged or self.separation(beta, tables).any():
            return beta
        raise ValueError(
            "the likelihood of the third step has no maximum near the assignments: a class can"
            " hardly be distinguished from others, or a variable separates the classes. For a"
            " mean, use method='bch'"
        )

    def directions(self, beta: FloatArray, tables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Orthonormal directions (p, f) and (p, q): flat ones, and those that the data determine.

        Predictors of a `Logit` move by 1, root mean square, along directions of length 1: they are
        flat where a fit's are, see `moestat.estimation.fit.identified`.
        """
        if not isinstance(self.structure, Logit):
            return np.zeros((beta.size, 0)), np.eye(beta.size)
        curve = self.jacobian(beta, tables)
        values, vectors = np.linalg.eigh(-0.5 * (curve + curve.T))
        flat = np.abs(values) <= BFGS.flattest
        return vectors[:, flat], vectors[:, ~flat]

    def separation(self, beta: FloatArray, tables: FloatArray) -> np.ndarray:
        """Coefficients (r,) that diverge: where a fit says so, the likelihood has no maximum."""
        flat, _ = self.directions(beta, tables)
        along = flat @ (flat.T @ beta)
        none = np.zeros(len(self.structure.names), dtype=bool)
        if not along @ along >= DOUBT.far**2:
            return none

        def height(at: FloatArray) -> float:
            log_q, _ = self.structure.log_density(at)
            return float(self.step.weight @ self.correction.objective(log_q, tables))

        here = height(beta) - SAME_HEIGHT
        if not height(beta + along) > here > height(beta - along):
            return none
        assert isinstance(self.structure, Logit)
        outward = self.structure.outward
        part = np.linalg.norm(outward @ flat, axis=1)
        return part > DOUBT.part * np.linalg.norm(outward, axis=1)

    def covariance(self, beta: FloatArray, tables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Covariance matrices (p, p) with both steps, and as if the first were known.

        ``A^-1 (sum_i w_i u_i u_i') A^-T`` with the Jacobian A of the third step and
        ``u_i = g_i + G_D d_i + G_theta V s_i``: the unit's estimating function, its influence on
        the table of errors, and its influence on the parameters of the first step.  Assignments are
        treated as fixed: moving their borders changes their meaning and the table of errors alike.
        """
        step, weight = self.step, self.step.weight
        contributions = self.contributions(beta, tables)
        terms = contributions + step.coordinates @ self._slope_of_first(beta).T
        if self.assignment is not None:
            total = weight @ step.posterior
            for t in range(tables.shape[0]):
                for s in range(tables.shape[1]):
                    side = tables.astype(complex)
                    side[t, s] += 1j * COMPLEX_STEP
                    slope = self.total(beta.astype(complex), side).imag / COMPLEX_STEP
                    apart = step.posterior[:, t] * (self.assignment[:, s] - tables[t, s])
                    terms = terms + np.outer(apart / total[t], slope)
        _, basis = self.directions(beta, tables)
        inverse = basis @ np.linalg.inv(basis.T @ self.jacobian(beta, tables) @ basis) @ basis.T
        both, known = (
            inverse @ ((u * weight[:, None]).T @ u) @ inverse.T for u in (terms, contributions)
        )
        return both, known

    def _slope_of_first(self, beta: FloatArray) -> FloatArray:
        """Derivatives (p, q) of the sum along the standard errors of the first step."""
        return self.step.derivative(lambda *shares: self.total(beta, self.tables(*shares)))


def _correct(
    step: FirstStep, structure: Structure, method: str, assignment: str
) -> tuple[_ThirdStep, FloatArray, FloatArray]:
    """The third step of a method, its tables of the first step, and its estimate."""
    given = assigned(step.posterior, assignment)
    errors = classification_errors(step.posterior, step.weight, given)
    if method != "two-step" and np.linalg.svd(errors, compute_uv=False)[-1] < _WORST:
        raise ValueError(
            "the assignments do not distinguish the classes: the table of errors is singular. Use"
            " method='two-step', or fewer experts"
        )
    third = {
        "bch": lambda: _ThirdStep(step, structure, _weighting(given), given),
        "ml": lambda: _ThirdStep(step, structure, _likelihood(given), given),
        "two-step": lambda: _ThirdStep(step, structure, _two_step(), None),
    }[method]()
    tables = third.tables(step.prior, step.posterior)
    return third, tables, third.solve(tables)


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {short(method)}")


def _unit_values(result: Fitted, step: FirstStep, name: str, values: np.ndarray) -> np.ndarray:
    """Values of units (m,) or (m, d), from those of units or of rows, equal within a group."""
    rows = result.rows
    if rows.groups is None or len(values) == len(step.places) < len(rows.y):
        return values
    of_unit = values[step.places]
    names, inverse = np.unique(rows.groups, return_inverse=True)
    apart = values != of_unit[inverse.reshape(-1)]
    differing = np.flatnonzero(apart.reshape(len(values), -1).any(axis=1))
    if differing.size:
        group = names[inverse.reshape(-1)[differing[0]]].item()
        raise ValueError(f"{name}: rows of group {group!r} differ; give one value per group")
    return of_unit


def _read_outcome(column: Column) -> Column:
    """The outcome: objects that are numbers as numbers, words and truth values as categories."""
    known = column.values[~column.missing]
    if column.levels is not None or known.dtype.kind != "O":
        words = known.dtype.kind in "US" and column.levels is None
    else:
        kinds = sorted({type(value).__name__ for value in known.tolist()})
        words = all(isinstance(value, str) for value in known)
        if all(isinstance(v, Number) and not isinstance(v, bool | np.bool_) for v in known):
            return replace(column, values=column.numbers("outcome"), categorical=False)
        if not words and not all(isinstance(value, bool | np.bool_) for value in known):
            raise ValueError(
                "outcome must hold numbers, words, truth values or categories; got"
                f" {', '.join(kinds)}"
            )
    if words:
        levels = np.unique(known.astype(str))
        hint = hint_of_words(column.name, levels) if levels.size > FEW_LEVELS else ""
        if hint:
            raise ValueError(f"outcome must hold numbers, or words of categories; {hint}")
    return column


def distal(
    result: Fitted,
    outcome: ArrayLike | TableLike,
    method: str = "bch",
    *,
    assignment: str = "modal",
) -> ThreeStep:
    """Estimate the mean, or probabilities, of an external variable within each class.

    The units, which are rows or groups of rows, are assigned to classes, and the estimates are
    corrected for classification errors.  Standard errors take into account that the classes are
    estimated.

    Parameters
    ----------
    outcome : array_like of shape (n,)
        The external variable.  Strings, truth values, a categorical column, or numbers with
        only two distinct values are treated as categories; objects that are numbers, such as
        ``decimal.Decimal``, are numbers.  Rows that the fit has left out may be among them.  In
        a fit with groups the variable must be the same for all rows of a group, or has one
        value for each group: in ascending order of the labels, or with these as index.
    method : {"bch", "ml", "two-step"}
        "bch" uses weights that correct the classification errors and is valid for any
        distribution (Bolck, Croon and Hagenaars 2004).  "ml" maximises the likelihood of the
        assignments, with a normal or categorical outcome in each class (Vermunt 2010).
        "two-step" maximises the likelihood of the responses with the experts fixed at their
        estimates (Bakk and Kuha 2018).  "ml" and "two-step" are more efficient than "bch", but
        they are wrong if a numeric outcome is not normal within classes.
    assignment : {"modal", "proportional"}
        "modal" assigns a unit to its most probable class; "proportional" assigns it to all
        classes in proportion to their probabilities.

    Returns
    -------
    ThreeStep
        The estimates ``params`` with ``bse``, ``conf_int()``, ``tests`` and
        ``classification``.  It prints as a table.

    Raises
    ------
    ValueError
        If the fit has one expert, the outcome does not have one value for each unit, or the
        assignments do not distinguish the classes.

    Notes
    -----
    The method assumes that the outcome is independent of the responses given the class.  The
    assumption fails if, within a class, the outcome depends on inputs of the experts or of the
    gate.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> rng = np.random.default_rng(0)
    >>> x, first = rng.normal(size=400), rng.random(400) < 0.6
    >>> y = np.where(first, 2 + x, -2 - x) + rng.normal(size=400)
    >>> result = moestat.fit("gaussian", x, y, n_experts=2, gate_inputs=[], rng=0)
    >>> found = result.distal(np.where(first, 1.0, 5.0) + rng.normal(size=400))
    >>> found.params.round().tolist()
    [1.0, 5.0]
    """
    _check_method(method)
    step, k = first_step(result), result.family.n_experts
    column = as_column("outcome", outcome)
    index = index_of(outcome)
    places = places_of_units(result.rows, "outcome", len(column.values), index)
    column = column.at(places)
    column.check_missing("outcome")
    column = _read_outcome(column)
    values = _unit_values(result, step, "outcome", column.values)
    name, is_text = column.name, values.dtype.kind == "O"
    plain = values.astype(str) if is_text else values
    levels = np.unique(plain)
    if column.levels is not None:  # in their declared order
        declared = np.asarray(column.levels).astype(str if is_text else plain.dtype)
        levels = declared[np.isin(declared, levels)]
    if column.categorical or values.dtype.kind in "OUSb" or levels.size == 2:
        if levels.size < 2:
            raise ValueError("outcome is the same everywhere")
        if levels.size > max(FEW_LEVELS, len(plain) // 2):
            raise ValueError(
                f"outcome is read as categories and has {levels.size} of them in {len(plain)}"
                f" {'rows' if result.rows.groups is None else 'groups'}, such as"
                f" {levels[0].item()!r}; give numbers, or fewer categories"
            )
        z = (plain[:, None] == levels).astype(np.float64)
        columns = tuple(f"P({level})" for level in levels.tolist())
        structure: Structure = (Means if method == "bch" else Levels)(z, columns, k)
        return _report(result, step, structure, method, assignment, f"{name or 'outcome'} by class")
    z = as_column("outcome", values).numbers("outcome")
    centre, unit = float(np.mean(z)), float(np.std(z))
    if unit == 0.0:
        raise ValueError("outcome is the same everywhere")
    z = (z - centre) / unit
    if method == "bch":
        structure = Means(z[:, None], ("mean",), k)
        change = np.full(k, unit), np.full(k, centre)
    else:
        structure = Normal(z, k)
        change = np.full(2 * k, unit), np.repeat([centre, 0.0], k)
    return _report(
        result, step, structure, method, assignment, f"{name or 'outcome'} by class", *change
    )


def covariates(
    result: Fitted,
    X: ArrayLike | TableLike,
    method: str = "ml",
    *,
    assignment: str = "modal",
) -> ThreeStep:
    """Regress class membership on external variables by a multinomial logit.

    The coefficients are log-odds of each class against the last one.

    Parameters
    ----------
    X : array_like or table of shape (n, d)
        The numeric external variables, of rows or groups as the outcome of `distal`.
    method : {"ml", "bch", "two-step"}
        The same as in `distal`.
    assignment : {"modal", "proportional"}
        The same as in `distal`.

    Returns
    -------
    ThreeStep
        The coefficients of the multinomial logit by class, with a Wald test of each variable.

    Raises
    ------
    ValueError
        In the same cases as `distal`.

    Notes
    -----
    Columns that are linear functions of each other raise an `AliasedWarning`, columns that
    separate the classes a `SeparationWarning`; their coefficients have no standard error.

    The estimating equations are those of Vermunt (2010), eq. (15), and Bakk and Kuha (2018),
    eq. (6).  The corresponding one-step estimate is a fit whose gate uses these variables,
    through ``gate_inputs=`` or the second part of a formula.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> rng = np.random.default_rng(0)
    >>> x, age = rng.normal(size=(2, 400))
    >>> first = rng.random(400) < 1 / (1 + np.exp(-age))
    >>> y = np.where(first, 2 + x, -2 - x) + rng.normal(size=400)
    >>> result = moestat.fit("gaussian", x, y, n_experts=2, gate_inputs=[], rng=0)
    >>> found = result.covariates({"age": age})
    >>> bool(abs(found.params[1, "age"]) > 4 * found.bse[1, "age"])
    True
    """
    _check_method(method)
    step, k = first_step(result), result.family.n_experts
    given = as_table("X", X)
    n_given = len(as_plain_array("X", X)) if given is None else given.n_rows
    rows, index = result.rows, None if given is None else given.index
    n = len(rows.y)
    if rows.groups is None and n_given not in (n, n + rows.dropped):
        raise ValueError(f"X must have one row per row of the fit, {n}, got {n_given}")
    places = places_of_units(rows, "X", n_given, index)
    # Rows that the fit has left out may lack values here, too.
    inputs = read_inputs(as_plain_array("X", X)[places] if given is None else given.at(places))
    values = _unit_values(result, step, "X", inputs.matrix)
    centre, unit = values.mean(axis=0), values.std(axis=0)
    names = inputs.features or tuple(f"x[{j}]" for j in range(values.shape[1]))
    if np.any(unit == 0.0):
        raise ValueError(f"X: column {names[int(np.argmin(unit))]!r} is constant")
    phi = np.column_stack([np.ones(len(values)), (values - centre) / unit])
    structure = Logit.of(phi, ("Intercept", *map(str, names)), k, step.weight)
    back = np.diag(np.append(1.0, 1.0 / unit))
    back[0, 1:] = -centre / unit
    scale = np.asarray(np.kron(np.eye(k - 1), back), dtype=np.float64)
    title = f"Log-odds of classes against class {result.experts.labels[-1]} by covariates"
    return _report(result, step, structure, method, assignment, title, scale)


def _undetermined(third: _ThirdStep, tables: FloatArray, beta: FloatArray) -> np.ndarray:
    """Reported coefficients (r,) without a finite or unique value; warns of them as a fit does."""
    structure = third.structure
    if not isinstance(structure, Logit):
        return np.zeros(len(structure.names), dtype=bool)
    names = structure.columns
    if structure.aliased.any():
        related = [name for name, one in zip(names, structure.aliased, strict=True) if one]
        warn_caller(
            f"X: columns {', '.join(related)} are linear functions of each other: the data do not"
            " determine their coefficients separately (no standard error). Remove one of the"
            " columns",
            AliasedWarning,
        )
    diverge = third.separation(beta, tables)
    if diverge.any():
        each = np.any(diverge.reshape(-1, len(names)), axis=0)
        columns = [name for name, one in zip(names[1:], each[1:], strict=True) if one]
        warn_caller(
            "the likelihood of the third step has no finite maximum: the classes are separated by"
            f" column{'s' * (len(columns) > 1)} {', '.join(columns) or names[0]}, whose"
            " coefficients diverge (no standard error). Leave the column out, or report a table of"
            " the classes by it",
            SeparationWarning,
        )
    return np.tile(structure.aliased, structure.n_classes - 1) | diverge


def _errors(covariance: FloatArray) -> FloatArray:
    """Standard errors; NaN where negative weights of the assignments leave no positive variance."""
    variances = np.diag(covariance)
    return np.sqrt(np.where(variances >= 0.0, variances, np.nan))


def _report(
    result: Fitted,
    step: FirstStep,
    structure: Structure,
    method: str,
    assignment: str,
    title: str,
    scale: FloatArray | None = None,
    shift: float | FloatArray = 0.0,
) -> ThreeStep:
    """Estimates in the units of the user, ``scale * reported + shift``, and the table of them."""
    import pandas as pd

    third, tables, beta = _correct(step, structure, method, assignment)
    moves = beta + 1j * COMPLEX_STEP * np.eye(beta.size)
    outward = np.column_stack([structure.report(move).imag / COMPLEX_STEP for move in moves])
    matrix = np.eye(len(outward)) if scale is None else scale
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    both, known = (
        matrix @ outward @ V @ outward.T @ matrix.T for V in third.covariance(beta, tables)
    )
    lost = _undetermined(third, tables, beta)
    for one in (both, known):
        one[lost], one[:, lost] = np.nan, np.nan
    value = matrix @ structure.report(beta) + shift
    keys = result.experts.keys
    names = [(keys[at - 1], term) for at, term in structure.names]
    index = pd.MultiIndex.from_tuples(names, names=["class", "term"])
    params, bse = pd.Series(value, index), pd.Series(_errors(both), index)
    tests = tuple(
        chi_square(name, _wald(R @ value, R @ both @ R.T), len(R))
        for name, R in structure.contrasts()
    )
    classes = pd.Index(keys, name="class")
    given = assigned(step.posterior, assignment)
    errors = classification_errors(step.posterior, step.weight, given)
    table = pd.DataFrame(errors, classes, pd.Index(keys, name="assigned"))
    half = normal_reach(0.05)
    rows = []
    for (at, term), one, error in zip(names, value, bse, strict=True):
        cells = [significant(float(v), 4) for v in (one, error, one - half * error)]
        rows.append(Row((f"class {at}", term, *cells, significant(float(one + half * error), 4))))
    misclassified = 1.0 - float(step.weight @ step.posterior.max(axis=1)) / float(step.weight.sum())
    words = {"bch": "BCH weights", "ml": "likelihood of assignments", "two-step": "two-step"}
    facts = (
        ("Units", f"{step.weight.sum():.10g}", "Method", words[method]),
        (
            "Assignment",
            "none" if method == "two-step" else assignment,
            "Misclassified",
            f"{misclassified:.1%}",
        ),
    )
    notes = tuple(f"Wald, {test}" for test in tests)
    head = ("", "", "coef", "std err", "[0.025", "0.975]")
    return ThreeStep(
        title,
        facts,
        head,
        tuple(rows),
        notes,
        params=params,
        bse=bse,
        covariance=both,
        bse_known=pd.Series(_errors(known), index),
        tests=tests,
        classification=table,
        method=method,
    )


def _wald(gap: FloatArray, covariance: FloatArray) -> float:
    if not np.isfinite(covariance).all():
        return float("nan")  # of coefficients without a finite or unique value
    return float(gap @ np.linalg.pinv(covariance, hermitian=True) @ gap)
