"""The estimates of a fit: parameters, their names and their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import FloatArray, IntArray, Labels, TableLike
from moestat.base.validate import did_you_mean, listed, short
from moestat.base.warnings import LimitWarning, SeparationWarning, warn_caller
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import Grouping, encoded_rows, posterior_of_rows
from moestat.estimation.data.naming import (
    experts_of,
    in_words,
    names_by_term,
    parameter_names,
    reported_positions,
)
from moestat.estimation.data.priors import Prior
from moestat.estimation.data.rows import own_inputs, places_of_rows, read_new_inputs
from moestat.estimation.fit.beside import Ends, Simpler
from moestat.estimation.fit.delta import normal_reach
from moestat.estimation.fit.identified import Identified, identified
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.table import as_column, as_table, column_names, index_of
from moestat.estimation.rules import MODES
from moestat.estimation.tables import labelled
from moestat.model.family import Family
from moestat.model.likelihoods.multivariate_gaussian import covariances
from moestat.model.measure import MixingMeasure
from moestat.model.numbering import ExpertNames
from moestat.model.units import Coordinates
from moestat.solvers import Certificate, Solution

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.rows.block_rows import BlockRows


__all__ = ["Fitted", "StandardFit", "objective_of", "warn_and_note"]


@dataclass(frozen=True)
class StandardFit:
    """A fit in the coordinates of the solver."""

    family: Family  # the family with its box in these coordinates
    solution: Solution  # the solution in these coordinates
    coordinates: Coordinates | None = None  # the map to the coordinates of the user
    # (P, P): `channel_metric`, mean squared moves of predictors
    metric: FloatArray | None = field(default=None, repr=False)
    # (P, P): curvature of minus the log prior density at a posterior mode
    penalty: FloatArray | None = field(default=None, repr=False)
    # log prior density at a posterior mode, up to a constant
    log_prior: float = 0.0
    # blocks of variances whose lower bound follows from the rounding of the response
    resolved: tuple[str, ...] = ()

    def identified(self, n: float) -> Identified:
        """Which parameters the data determine, whose weights have the sum n."""
        if n not in self._known:
            self._known[n] = identified(self.family, self.solution, n, self.metric)
        return self._known[n]

    @cached_property
    def _known(self) -> dict[float, Identified]:
        """The answers of `identified`, for which the results of each step of a fit ask."""
        return {}


@doors
@dataclass(frozen=True, repr=False)
class Fitted:
    """Parameters and standard errors of a `moestat.estimation.results.results.MoEResults`."""

    family: Family
    solution: Solution = field(repr=False)
    solver: str
    weight: FloatArray = field(repr=False)
    response_variance: float = field(default=float("nan"), repr=False)
    data: Data | None = field(default=None, repr=False)
    standard: StandardFit | None = field(default=None, repr=False)
    cov_type: str = "observed"
    robust: FloatArray | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    prior: Prior | None = field(default=None, repr=False)
    kinds: tuple[str, ...] = field(default=(), repr=False)
    # where the search ended, if it was one for posterior modes
    seen: Ends | None = field(default=None, repr=False)
    # the best fit with one expert fewer near this one; None where it was not computed
    order: Simpler | None = field(default=None, repr=False)
    # the rows of a fit to blocks, or to a source, which methods read again
    source: BlockRows | None = field(
        default=None, repr=False, compare=False, metadata={"stored": False}
    )

    # the table of a fit by formula, whose columns later questions may name
    table: Any = field(default=None, repr=False, compare=False, metadata={"stored": False})

    def __getstate__(self) -> dict[str, object]:
        """State of copies in other processes, without the source, which may hold open files."""
        return {**self.__dict__, "source": None, "table": None}

    @property
    def theta(self) -> FloatArray:
        """All parameters in one vector (P,), as the family uses them; `blocks` has them by name."""
        return self.solution.theta

    @cached_property
    def param_names(self) -> list[str]:
        """Names of all parameters (P,), such as ``a[1,age]`` of expert 1 and the column ``age``."""
        return parameter_names(self.family, self.data)

    def _in_words(self, text: str) -> str:
        """A sentence with the names of the experts, if they have any."""
        return in_words(text, self.family, self.data)

    @property
    def experts(self) -> ExpertNames:
        """What the experts are called: ``keys`` has their numbers from 1, or names."""
        return experts_of(self.family, self.data)

    @cached_property
    def _terms(self) -> dict[str, list[str]]:
        """Names of the reported parameters of each term."""
        return names_by_term(self.family, self.data)

    @property
    def params(self) -> Any:
        """The parameters, as a series if the columns of the data have names, else as an array.

        The series contains the parameters that are estimated or have a known value.  It leaves out
        the parameters of the reference expert of the gate, the coefficients of inputs that do not
        belong to a part of the model, and the gate if there is only one expert.  The array is
        `theta`, with all parameters.  `blocks` has the parameters by block.
        """
        return self._labelled(self.theta)

    @cached_property
    def _reported(self) -> IntArray | None:
        """Positions of the parameters of labelled answers; None where answers are arrays."""
        if self.data is None or self.data.features is None:
            return None
        return reported_positions(self.family)

    def _labelled(
        self, values: FloatArray, columns: Sequence[str] | None = None
    ) -> pd.Series | pd.DataFrame | Any:
        """Values per parameter (P,) or (P, m), labelled where the data had names.

        Those of pairs of parameters (P, P) come without columns.
        """
        return labelled(values, self._reported, self.param_names, columns)

    def _by_group(
        self, values: FloatArray, labels: Labels, index: object
    ) -> FloatArray | pd.Series:
        """Values (G,) of groups, as a series by their labels if the rows have an index."""
        if index is None:
            return values
        import pandas as pd

        return pd.Series(values, index=labels)

    @property
    def model(self) -> Family:
        """The model: the same as `family`, under the name that statsmodels uses."""
        return self.family

    @property
    def blocks(self) -> dict[str, FloatArray]:
        """The parameters in a dictionary with an array for each block, such as ``a``."""
        return self.family.unpack(self.theta)

    @property
    def covariances(self) -> Any:
        """Covariance matrices (k, q, q) of normal responses within each expert.

        If the responses have names, the result is a table with one row for each expert and
        response.

        Raises
        ------
        ValueError
            If there is one response, or one that is not normal.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 50)
        >>> y = np.column_stack([x + np.sin(7 * x), np.cos(7 * x) - x])
        >>> result = moestat.fit("multivariate-gaussian", x, y, n_experts=1, rng=0)
        >>> np.diag(result.covariances[0]).round(2)
        array([0.45, 0.52])
        """
        parts, k = self.family.likelihood.parts, self.family.n_experts
        if not parts or any(one.likelihood.name != "gaussian" for one in parts):
            raise ValueError(
                "covariances: available only for several normal responses, with"
                f" multivariate-gaussian or a list of gaussian; got {self.family.likelihood.name}"
            )
        matrices = covariances(parts, self.blocks, k)
        if self.data is None or self.data.features is None:
            return matrices
        import pandas as pd

        names = [one.name for one in parts]
        rows = pd.MultiIndex.from_product([self.experts.keys, names], names=["expert", "response"])
        return pd.DataFrame(matrices.reshape(-1, len(names)), index=rows, columns=names)

    @property
    def measure(self) -> MixingMeasure:
        """The estimate as a mixing measure, which does not depend on the order of the experts."""
        return self.family.measure(self.theta)

    @property
    def certificate(self) -> Certificate:
        """The checks of whether the estimate is a local maximum."""
        return self.solution.certificate

    @cached_property
    def singular_values(self) -> FloatArray:
        """Singular values of the scaled Jacobian at the free coordinates, ascending.

        The Gauss-Newton spectrum in the coordinates of the fit, with the inputs centred: every
        column of J has length 1, so that the values do not depend on units; their ratio is the
        condition of the fit.
        """
        inner = self._inner
        lower, upper = inner.family.box_at(inner.solution.theta)
        at = np.flatnonzero((inner.solution.theta > lower) & (inner.solution.theta < upper))
        block = inner.solution.information[np.ix_(at, at)]
        scale = np.sqrt(np.maximum(np.abs(np.diag(block)), np.finfo(float).tiny))
        return np.sqrt(np.maximum(np.linalg.eigvalsh(block / np.outer(scale, scale)), 0.0))

    @cached_property
    def identified(self) -> Identified:
        """Which parameters the data determine, in the coordinates in which the fit was computed."""
        return self._inner.identified(self.nobs)

    @cached_property
    def free(self) -> np.ndarray:
        """Whether each parameter (P,) is free: neither fixed nor affected by one on a bound."""
        known = self.identified
        return self._moved_by(known.estimated) & ~self._moved_by(known.held)

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper bounds (P, 2) of each parameter in the fit.

        The bounds of a fit to data are set for standardised coordinates.  For each parameter, this
        is the range of its values over these bounds.
        """
        inner = self._inner
        sides = np.column_stack([inner.family.lower, inner.family.upper])
        if inner.coordinates is None:
            return sides
        matrix, shift = inner.coordinates.matrix, inner.coordinates.shift[:, None]
        return np.maximum(matrix, 0.0) @ sides + np.minimum(matrix, 0.0) @ sides[:, ::-1] + shift

    @property
    def _inner(self) -> StandardFit:
        """The fit in the coordinates of the solver."""
        return self.standard or StandardFit(self.family, self.solution, None)

    def _moved_by(self, inner: np.ndarray) -> np.ndarray:
        """Parameters (P,) that depend on marked parameters in the coordinates of the solver."""
        return (self._matrix != 0.0) @ inner

    def cov_params(self) -> Any:
        """Covariance matrix of the parameters in `params`: the inverse observed information.

        Rows and columns of fixed parameters are 0.  They are NaN for parameters on a bound, because
        the theory of interior maxima does not cover these, and for parameters that the data do not
        determine (see `identified`).  The whole matrix is NaN if the information matrix is not
        positive definite.
        """
        return self._labelled(self._covariance.copy())

    @cached_property
    def _covariance(self) -> FloatArray:
        return self._spread(np.eye(self.family.n_params))

    @property
    def _matrix(self) -> FloatArray:
        """Derivative (P, P) of the parameters with respect to those in the solver's coordinates."""
        coordinates = self._inner.coordinates
        return np.eye(self.family.n_params) if coordinates is None else coordinates.matrix

    @property
    def _at_infinity(self) -> np.ndarray:
        """Parameters (P,) that diverge, as a warning of the fit reports.

        They have no standard error, and no linear relation among inputs affects them.
        """
        warned = not {LimitWarning.__name__, SeparationWarning.__name__}.isdisjoint(self.kinds)
        return warned & self.identified.definite & ~self.identified.related(self._matrix)

    @property
    def _is_separated(self) -> bool:
        """Whether the fit has warned that the likelihood has no finite maximum."""
        return SeparationWarning.__name__ in self.kinds

    def _spread(self, rows: FloatArray) -> FloatArray:
        """Covariance (q, q) of functions with derivatives (q, P); NaN for those not identified."""
        inward = rows @ self._matrix
        if self.robust is None:
            return self.identified.spread(inward)
        spread, undetermined = rows @ self.robust @ rows.T, ~self.identified.seen(inward)
        spread[undetermined] = np.nan
        spread[:, undetermined] = np.nan
        return spread

    def _errors_of(self, rows: FloatArray) -> FloatArray:
        """Standard errors (q,) of functions with derivatives (q, P)."""
        variance = None
        if self.robust is not None:
            variance = np.einsum("qp,pr,qr->q", rows, self.robust, rows, optimize=True)
        return self.identified.errors(rows @ self._matrix, variance)

    def _open(self, rows: FloatArray) -> np.ndarray:
        """Whether functions with derivatives (q, P) have their maxima at infinity, shape (q,)."""
        known, inward = self.identified, rows @ self._matrix
        # A derivative that is 0 in float64 does not show that the function is determined.
        none = np.linalg.norm(inward @ known.whitened, axis=1) == 0.0
        return known.open(inward) | (none & (known.flat.shape[1] > 0))

    @property
    def theta_bse(self) -> FloatArray:
        """Standard errors (P,) of all parameters, in the order of `theta`; see `bse`."""
        return np.sqrt(np.diag(self._covariance))

    @property
    def bse(self) -> Any:
        """Standard errors of the parameters in `params`.

        They are 0 for fixed parameters, and NaN for those on a bound or not identified.
        """
        return self._labelled(self.theta_bse)

    @property
    def _z(self) -> FloatArray:
        errors = self.theta_bse
        return np.divide(self.theta, errors, where=errors > 0.0, out=np.full(errors.size, np.nan))

    @property
    def tvalues(self) -> Any:
        """Parameters in `params` divided by their standard errors; NaN without a standard error."""
        return self._labelled(self._z)

    @property
    def pvalues(self) -> Any:
        """Two-sided normal p-values of the hypotheses that each parameter in `params` is 0."""
        from scipy.stats import norm

        return self._labelled(2.0 * norm.sf(np.abs(self._z)))

    def _interval(self, alpha: float) -> FloatArray:
        half = normal_reach(alpha) * self.theta_bse
        return np.column_stack([self.theta - half, self.theta + half])

    @property
    def has_rows(self) -> bool:
        """Whether the results hold the data of the fit."""
        return self.data is not None and len(self.data.y) >= self.weight.size

    @property
    def reads_source(self) -> bool:
        """Whether the rows are not in memory, but can be read again from blocks or a source."""
        return not self.has_rows and self.source is not None

    @property
    def rows_elsewhere(self) -> BlockRows:
        """The rows of a fit to blocks or a source."""
        assert self.source is not None
        return self.source

    @property
    def rows(self) -> Data:
        """The data of the fit.

        Raises
        ------
        ValueError
            If the results were stored without them.
        """
        if self.data is None or not self.has_rows:
            raise ValueError(
                "the data of the fit are not in memory: either the result was stored without the"
                " data, or it is from blocks or a source. A source is read again for residuals,"
                " covariances, score tests, bootstraps, influence and criteria; for everything else"
                " use result.at_sample(), which holds a sample of the rows"
            )
        return self.data

    @property
    def llf(self) -> float:
        """The log-likelihood, under the name that statsmodels uses."""
        return float(self.solution.log_likelihood)

    @property
    def nobs(self) -> float:
        """Sum of the sample weights."""
        return float(self.weight.sum())

    @property
    def edf(self) -> float:
        """Degrees of freedom: the number of parameters that the data determine, see `identified`.

        For a posterior mode it is the effective number ``tr((I + Q)^-1 I)``, with the information I
        of the data and the curvature Q of minus the log prior density (Gray 1992).  A parameter
        that only the prior determines counts as 0.
        """
        known, penalty = self.identified, self._inner.penalty
        if penalty is None:
            return known.rank
        return known.rank - float(np.sum(known.covariance * penalty))

    @property
    def _n_estimated(self) -> float:
        """Degrees of freedom, with the noise variance of a regression function."""
        return self.edf + int(self.family.is_regression)

    @property
    def n_groups(self) -> float | None:
        """Number of groups, the sum of their weights; None if the fit has no groups."""
        if self.data is None or self.data.groups is None:
            return None
        if self.data.group_weight is not None:
            return self.data.group_weight
        grouping = Grouping(self.data.groups)
        return float(self.weight[grouping.order][grouping.begin].sum())

    @property
    def n_independent(self) -> float:
        """Number of independent units, the sum of the weights of the groups, or else of the rows.

        BIC, HQIC and ICL use it as the sample size.
        """
        n_groups = self.n_groups
        return self.nobs if n_groups is None else n_groups

    @property
    def bic(self) -> float:
        """Schwarz's criterion, ``edf log n - 2 l``, with n the number of groups if there are any.

        For a posterior mode, l is the log-likelihood at the mode, as in Fraley and Raftery (2007).
        """
        return np.log(self.n_independent) * self._n_estimated - 2.0 * self.llf

    def _inputs(self, X: ArrayLike | TableLike | None = None) -> Inputs:
        """Inputs of new rows, or those of the fit."""
        return own_inputs(self.rows) if X is None else read_new_inputs(self.family, self.data, X)

    @overload
    def _of_rows(self, name: str, given: None) -> None: ...

    @overload
    def _of_rows(self, name: str, given: ArrayLike | TableLike) -> Labels: ...

    def _of_rows(self, name: str, given: Any) -> Labels | None:
        """Labels (n,) of the rows of the fit, from labels of these rows or of all rows passed."""
        if given is None:
            return None
        if isinstance(given, str):
            given = self._column_named(name, given)
        column = as_column(name, given)
        at = places_of_rows(self.rows, name, len(column.values), index_of(given))
        column = column.at(at)
        column.check_missing(name)
        return column.values

    def _of_dropped(self, name: str, given: Any) -> tuple[Labels, np.ndarray] | None:
        """Labels of the rows that were left out, and which are missing; None where not given."""
        rows = self.rows
        if given is None or not rows.dropped:
            return None
        column = as_column(
            name, self._column_named(name, given) if isinstance(given, str) else given
        )
        n = len(rows.y) + rows.dropped
        if rows.kept is None or len(column.values) != n:
            return None
        column = column.at(np.setdiff1d(np.arange(n), rows.kept))
        return column.values, np.asarray(column.missing, dtype=bool)

    def _column_named(self, name: str, column: str) -> Any:
        """A column of the table that a fit by formula was given, all rows passed."""
        if self.table is None:
            raise ValueError(
                f"{name}: names of columns are for results of fit_formula with their table in"
                f" memory; got {short(column)}, give the label of each row"
            )
        names = column_names(self.table)
        if column not in names:
            raise ValueError(
                f"{name}: the table has no column {short(column)}{did_you_mean(column, names)}; it"
                f" has {listed(names)}"
            )
        table = as_table(name, self.table, [column])
        assert table is not None
        values = table.columns[0].values
        if table.index is None:
            return values
        import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

        return pd.Series(values, table.index)

    @property
    def _labels(self) -> list[Any]:
        """Labels of the classes."""
        if self.data is not None and self.data.class_labels is not None:
            return np.asarray(self.data.class_labels).tolist()
        return list(range(1, self.family.n_classes + 1))

    def _check_experts(self) -> None:
        if self.family.is_regression:
            raise ValueError("a regression function has no posterior probabilities of its experts")

    @cached_property
    def _shares(self) -> FloatArray:
        return self._posterior(self.rows)

    def _posterior(self, data: Data) -> FloatArray:
        """Responsibilities (n, k), given all rows of a group if the fit has groups."""
        if data.groups is not None:
            return posterior_of_rows(self.family, self.theta, data).T
        rows = encoded_rows(self.family, data)
        return self.family.rowwise(self.theta, rows.X, rows.y)[1].T

    @property
    def assignments(self) -> tuple[FloatArray, FloatArray]:
        """Posterior probabilities (k, m) and weights (m,) of each row, or of each group of rows."""
        self._check_experts()
        tau, weight = self._shares.T, self.weight
        if self.rows.groups is None:
            return tau, weight
        first = (grouping := Grouping(self.rows.groups)).order[grouping.begin]
        return tau[:, first], weight[first]

    @property
    def ends(self) -> pd.DataFrame:
        """Where the search ended: this fit first, then the ends of the next highest modes.

        The columns are ``log_likelihood``; ``log_posterior``, the log-likelihood plus the log
        density of the weak prior, up to a constant; ``finite``, whether the maximum is at finite
        parameters; ``rows_per_parameter``, the fewest rows of an expert for each of its parameters;
        and ``starts``, the number of starts that reached the mode.  ``at_end(j)`` returns the fit
        at an end.

        Raises
        ------
        ValueError
            If the fit does not know other ends.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 80)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> bool(np.isclose(result.ends.log_likelihood[0], result.llf))
        True
        """
        return self._seen.frame()

    @property
    def is_of_modes(self) -> bool:
        """Whether the search for starts was one for posterior modes: `p_higher` is of these."""
        return self.prior is not None or self.certificate.start.startswith(MODES.name)

    @property
    def _of_search(self) -> tuple[str, ...]:
        """What to know about modes and ends that the search saw, and the fit does not return."""
        return () if self.seen is None or self.prior is not None else self.seen.notes

    @property
    def _seen(self) -> Ends:
        if self.seen is None:
            raise ValueError(
                "ends: known only of fits of several experts by the default search to all rows in"
                " memory; not of given starts, sums of squares, jumps, sources or large samples,"
                " which are searched on parts of the rows, nor where a time limit came before the"
                " first end"
            )
        return self.seen

    @property
    def residual_variance(self) -> float:
        """Mean squared residual of a regression function, its maximum-likelihood variance.

        Raises
        ------
        ValueError
            If the family has a density.
        """
        if not self.family.is_regression:
            raise ValueError(f"the {self.family.likelihood.name} likelihood has no residuals")
        return float(np.exp(-2.0 * self.llf / self.nobs - 1.0) / (2.0 * np.pi))


_Result = TypeVar("_Result", bound=Fitted)


def objective_of(result: Fitted) -> str:
    """What a fit maximises, in words."""
    return "likelihood" if result.prior is None else "posterior density"


def warn_and_note(result: _Result, messages: Sequence[tuple[type[Warning], str]]) -> _Result:
    """Issue these warnings, and return the result with their messages among its notes."""
    for kind, message in messages:
        warn_caller(message, kind)
    notes = (*result.notes, *(message for _, message in messages))
    return replace(result, notes=notes, kinds=(*result.kinds, *(k.__name__ for k, _ in messages)))
