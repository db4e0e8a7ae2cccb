"""Results of a fit, in the manner of statsmodels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moestat.base.door import door, doors
from moestat.base.validate import short
from moestat.base.warnings import OverSpecifiedWarning, warn_caller
from moestat.estimation.data import Data, without_rows
from moestat.estimation.explanation import Explanation, explain
from moestat.estimation.fitted import StandardFit
from moestat.estimation.inference.bootstrap import BootstrapResult, bootstrap
from moestat.estimation.inference.classes import classes
from moestat.estimation.inference.covariance import KINDS, robust_covariance
from moestat.estimation.inference.diagnostics import (
    classification_table,
)
from moestat.estimation.inference.effects import Effects, marginal_effects, t_test
from moestat.estimation.inference.hypotheses import TestResult, wald
from moestat.estimation.inference.nested import lr_test
from moestat.estimation.inference.profile import Profile, profile
from moestat.estimation.inference.restricted import RestrictedFit, fit_constrained
from moestat.estimation.inference.simpler import Simpler, simpler
from moestat.estimation.inference.three_step import ThreeStep, covariates, distal
from moestat.estimation.one_response import OneResponse, one_response
from moestat.estimation.pictures import Pictures
from moestat.estimation.priors import Lasso, Prior
from moestat.estimation.random_effects import effects_of_groups, variance_components
from moestat.estimation.reading.formula import FormulaInputs
from moestat.estimation.relabel import relabelled
from moestat.estimation.storage import MAX_BYTES, read_record, write_record
from moestat.estimation.summary import Summary, estimates, summarise, tidy
from moestat.model.units import Coordinates, DataUnits
from moestat.solvers import Certificate, Solution

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MoEResults", "StandardFit", "load"]


@doors
class MoEResults(Pictures):
    """A fitted mixture of experts.

    Attributes and methods have the names of statsmodels where statsmodels has them.  If the data
    were a data frame, `params`, `bse`, `tvalues` and `pvalues` are pandas series and `conf_int` and
    `cov_params` are frames, labelled by `param_names`; otherwise they are arrays.  `theta` is
    always an array.  `explain` says what the warnings of the fit mean and what to do.

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
        The covariance behind the standard errors, see `get_robustcov_results`.
    robust : ndarray of shape (P, P), optional
        That covariance, where it is not the inverse observed information.
    notes : tuple of str
        Messages of the warnings that the fit raised.
    prior : Prior, optional
        The prior density of which the fit is the posterior mode; None for maximum likelihood.
    kinds : tuple of str
        The class of the warning of each note.
    """

    def __repr__(self) -> str:
        family, certificate = self.family, self.certificate
        certified = "certified" if certificate.certified else "not certified"
        return (
            f"<MoEResults: {family.likelihood.name}, {family.gate.name} gate,"
            f" {family.n_experts} {family.expert.name} experts, n = {self.nobs:g},"
            f" log-likelihood {self.log_likelihood:.6g}, {certified}"
            f"{'' if self.prior is None else ', posterior mode'}>"
        )

    def _repr_html_(self) -> str:
        """The summary with the picture of `plot` beside it, where there is one."""
        picture = ""
        if self.has_rows:
            encoded = b64encode(self.picture()).decode()
            picture = f'<img alt="data and fit" src="data:image/png;base64,{encoded}">'
        return f"{picture}{self.summary().as_html()}"

    def get_robustcov_results(
        self,
        cov_type: str = "HC0",
        groups: Any = None,
        *,
        strata: Any = None,
        n_resamples: int = 500,
        rng: Any = None,
    ) -> MoEResults:
        """The same fit with standard errors, tests and intervals of another covariance.

        Parameters
        ----------
        cov_type : {"observed", "expected", "HC0", "HC1", "cluster", "survey", "bootstrap"}
            Inverse observed information; inverse expected information at the inputs; the sandwich
            ``V M V`` of White (1982), which holds when the model is wrong; that times
            ``n / (n - p)``; the sandwich by groups of Liang and Zeger (1986); that of a sample
            survey with weights, strata and clusters (Binder 1983); the covariance of estimates of
            resampled rows, or groups.  For a posterior mode V is the inverse curvature
            of the posterior density, and all of these describe how the mode varies over repeated
            samples under the same prior, not its distance from the maximum of the likelihood.
        groups : array_like of shape (n,), optional
            Label of each row's group, for "cluster" and "bootstrap", or of its cluster (primary
            sampling unit) for "survey".
        strata : array_like of shape (n,), optional
            Label of each row's stratum, for "survey".  Sampling weights are the ``sample_weight``
            of the fit; AIC, BIC and likelihood ratios take these as counts, and are not valid then.
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
        if cov_type == "bootstrap" and strata is not None:
            raise ValueError("strata are for cov_type 'survey', got cov_type 'bootstrap'")
        if cov_type == "bootstrap":
            kind = "pairs" if groups is None else "cluster"
            robust = self.bootstrap(n_resamples, kind, groups=groups, rng=rng).covariance
        elif cov_type in KINDS:
            grouped = cov_type in ("cluster", "survey")
            own = self._of_rows("groups", groups) if grouped else groups
            robust = robust_covariance(self, cov_type, own, self._of_rows("strata", strata))
        else:
            known = ", ".join((*KINDS, "bootstrap"))
            raise ValueError(f"cov_type must be one of {known}, got {short(cov_type)}")
        other = replace(self, cov_type=cov_type, robust=robust)
        if "simpler" in self.__dict__:
            other.__dict__["simpler"] = self.simpler
        return other

    @cached_property
    def simpler(self) -> Simpler | None:
        """The best fit with one expert fewer near this one, compared by BIC."""
        return simpler(self)

    @property
    def _order_doubt(self) -> str | None:
        """Why Wald inference is not valid here; None if there is no reason against it."""
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
            Equations in `param_names`, or in terms such as ``"age = 0"`` where one parameter alone
            is of that term, separated by commas or semicolons.

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
        return wald(constraints, self.param_names, self.theta, self._spread, self._terms)

    def t_test(self, constraints: str) -> Effects:
        """Normal tests of linear functions of parameters one by one, with intervals.

        Parameters
        ----------
        constraints : str
            Equations in `param_names`, or in terms such as ``"age = 0"`` where one parameter alone
            is of that term, separated by commas or semicolons.

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

        The prediction is the conditional mean, or the probability of each class, at the rows of the
        fit; standard errors are by the delta method.  For a fit by formula the variables are the
        columns of the data, whatever terms they are in, and the effect of a level of a factor is
        the difference from the first level.

        Parameters
        ----------
        dummy : bool
            Whether the effect of a column of 0 and 1 is the difference between 1 and 0.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.get_margeff().effect[0], result.blocks["a"][0, 0]))
        True
        """
        self._check_one("get_margeff")
        return marginal_effects(self, dummy)

    def random_effects(self) -> pd.DataFrame:
        """Predicted random effects of each group, with their standard deviations.

        They are the means and standard deviations given the rows of the group: best linear unbiased
        predictions within each expert, mixed by the group's responsibilities, at the estimates as
        if these were known (Laird and Ware 1982, Sec. 3).

        Returns
        -------
        DataFrame
            One row per group; columns of the effects, and ``sd(...)`` of each.

        Raises
        ------
        ValueError
            If the fit has no random effects, or its data were not stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
        >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
        >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
        >>> result.random_effects().columns.tolist()
        ['Intercept', 'sd(Intercept)']
        >>> bool(np.corrcoef(result.random_effects()["Intercept"], np.sin(range(20)))[0, 1] > 0.9)
        True
        """
        return effects_of_groups(self)

    def variance_components(self, alpha: float = 0.05) -> pd.DataFrame:
        """Standard deviations and correlations of random effects, by expert, with errors.

        Errors are those of the delta method.  Intervals are normal ones of the logarithm of a
        standard deviation, unless its error is above half of it, of Fisher's transform of a
        correlation and of the logit of the ICC, the correlation of two rows of a group where the
        inputs with effects are 0.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
        >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
        >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
        >>> result.variance_components().loc[1].index.tolist()
        ['sd(Intercept)', 'sd(residual)', 'ICC']
        """
        return variance_components(self, alpha)

    @cached_property
    def _responses(self) -> Sequence[OneResponse]:
        """Of several responses each by itself."""
        return tuple(one_response(self, r) for r in range(len(self.family.likelihood.parts)))

    def response(self, name: str) -> OneResponse:
        """One of several responses by itself: predictions with errors, effects, pictures.

        Parameters
        ----------
        name : str
            What it is called.

        Raises
        ------
        ValueError
            If there is none of that name.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 50)
        >>> y = {"height": x + np.sin(7 * x), "visits": np.arange(50) // 9}
        >>> result = moestat.fit(["gaussian", "poisson"], x, y, n_experts=1, rng=0)
        >>> result.response("visits").predict([0.0]).round().tolist()
        [2.0]
        """
        for own in self._responses:
            if own.name == name:
                return own
        known = ", ".join(repr(own.name) for own in self._responses)
        raise ValueError(
            f"name must be one of {known}, got {short(name)}"
            if known
            else "the fit has one response"
        )

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
            Equations in `param_names`, or in terms such as ``"age = 0"`` where one parameter alone
            is of that term, separated by commas or semicolons.

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

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Wald intervals of level ``1 - alpha`` of the parameters in `params`, one row each.

        If the data do not distinguish two experts, the intervals are not valid, and an
        `OverSpecifiedWarning` is raised.
        """
        self._warn_of_order()
        return self._labelled(self._interval(alpha), ["lower", "upper"])

    def classification_table(self, labels: Any) -> Any:
        """A pandas table of known labels of the rows (n,) against their most probable experts.

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

    def classes(self, alpha: float = 0.05) -> pd.DataFrame:
        """Sizes of the classes and means of the responses within them, with standard errors.

        A class is what an expert describes.  Its size is the mean gate probability over the rows,
        or groups; its mean is that of the expert over the rows, weighted by the gate,
        ``sum w pi_k(x) mu_k(x) / sum w pi_k(x)``.  Errors are by the delta method at the inputs of
        the fit; intervals of sizes and probabilities are made on the logit scale.

        Parameters
        ----------
        alpha : float
            Intervals have the level ``1 - alpha``.

        Returns
        -------
        DataFrame
            Columns ``estimate``, ``error``, ``lower`` and ``upper``; rows by class, from 1, and
            quantity, "size", "mean", or the probability of each class of a response.

        Raises
        ------
        ValueError
            If the family has no density, or the data were not stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> round(float(result.classes()["estimate"].xs("size", level=1).sum()), 6)
        1.0
        """
        return classes(self, alpha)

    def distal(self, outcome: Any, method: str = "bch", *, assignment: str = "modal") -> ThreeStep:
        """Means, or probabilities, in each class of a variable outside the model.

        Units, rows or groups of rows, are assigned to classes, and the errors of that are corrected
        for.  Standard errors count that the classes are estimated.

        Parameters
        ----------
        outcome : array_like of shape (n,)
            The variable; words, flags or two values are categories.  In a fit with groups it is
            the same for all rows of a group.
        method : {"bch", "ml", "two-step"}
            "bch": weights that undo the errors, for any distribution (Bolck, Croon and Hagenaars
            2004); "ml": the likelihood of the assignments, with a normal outcome in each class, or
            a categorical one (Vermunt 2010); "two-step": that of the responses with the experts as
            they were fitted (Bakk and Kuha 2018).  The last two are more efficient, and wrong where
            an outcome is not normal within classes.
        assignment : {"modal", "proportional"}
            To the most probable class, or to all in proportion to their probabilities.

        Returns
        -------
        ThreeStep
            ``params``, ``bse``, ``conf_int()``, ``tests``, ``classification``; a table if printed.

        Raises
        ------
        ValueError
            If the fit has one expert, the outcome is not one value for each unit, or the
            assignments do not tell the classes apart.

        Notes
        -----
        The outcome must be independent of the responses given the class.  That fails where it
        depends on inputs of the experts or of the gate within a class.

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
        return distal(self, outcome, method, assignment)

    def covariates(self, X: Any, method: str = "ml", *, assignment: str = "modal") -> ThreeStep:
        """Log-odds of the classes against the last one, given variables outside the model.

        Parameters
        ----------
        X : array_like or table of shape (n, d)
            The variables, numbers; in a fit with groups the same for all rows of a group.
        method : {"ml", "bch", "two-step"}
            As of `distal`.
        assignment : {"modal", "proportional"}
            As of `distal`.

        Returns
        -------
        ThreeStep
            Coefficients of a multinomial logit by class, with Wald's tests of each variable.

        Raises
        ------
        ValueError
            As of `distal`.

        Notes
        -----
        Vermunt (2010), eq. (15); Bakk and Kuha (2018), eq. (6).  A gate that reads these variables,
        ``gate_inputs=`` or the second part of a formula, is the one-step estimate.

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
        return covariates(self, X, method, assignment)

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

        Experts are numbered from 1.  Estimates have at least four digits, and at least two digits
        of their standard error.

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

    def explain(self) -> Explanation:
        """What the certificate and each warning of the fit mean, and what to do, in order.

        Returns
        -------
        Explanation
            Text when printed: what is seen, what it means for the numbers, and remedies.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> print(str(result.explain()).partition(".")[0])
        The fit is a local maximum of the likelihood in its box (certified)
        """
        return explain(self)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """A table with one row per parameter, with the names of the data.

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
def load(path: str | Path, *, max_bytes: int = MAX_BYTES) -> MoEResults:
    """Results that `MoEResults.save` stored.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int
        Largest size of the unpacked file, 1 GiB by default.

    Returns
    -------
    MoEResults
        The results, equal to those stored in every number.

    Raises
    ------
    ValueError
        If the file does not hold results, or they are larger than `max_bytes`.
    OSError
        If the file cannot be read.

    Notes
    -----
    Nothing runs when a file is read.  A fit by formula evaluates its formula when it predicts.
    The text of a formula may call transforms of formulaic, NumPy's universal functions and
    functions such as ``abs``, and nothing else; functions of the caller's own are not stored.

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
    own = (MoEResults, Solution, Certificate, Data, StandardFit, Coordinates, DataUnits)
    return read_record(path, (*own, Prior, Lasso, FormulaInputs), max_bytes)
