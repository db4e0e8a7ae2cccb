"""Sparse fits over a path of penalties: which inputs gate and experts need, of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door, doors
from moestat.base.figures import REFERENCE, new_axes
from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray, IntArray, Seed, TableLike
from moestat.base.validate import as_generator, as_numbers, positive_int, real_in, short
from moestat.estimation.data.data import Data
from moestat.estimation.data.naming import parameter_names
from moestat.estimation.data.priors import Prior
from moestat.estimation.data.read import check_options, read_data
from moestat.estimation.fitting.fit import fit
from moestat.estimation.fitting.fit_formula import fit_formula, read_formula
from moestat.estimation.progress import LOG, reported
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.responses import Columns
from moestat.estimation.reading.table import Column
from moestat.estimation.results.results import MoEResults
from moestat.estimation.studies.cross_validation import fold_labels, log_density_of, rows_of
from moestat.estimation.studies.selection import SOLVING, as_criterion, best_place
from moestat.estimation.studies.sparse import SparseData
from moestat.model.family import Family
from moestat.solvers.proximal import Stationary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["LassoPath", "lasso_path"]

_CRITERIA = ("aic", "bic", "cv")

_TOGETHER = ("coefficients", "experts", "inputs")

_SMALLEST = 0.01, 0.05
"""Smallest penalty over the largest one, with more and with fewer rows than parameters."""

_NAMED = 10
"""Number of coefficients in the legend of a plot."""

_WHOLE = ("df", "nonzero", "inputs", "certified")


@doors
@dataclass(frozen=True, repr=False)
class LassoPath:
    """Sparse fits from the largest penalty, at which all slopes are 0, downwards.

    Parameters
    ----------
    table : mapping of str to ndarray
        Columns by name, one entry per penalty: ``penalty``, ``llf``, ``df``, ``aic``, ``bic``,
        ``cv`` (mean log-density of held-out rows, NaN without folds), ``nonzero`` penalised
        coefficients, ``inputs`` with any, ``residual`` (largest violation of the conditions of
        Karush, Kuhn and Tucker, in the units of the penalty) and ``certified``.
    theta : ndarray of shape (m, P)
        Parameters in the units of the data.
    param_names : list of str
        Names of the parameters.
    criterion : str
        The criterion that chooses a fit.
    """

    table: dict[str, FloatArray] = field(repr=False)
    theta: FloatArray = field(repr=False)
    param_names: list[str] = field(repr=False)
    criterion: str
    _ends: tuple[Stationary, ...] = field(repr=False)
    _sparse: SparseData = field(repr=False)

    @property
    def penalties(self) -> FloatArray:
        """The penalties (m,), descending."""
        return self.table["penalty"]

    def chosen(self, criterion: str | None = None) -> int:
        """Position on the path of the fit with the best criterion, certified fits first."""
        name = as_criterion(criterion or self.criterion, _CRITERIA)
        return best_place(name, self.table[name], self.table["certified"] > 0.0, "lasso_path")

    def best(self, criterion: str | None = None) -> MoEResults:
        """The fit that a criterion chooses, see `at`."""
        return self.at(self.chosen(criterion))

    def at(self, place: int) -> MoEResults:
        """The fit at a position on the path, counted from 0.

        Coefficients that are 0 are treated as known, and the summary leaves them out.  Standard
        errors of the others come from the curvature; they take neither the selection nor the
        shrinkage into account.
        """
        if not -len(self._ends) <= place < len(self._ends):
            raise ValueError(
                f"place must be a position on the path of {len(self._ends)} fits, got {place}"
            )
        return self._sparse.result(self._ends[place], float(self.penalties[place]))

    def selected(self, criterion: str | None = None) -> list[str]:
        """Names of the penalised coefficients that are not 0 in the chosen fit."""
        chosen = self._sparse.penalised & (self.theta[self.chosen(criterion)] != 0.0)
        return [self.param_names[j] for j in np.flatnonzero(chosen)]

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame, one row per penalty."""
        import pandas as pd

        return pd.DataFrame(self.table)

    @property
    def coefficients(self) -> pd.DataFrame:
        """Penalised coefficients in the units of the data, one row per penalty."""
        import pandas as pd

        penalised = np.flatnonzero(self._sparse.penalised)
        index = pd.Index(self.penalties, name="penalty")
        return pd.DataFrame(
            self.theta[:, penalised], index, [self.param_names[j] for j in penalised]
        )

    def __repr__(self) -> str:
        place = self.chosen()
        return (
            f"<LassoPath: {self.criterion} chooses penalty {self.penalties[place]:.4g}, place"
            f" {place} of {len(self._ends)}, with {self.table['nonzero'][place]:.0f} coefficients"
            f" of {self.table['inputs'][place]:.0f} inputs>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p><pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        names = [name for name in self.table if np.any(np.isfinite(self.table[name]))]
        width = {name: 10 if name in _WHOLE else 9 for name in names}
        width |= {"nonzero": 8, "inputs": 7, "df": 7}
        lines = ["".join(f"{name:>{width[name]}s}" for name in names)]
        for i in range(len(self._ends)):
            cells = [_cell(name, self.table[name][i], width[name]) for name in names]
            lines.append("".join(cells) + " *" * (i == self.chosen()))
        return "\n".join([*lines, f"* chosen by {self.criterion}"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Coefficients, in standardised coordinates, against the penalty.

        The dashed line is at the chosen penalty; the largest coefficients there have names.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, which are also returned; by default those of a new figure.
        """
        axes: Axes = new_axes() if ax is None else ax
        inner, place = np.array([end.theta for end in self._ends]), self.chosen()
        visible = np.flatnonzero(self._sparse.penalised & np.any(inner != 0.0, axis=0))
        largest = visible[np.argsort(-np.abs(inner[place, visible]))][:_NAMED]
        for j in visible:
            named = j in largest and inner[place, j] != 0.0
            style: dict[str, Any] = {"linestyle": ":" if self._sparse.in_gate[j] else "-"}
            if not named:
                style |= {"color": "0.75", "zorder": 1, **REFERENCE}
            label = self.param_names[j] if named else None
            axes.plot(self.penalties, inner[:, j], label=label, **style)
        axes.axvline(self.penalties[place], color="0.4", linestyle="--", **REFERENCE)
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set(xlabel="penalty per row", ylabel="standardised coefficient")
        if np.any(inner[place, visible] != 0.0):
            dotted = "dotted: of the gate" if np.any(self._sparse.in_gate[visible]) else None
            axes.legend(
                frameon=False,
                title=dotted,
                title_fontsize="small",
                loc="upper left",
                bbox_to_anchor=(1.0, 1.0),
                fontsize="small",
            )
        return axes


def _cell(name: str, value: float, width: int) -> str:
    if name in _WHOLE and value == round(value):
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if name == "residual" else f"{value:{width}.4g}"


@door()
def lasso_path(
    family: Family | str | Mapping[str, object] | Sequence[object],
    X: str | ArrayLike | TableLike,
    y: ArrayLike | TableLike | None = None,
    *,
    l1_ratio: float = 1.0,
    together: str = "coefficients",
    gate_factor: float = 1.0,
    variance: float | None = Prior.variance,
    penalties: ArrayLike | None = None,
    n_penalties: int = 40,
    smallest: float | None = None,
    criterion: str = "bic",
    folds: int | None = None,
    sample_weight: ArrayLike | TableLike | None = None,
    data: object = None,
    rng: Seed = None,
    verbose: bool = False,
    **options: Any,
) -> LassoPath:
    """Lasso and elastic-net paths of a mixture of experts, also with more inputs than rows.

    The penalty is on the slopes of the gate and the experts, not on other parameters.

    Parameters
    ----------
    family, X, y, sample_weight
        As in `moestat.fit`.  X may be a formula of columns of `data`; y is then omitted.
    l1_ratio : float
        Share of norms in the penalty, from 0 (ridge) to 1 (lasso).
    together : {"coefficients", "experts", "inputs"}
        Which coefficients become 0 together: each one separately; those of an input in all experts
        (and all classes), and those of an input in the gate; or all those of an input.
    gate_factor : float
        Factor of the gate's norms; 0 leaves its slopes without penalty.
    variance : float or None
        Degrees of freedom of the prior of the variances of normal experts, as in `moestat.Prior`.
        With None the variances have no prior, and an expert may collapse to a few rows, which the
        penalty does not prevent.
    penalties : array_like of shape (m,), optional
        Penalties per row; by default `n_penalties` from the largest that has an effect.
    n_penalties : int
        Number of penalties on the path.
    smallest : float, optional
        Ratio of the smallest penalty to the largest; by default .01, or .05 if there are fewer
        rows than parameters.
    criterion : {"bic", "aic", "cv"}
        The criterion that chooses one fit of the path.
    folds : int, optional
        Number of folds of a cross-validation over rows, or groups; by default 5 if the criterion
        is "cv", else none.
    data : table, optional
        Columns of a formula.
    rng : numpy.random.Generator, int or None
        Source of starts and folds.
    verbose : bool
        Whether to show the progress on standard error.
    **options
        ``n_experts`` and further arguments of `moestat.family`; ``groups``, ``classes``,
        ``missing`` and ``resolution`` as in `moestat.fit`; ``weights`` and ``offset`` of a formula.

    Returns
    -------
    LassoPath
        ``best()`` is the fit that the criterion chooses, ``selected()`` has the names of its
        coefficients that are not 0, and ``plot()`` draws the path.

    Raises
    ------
    ValueError
        If the likelihood is discontinuous or the family has none, if the gate or the experts are
        not linear in the inputs, or for the reasons of `moestat.fit` for invalid data.

    Notes
    -----
    Each fit minimises, per row, ``-log L / n + penalty * sum_g w_g (r |u_g| + (1 - r) |u_g|^2 / (2
    sqrt(m_g)))``.  Here r is the `l1_ratio`, u_g are the m_g coefficients of a group, and ``w_g =
    sqrt(m_g)`` (Yuan and Lin 2006).  The coefficients belong to inputs that are divided by their
    standard deviations, so the path does not depend on units.  The softmax gate has penalised
    slopes for all experts, so none of them is the reference.  The slopes of classes are contrasts
    to the last class.  The objective is the penalised likelihood of Khalili and Chen (2007) and
    Khalili (2010) with the lasso, but without their factor for the weight of an expert, as in
    Chamroukhi and Huynh (2019).  The slopes of an expert are measured in units of its own standard
    deviation, as in Staedler, Buehlmann and van de Geer (2010); so if the standard deviation
    shrinks, the penalty on its slopes grows.

    The log-likelihood is not concave.  The fits are therefore stationary points, and ``residual``
    measures how accurately each fit is stationary.  A fit is ``certified`` if, in addition, no
    curvature is negative and no variance is on its lower bound.  The path begins with the best fit
    without slopes.  `moestat.fit` then searches for fits without penalty on the inputs that BIC
    chooses.  The path is also followed from the results of these searches, up and down, and for
    each penalty the fit with the lower objective is kept.

    For the lasso, ``df`` is the number of penalised coefficients that are not 0 (Zou, Hastie and
    Tibshirani 2007), with at most k - 1 for each input of the gate, plus the number of coefficients
    without penalty.  If the penalty contains squares, ``df`` is the effective number of parameters
    ``tr((H + Q)^-1 H)``, where H is the Hessian of the data term and Q that of the squares (Gray
    1992); the norms do not contribute to it.

    After an interrupt (Ctrl-C), the function raises `KeyboardInterrupt`.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 5))
    >>> y = np.where(X[:, 0] > 0, 4.0 * X[:, 1], 4.0 - 4.0 * X[:, 2]) + 0.3 * rng.normal(size=100)
    >>> path = moestat.lasso_path("gaussian", X, y, n_experts=2, n_penalties=6, rng=0)
    >>> result = path.best()
    >>> {"beta1[1,0]", "a[1,1]", "a[2,2]"} <= set(path.selected()), result.certificate.certified
    (True, True)
    """
    how = _check_penalty(l1_ratio, together, gate_factor, variance)
    count = positive_int("n_penalties", n_penalties)
    parts = 5 if as_criterion(criterion, _CRITERIA) == "cv" and folds is None else folds
    fitted_family, fitted_data = _read_data(family, X, y, data, sample_weight, options)
    generator = as_generator(rng)
    with reported("lasso_path", verbose) as report, ONE_THREAD:
        sparse_data = SparseData(fitted_family, fitted_data, *how)
        least = smallest if smallest is not None else _SMALLEST[int(sparse_data.is_wide)]
        grid: FloatArray | tuple[int, float] = (
            count,
            real_in("smallest", least, 0.0, 1.0, open_low=True),
        )
        if penalties is not None:
            grid = np.unique(as_numbers("penalties", penalties).ravel())[::-1]
            if not grid.size or not 0.0 <= grid[-1] <= grid[0] < np.inf:
                raise ValueError(f"penalties must be numbers from 0 on, got {short(penalties)}")
        values, ends = sparse_data.path(grid, generator, report.count)
        table = _table(sparse_data, values, ends)
        if parts is not None:
            labels = fold_labels(fitted_data, parts, generator)
            table["cv"] = _cross_validate(sparse_data, how, values, labels, generator)
    theta = np.array([sparse_data.outward(end.theta) for end in ends])
    return LassoPath(
        table,
        theta,
        parameter_names(fitted_family, fitted_data),
        criterion,
        tuple(ends),
        sparse_data,
    )


_How = tuple[float, str, float, float | None]
"""What `SparseData` takes besides the data."""


def _check_penalty(
    l1_ratio: float, together: str, gate_factor: float, variance: float | None
) -> _How:
    if together not in _TOGETHER:
        raise ValueError(f"together must be one of {', '.join(_TOGETHER)}, got {short(together)}")
    return (
        real_in("l1_ratio", l1_ratio, 0.0, 1.0),
        together,
        real_in("gate_factor", gate_factor, 0.0),
        variance,
    )


def _read_data(
    family: Family | str | Mapping[str, Any] | Sequence[Any],
    X: str | ArrayLike | TableLike,
    y: ArrayLike | TableLike | None,
    data: object,
    sample_weight: ArrayLike | TableLike | None,
    options: Mapping[str, Any],
) -> tuple[Family, Data]:
    """The model and the data of the rows, from a formula or from arrays."""
    check_options(options, lasso_path, fit, fit_formula)
    if solving := [name for name in SOLVING if name in options]:
        raise ValueError(f"{', '.join(solving)}: not available; lasso_path has its own solver")
    if options.get("random") is not None:
        raise ValueError(
            "random: lasso_path has no random effects; use moestat.fit or moestat.select"
        )
    given, extra = dict(options), dict[str, object]()
    inputs: ArrayLike | TableLike | Inputs = X
    response: ArrayLike | TableLike | Column | Columns | None = y
    if isinstance(X, str):
        if data is None or y is not None or sample_weight is not None:
            raise ValueError(
                f"data: {X!r} is a formula: give the table as data=, and leave out y and"
                " sample_weight"
            )
        given = {"n_experts": 2, **given}
        weights, offset, groups = (
            given.pop(name, None) for name in ("weights", "offset", "groups")
        )
        missing, scope = given.pop("missing", "raise"), given.pop("scope", None)
        inputs, response, given, extra = read_formula(
            X, data, family, weights, offset, groups, missing, scope, given
        )
        sample_weight = given.pop("sample_weight")
    elif data is not None:
        raise ValueError(
            "data: allowed only with a formula, such as lasso_path('gaussian', 'y ~ .', data=data)"
        )
    if given.pop("random", None) is not None:
        raise ValueError(
            "X: lasso_path has no random effects; leave (... | ...) out of the formula"
        )
    names = ("groups", "classes", "missing", "resolution")
    reading = {n: given.pop(n) for n in names if n in given}
    fitted_family, fitted_data = read_data(
        family, inputs, response, sample_weight, given, **reading
    )
    return fitted_family, replace(fitted_data, **extra)


def _table(
    sparse_data: SparseData, penalties: FloatArray, ends: Sequence[Stationary]
) -> dict[str, FloatArray]:
    """Columns of the table of a path."""
    llf = np.array([sparse_data.log_likelihood(end) for end in ends])
    df = np.array([sparse_data.degrees(end) for end in ends])
    penalised = np.flatnonzero(sparse_data.penalised)
    input_of = sparse_data.sparse.input_of[penalised]
    inputs = [np.unique(input_of[end.theta[penalised] != 0.0]).size for end in ends]
    sound = [sparse_data.is_certified(*pair) for pair in zip(ends, penalties, strict=True)]
    return {
        "penalty": penalties,
        "llf": llf,
        "df": df,
        "aic": 2.0 * df - 2.0 * llf,
        "bic": np.log(sparse_data.rows) * df - 2.0 * llf,
        "cv": np.full(llf.size, np.nan),
        "nonzero": np.array([sparse_data.count(end.theta) for end in ends], dtype=np.float64),
        "inputs": np.array(inputs, dtype=np.float64),
        "residual": np.array([end.residual for end in ends]),
        "certified": np.array(sound, dtype=np.float64),
    }


def _cross_validate(
    sparse_data: SparseData,
    how: _How,
    penalties: FloatArray,
    labels: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Mean log-density (m,) of held-out rows, by paths that are fitted to the other folds."""
    total = np.zeros(penalties.size)
    for fold in np.unique(labels):
        LOG.info("fold %d of %d", fold + 1, labels.max() + 1)
        fitted_family, seen_data = rows_of(sparse_data.family, sparse_data.data, labels != fold)
        part = SparseData(fitted_family, seen_data, *how)
        _, ends = part.path(penalties, rng)
        total += [
            log_density_of(fitted_family, sparse_data.data, labels == fold, part.outward(end.theta))
            for end in ends
        ]
    return total / float(sparse_data.data.weight.sum())
