"""Results of a fit, in the manner of statsmodels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.door import door, doors
from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.base.warnings import OverSpecifiedWarning, warn_caller
from moestat.estimation.criteria import Criteria
from moestat.estimation.data import Data, without_rows
from moestat.estimation.groups import Grouping
from moestat.estimation.inference.bootstrap import BootstrapResult, bootstrap
from moestat.estimation.inference.covariance import KINDS, robust_covariance
from moestat.estimation.inference.diagnostics import (
    Influence,
    classification_table,
    influence,
)
from moestat.estimation.inference.effects import Effects, marginal_effects, t_test
from moestat.estimation.inference.hypotheses import TestResult, wald
from moestat.estimation.inference.identified import Identified, identified
from moestat.estimation.inference.nested import lr_test
from moestat.estimation.inference.profile import Profile, profile
from moestat.estimation.inference.restricted import RestrictedFit, fit_constrained
from moestat.estimation.inference.simpler import Simpler, simpler
from moestat.estimation.naming import parameter_names
from moestat.estimation.pictures import Pictures
from moestat.estimation.predicting import Predicting
from moestat.estimation.priors import Prior
from moestat.estimation.reading.formula import FormulaInputs
from moestat.estimation.relabel import relabelled
from moestat.estimation.storage import read_record, write_record
from moestat.estimation.summary import Summary, estimates, summarise, tidy
from moestat.model.family import Family
from moestat.model.measure import MixingMeasure
from moestat.model.units import Coordinates, DataUnits
from moestat.solvers import Certificate, Solution

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MoEResults", "StandardFit", "load"]


@dataclass(frozen=True)
class StandardFit:
    """A fit in the coordinates in which it was found.

    Parameters
    ----------
    family : Family
        The family with the box there.
    solution : Solution
        The solution there.
    coordinates : Coordinates
        The way to the coordinates of the user.
    metric : ndarray of shape (P, P), optional
        Mean squared moves of predictors,
        `moestat.estimation.inference.identified.channel_metric`.
    penalty : ndarray of shape (P, P), optional
        Curvature of minus the log prior density at a posterior mode.
    """

    family: Family
    solution: Solution
    coordinates: Coordinates | None = None
    metric: FloatArray | None = field(default=None, repr=False)
    penalty: FloatArray | None = field(default=None, repr=False)


@doors
@dataclass(frozen=True, repr=False)
class MoEResults(Predicting, Criteria, Pictures):
    """A fitted mixture of experts.

    Names are those of statsmodels where it has them.  Fitted to a data frame, `params`, `bse`,
    `tvalues` and `pvalues` are pandas series, `conf_int` and `cov_params` frames, labelled by
    `param_names`; fitted to arrays they are arrays.  `theta` is an array always.

    Parameters
    ----------
    family : Family
        The model.
    solution : Solution
        Parameters, information and certificate.
    solver : str
        Name of the solver.
    weight : ndarray of shape (n,)
        Sample weights of the data.
    response_variance : float
        Variance of a continuous response, nan for classes.
    data : Data, optional
        The data of the fit, with the names of columns and classes.
    standard : StandardFit, optional
        The fit in standardised coordinates; None for one over the family's compact box.
    cov_type : str
        Which covariance standard errors are of, see `get_robustcov_results`.
    robust : ndarray of shape (P, P), optional
        That covariance, where it is not the inverse observed information.
    notes : tuple of str
        Why the fit may not be the maximum that it seems, in words; the fit has warned of these.
    prior : Prior, optional
        The prior density of which the fit is the posterior mode; None for maximum likelihood.
    """

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

    def __repr__(self) -> str:
        family, certificate = self.family, self.certificate
        certified = "certified" if certificate.certified else "not certified"
        return (
            f"<MoEResults: {family.likelihood.name}, {family.gate.name} gate,"
            f" {family.n_experts} {family.expert.name} experts, n = {self.nobs:g},"
            f" log-likelihood {self.log_likelihood:.6g}, {certified}{self._mode}>"
        )

    def _repr_html_(self) -> str:
        """The summary with the picture of `plot` beside it, where there is one."""
        picture = ""
        if self.data is not None and len(self.data.y) == self.weight.size:
            encoded = b64encode(self.picture()).decode()
            picture = f'<img alt="data and fit" src="data:image/png;base64,{encoded}">'
        return f"{picture}{self.summary().as_html()}"

    @property
    def _mode(self) -> str:
        return "" if self.prior is None else ", posterior mode"

    @property
    def theta(self) -> FloatArray:
        """Packed parameters (P,), the array that a family reads; `blocks` has them by name."""
        return self.solution.theta

    @cached_property
    def param_names(self) -> list[str]:
        """Names of the packed parameters (P,), in the words of the data."""
        return parameter_names(self.family, self.data)

    @property
    def params(self) -> Any:
        """Packed parameters (P,); `blocks` has them by name."""
        return self._labelled(self.theta)

    def _labelled(self, values: FloatArray, columns: Any = None) -> pd.Series | pd.DataFrame | Any:
        """Values per parameter (P,) or (P, m), labelled where the data had names."""
        if self.data is None or self.data.features is None:
            return values
        import pandas as pd

        if values.ndim == 1:
            return pd.Series(values, index=self.param_names)
        return pd.DataFrame(values, index=self.param_names, columns=columns)

    @property
    def blocks(self) -> dict[str, FloatArray]:
        """Parameters by block."""
        return self.family.unpack(self.theta)

    @property
    def measure(self) -> MixingMeasure:
        """The fitted mixing measure."""
        return self.family.measure(self.theta)

    @property
    def certificate(self) -> Certificate:
        """Evidence that this is a maximum."""
        return self.solution.certificate

    @cached_property
    def singular_values(self) -> FloatArray:
        """Singular values of the scaled Jacobian at the free coordinates, ascending.

        The Gauss-Newton spectrum in the coordinates of the fit, with the inputs centred: every
        column of J has length 1, so that the values do not depend on units; their ratio is the
        condition of the fit.
        """
        at = np.flatnonzero(self._inner_free)
        block = self._inner.solution.information[np.ix_(at, at)]
        scale = np.sqrt(np.maximum(np.abs(np.diag(block)), np.finfo(float).tiny))
        return np.sqrt(np.maximum(np.linalg.eigvalsh(block / np.outer(scale, scale)), 0.0))

    @cached_property
    def identified(self) -> Identified:
        """What the data say about the parameters, in the coordinates in which they were found."""
        inner = self._inner
        return identified(inner.family, inner.solution, self.nobs, inner.metric)

    @cached_property
    def free(self) -> np.ndarray:
        """Coordinates neither pinned nor moved by one on a bound, shape (P,)."""
        known = self.identified
        return self._moved_by(known.estimated) & ~self._moved_by(known.held)

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper bounds (P, 2) that each coordinate had in the fit.

        A fit to data has a box in standardised coordinates; the bounds are its shadow.
        """
        inner = self._inner
        sides = np.column_stack([inner.family.lower, inner.family.upper])
        if inner.coordinates is None:
            return sides
        matrix, shift = inner.coordinates.matrix, inner.coordinates.shift[:, None]
        return np.maximum(matrix, 0.0) @ sides + np.minimum(matrix, 0.0) @ sides[:, ::-1] + shift

    @property
    def _inner(self) -> StandardFit:
        """The fit where it was found."""
        return self.standard or StandardFit(self.family, self.solution, None)

    @cached_property
    def _inner_free(self) -> np.ndarray:
        """Coordinates neither pinned nor on a bound where the fit was found."""
        theta = self._inner.solution.theta
        lower, upper = self._inner.family.box_at(theta)
        return (theta > lower) & (theta < upper)

    def _moved_by(self, inner: np.ndarray) -> np.ndarray:
        """Coordinates (P,) that depend on those marked where the fit was found."""
        return (self._matrix != 0.0) @ inner

    def cov_params(self) -> Any:
        """Covariance matrix (P, P) of the estimate: the inverse observed information by default.

        Rows and columns of pinned coordinates are 0, those of bounded ones NaN: the theory of
        interior maxima does not speak of them.  So are those of a coordinate that the data do not
        tell (see `identified`), and everything is NaN where the information is not positive.
        """
        return self._labelled(self._covariance.copy(), self.param_names)

    def get_robustcov_results(
        self,
        cov_type: str = "HC0",
        groups: Any = None,
        *,
        n_resamples: int = 500,
        rng: Any = None,
    ) -> MoEResults:
        """The same fit with standard errors, tests and intervals of another covariance.

        Parameters
        ----------
        cov_type : {"observed", "expected", "HC0", "HC1", "cluster", "bootstrap"}
            Inverse observed information; inverse expected information at the inputs; the sandwich
            ``V M V`` of White (1982), which holds when the model is wrong; that times
            ``n / (n - p)``; the sandwich by groups of Liang and Zeger (1986); the covariance of
            estimates of resampled rows, or groups.  Of a posterior mode V is the inverse curvature
            of the posterior density, and all of these speak of the mode over repeated samples,
            with the prior as it is: not of its distance from the maximum of the likelihood.
        groups : array_like of shape (n,), optional
            Label of each row's group, for "cluster" and "bootstrap".
        n_resamples : int
            Resamples of "bootstrap".
        rng : numpy.random.Generator, int or None
            Their source.

        Returns
        -------
        MoEResults
            With ``cov_type`` set.

        Raises
        ------
        ValueError
            If the type is unknown or groups do not fit the data.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> robust = result.get_robustcov_results("HC0")
        >>> bool(np.all(robust.bse[2:] > 0)), robust.cov_type
        (True, 'HC0')
        """
        if cov_type == "bootstrap":
            kind = "pairs" if groups is None else "cluster"
            robust = self.bootstrap(n_resamples, kind, groups=groups, rng=rng).cov_params()
        elif cov_type in KINDS:
            own = self._of_rows("groups", groups) if cov_type == "cluster" else groups
            robust = robust_covariance(self, cov_type, own)
        else:
            known = ", ".join((*KINDS, "bootstrap"))
            raise ValueError(f"cov_type must be one of {known}, got {cov_type!r}")
        other = replace(self, cov_type=cov_type, robust=robust)
        if "simpler" in self.__dict__:
            other.__dict__["simpler"] = self.simpler
        return other

    @cached_property
    def simpler(self) -> Simpler | None:
        """The best fit with one expert less next to this one, and what BIC says of it."""
        return simpler(self)

    @property
    def _order_doubt(self) -> str | None:
        """Why Wald inference is not valid here, None where nothing speaks against it."""
        if self.prior is not None:
            return None
        if not self.has_rows or self.simpler is None:
            return None
        return str(self.simpler) if self.simpler.gain > 0.0 else None

    def _warn_of_order(self) -> None:
        doubt = self._order_doubt
        if doubt is not None:
            warn_caller(doubt, OverSpecifiedWarning)

    def bootstrap(
        self,
        n_resamples: int = 500,
        kind: str = "pairs",
        *,
        groups: Any = None,
        rng: Any = None,
        verbose: bool = False,
    ) -> BootstrapResult:
        """Estimates of resampled data, `moestat.bootstrap`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.bootstrap(20, rng=0).conf_int().shape
        (5, 2)
        """
        return bootstrap(self, n_resamples, kind, groups=groups, rng=rng, verbose=verbose)

    def profile(self, name: str, alpha: float = 0.05) -> Profile:
        """The profile likelihood interval of the parameter called `name`, `moestat.profile`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> low, high = result.profile("a[0,0]").interval
        >>> bool(low < result.blocks["a"][0, 0] < high)
        True
        """
        return profile(self, name, alpha)

    def compare_lr_test(self, restricted: MoEResults) -> TestResult:
        """Likelihood ratio test of a restricted fit with as many experts, `moestat.lr_test`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> y = X[:, 0] + np.sin(np.arange(100))
        >>> full = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
        >>> full.compare_lr_test(moestat.fit("gaussian", X[:, :1], y, n_experts=1, rng=0)).df
        1
        """
        return lr_test(restricted, self)

    def wald_test(self, constraints: str) -> TestResult:
        """Wald's test of linear constraints such as ``"a[0,0] = a[1,0], b[0] = 0"``.

        Parameters
        ----------
        constraints : str
            Equations in `param_names`, separated by commas or semicolons.

        Returns
        -------
        TestResult
            Statistic, degrees of freedom and p-value.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.wald_test("a[0,0] = 1").df
        1
        """
        self._warn_of_order()
        return wald(constraints, self.param_names, self.theta, self._spread)

    def t_test(self, constraints: str) -> Effects:
        """Normal tests of linear functions of parameters one by one, with intervals.

        Parameters
        ----------
        constraints : str
            Equations in `param_names`, separated by commas or semicolons.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.t_test("a[0,0] = 0").tvalue[0], result.tvalues[3]))
        True
        """
        self._warn_of_order()
        return t_test(self, constraints)

    def get_margeff(self, *, dummy: bool = False) -> Effects:
        """Average marginal effects: mean derivatives of the prediction in each variable.

        Of the conditional mean, or of the probability of each class, at the rows of the fit, with
        standard errors by the delta method.  Of a fit by formula variables are columns of the data,
        whatever terms they are in; the effect of a level of a factor is that of this level in
        place of the first one.

        Parameters
        ----------
        dummy : bool
            Whether the effect of a column of 0 and 1 is that of 1 in place of 0.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.get_margeff().effect[0], result.blocks["a"][0, 0]))
        True
        """
        return marginal_effects(self, dummy)

    def relabel(self, order: Sequence[int]) -> MoEResults:
        """The same fit with its experts in another order.

        Parameters
        ----------
        order : sequence of int
            Experts of this fit, from 0, in the order that they are to have.

        Returns
        -------
        MoEResults
            The same density, log-likelihood and certificate.

        Raises
        ------
        ValueError
            If it is no such order, or bounds or constraints tell the experts apart.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> other = result.relabel([1, 0])
        >>> bool(np.array_equal(other.blocks["a"], result.blocks["a"][[1, 0]]))
        True
        """
        return relabelled(self, order)

    def fit_constrained(self, constraints: str) -> RestrictedFit:
        """The local maximum under linear constraints, such as equal slopes ``"a[0,0] = a[1,0]"``.

        Parameters
        ----------
        constraints : str
            Equations in `param_names`, separated by commas or semicolons.

        Returns
        -------
        RestrictedFit
            Parameters, standard errors and the likelihood ratio test, see
            `moestat.fit_constrained`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.fit_constrained("a[0,0] = 1").lr_test.df
        1
        """
        self._warn_of_order()
        return fit_constrained(self, constraints)

    @cached_property
    def _covariance(self) -> FloatArray:
        return self._spread(np.eye(self.family.n_params))

    @property
    def _matrix(self) -> FloatArray:
        """Derivative (P, P) of the parameters in the coordinates in which they were found."""
        coordinates = self._inner.coordinates
        return np.eye(self.family.n_params) if coordinates is None else coordinates.matrix

    @property
    def _at_infinity(self) -> np.ndarray:
        """Parameters (P,) without an error that no linear relation among inputs moves."""
        return self.identified.definite & ~self.identified.related(self._matrix)

    def _spread(self, rows: FloatArray) -> FloatArray:
        """Covariance (q, q) of functions with derivatives (q, P); NaN for those not identified."""
        inward = rows @ self._matrix
        if self.robust is None:
            return self.identified.spread(inward)
        spread, lost = rows @ self.robust @ rows.T, ~self.identified.seen(inward)
        spread[lost] = np.nan
        spread[:, lost] = np.nan
        return spread

    def _errors_of(self, rows: FloatArray) -> FloatArray:
        """Standard errors (q,) of functions with derivatives (q, P)."""
        variance = None
        if self.robust is not None:
            variance = np.einsum("qp,pr,qr->q", rows, self.robust, rows, optimize=True)
        return self.identified.errors(rows @ self._matrix, variance)

    @property
    def _errors(self) -> FloatArray:
        return np.sqrt(np.diag(self._covariance))

    @property
    def bse(self) -> Any:
        """Standard errors (P,); 0 for pinned, NaN for bounded and unidentified coordinates."""
        return self._labelled(self._errors)

    @property
    def _z(self) -> FloatArray:
        errors = self._errors
        return np.divide(self.theta, errors, where=errors > 0.0, out=np.full(errors.size, np.nan))

    @property
    def tvalues(self) -> Any:
        """Parameters over standard errors (P,), NaN where there is none."""
        return self._labelled(self._z)

    @property
    def pvalues(self) -> Any:
        """Two-sided normal p-values (P,) of the hypotheses that a parameter is 0."""
        from scipy.stats import norm

        return self._labelled(2.0 * norm.sf(np.abs(self._z)))

    def _interval(self, alpha: float) -> FloatArray:
        from scipy.stats import norm

        half = norm.ppf(1.0 - real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0) * self._errors
        return np.column_stack([self.theta - half, self.theta + half])

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Wald intervals (P, 2) of level ``1 - alpha``.

        Warns with an `OverSpecifiedWarning` if the data do not tell two experts apart: the
        intervals do not hold there.
        """
        self._warn_of_order()
        return self._labelled(self._interval(alpha), ["lower", "upper"])

    @property
    def entropy(self) -> float:
        """Entropy of the assignments per row, or group, over that of a blind guess, ``log k``.

        0 where every row belongs to one expert, 1 where no row tells anything; 0 for k = 1.
        """
        if self.family.n_experts == 1:
            return 0.0
        tau, weight = self.assignments
        total = -np.sum(tau * np.log(np.maximum(tau, np.finfo(float).tiny)) @ weight)
        return float(total / (self.n_independent * np.log(self.family.n_experts)))

    @property
    def assignments(self) -> tuple[FloatArray, FloatArray]:
        """Responsibilities (k, m) and weights (m,) of each row, or of each group of rows."""
        tau, weight = self.responsibilities.T, self.weight
        if self.rows.groups is None:
            return tau, weight
        first = (own := Grouping(self.rows.groups)).order[own.begin]
        return tau[:, first], weight[first]

    def classification_table(self, labels: Any) -> Any:
        """Known labels of the rows (n,) against their most probable experts, a pandas frame.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> table = result.classification_table(np.where(x < 0, "left", "right"))
        >>> list(table.index), int(table.to_numpy().sum())
        (['left', 'right'], 60)
        """
        import pandas as pd

        names, table = classification_table(self.responsibilities, self._of_rows("labels", labels))
        experts = pd.Index(range(1, self.family.n_experts + 1), name="expert")
        return pd.DataFrame(table, index=pd.Index(names, name="label"), columns=experts)

    def influence(self) -> Influence:
        """What leaving out each row would do, by one Newton step.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.influence().moves.shape
        (50, 5)
        """
        return influence(self)

    @property
    def has_rows(self) -> bool:
        """Whether the results hold the data of the fit."""
        return self.data is not None and len(self.data.y) >= self.weight.size

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
                "the results were stored without the data of the fit, or are of a fit to blocks"
            )
        return self.data

    def without_data(self) -> MoEResults:
        """The same results without X and y, smaller to store; names and weights stay."""
        return replace(self, data=None if self.data is None else without_rows(self.data))

    def save(self, path: str | Path) -> None:
        """Store the results in a file that `moestat.load` reads, without pickle.

        Parameters
        ----------
        path : str or path
            The file, a NumPy archive; ``.npz`` is the usual ending.

        Examples
        --------
        >>> import tempfile, numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/fit.npz")
        ...     bool(moestat.load(f"{folder}/fit.npz").llf == result.llf)
        True
        """
        write_record(path, self)

    def summary(self, alpha: float = 0.05) -> Summary:
        """Tables of the fit, its certificate and its parameters, by gate and expert.

        Experts count from 1; estimates have at least four digits, and two of their error.

        Parameters
        ----------
        alpha : float
            Intervals have the level ``1 - alpha``.

        Returns
        -------
        Summary
            Text when printed, HTML in a notebook; ``as_text``, ``as_latex``, ``as_html`` and
            ``as_csv`` make strings of it.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> "Expert 1" in result.summary(alpha=0.1).as_latex()
        True
        """
        return summarise(self, alpha)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """One row per parameter, in words of the data.

        Parameters
        ----------
        alpha : float
            Intervals have the level ``1 - alpha``.

        Returns
        -------
        pandas.DataFrame
            Columns ``part`` (gate or expert), ``expert`` (from 1), ``class`` (the class whose
            log-odds against the last one it is of, where there are classes), ``term``,
            ``estimate``, ``error``, ``z``, ``pvalue``, ``lower``, ``upper``, ``status``
            (estimated, reference, fixed, on a bound, not identified) and ``name``, the name in
            `param_names`.  Numbers that do not exist are NaN.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> list(result.tidy()["name"])
        ['b[0]', 'a[0,0]', 'log nu[0]']
        """
        return tidy(estimates(self, alpha))


@door()
def load(path: str | Path) -> MoEResults:
    """Results that `MoEResults.save` stored.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    MoEResults
        The results, equal to those stored in every number.

    Raises
    ------
    ValueError
        If the file does not hold results.
    OSError
        If the file cannot be read.

    Notes
    -----
    Nothing runs when a file is read.  A fit by formula evaluates the formula when it predicts:
    predict from such files only if you trust where they come from.

    Examples
    --------
    >>> import tempfile, numpy as np, moestat
    >>> X = np.linspace(-1, 1, 50)
    >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/fit.npz")
    ...     again = moestat.load(f"{folder}/fit.npz")
    >>> bool((again.params == result.params).all())
    True
    """
    known = (MoEResults, Solution, Certificate, Data, StandardFit, Coordinates, DataUnits, Prior)
    return read_record(path, (*known, FormulaInputs))
