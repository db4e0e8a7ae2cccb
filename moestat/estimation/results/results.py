"""Results of a fit, in the manner of statsmodels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door, doors
from moestat.base.types import Seed
from moestat.base.validate import short
from moestat.base.warnings import OverSpecifiedWarning, warn_caller
from moestat.estimation.data.data import Data, without_rows
from moestat.estimation.data.naming import present_names
from moestat.estimation.data.priors import Lasso, Prior
from moestat.estimation.fit.batches import fit_from
from moestat.estimation.fit.beside import Ends
from moestat.estimation.fit.explanation import Explanation, explain
from moestat.estimation.fit.fitted import Fitted, StandardFit, warn_and_note
from moestat.estimation.fit.relabel import relabelled
from moestat.estimation.inference.bootstrap import BootstrapResult, bootstrap
from moestat.estimation.inference.classes import classes
from moestat.estimation.inference.constraints import of_whole_terms
from moestat.estimation.inference.covariance import (
    KINDS,
    robust_covariance,
)
from moestat.estimation.inference.diagnostics import (
    classification_table,
)
from moestat.estimation.inference.effects import Effects, comparisons, marginal_effects, t_test
from moestat.estimation.inference.hypotheses import TestResult, wald
from moestat.estimation.inference.icc import icc
from moestat.estimation.inference.misfit import misfits
from moestat.estimation.inference.nested import lr_test
from moestat.estimation.inference.profile import Profile, profile
from moestat.estimation.inference.questions import QUESTIONS, question
from moestat.estimation.inference.random_effects import random_effects, variance_components
from moestat.estimation.inference.restricted import RestrictedFit, fit_constrained
from moestat.estimation.inference.simpler import Simpler, simpler
from moestat.estimation.inference.three_step import covariates, distal
from moestat.estimation.reading.formula import FormulaInputs
from moestat.estimation.results.one_response import OneResponse, one_response
from moestat.estimation.results.pictures import Pictures
from moestat.estimation.results.ratios import with_ratios
from moestat.estimation.results.summary import Summary, estimates, summarise, tidy
from moestat.estimation.results.term_tests import estimated_terms, wald_test_terms
from moestat.estimation.storage import MAX_BYTES, read_record, write_record
from moestat.model.numbering import with_names
from moestat.model.units import Coordinates, DataUnits
from moestat.solvers import Certificate, Solution

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MoEResults", "StandardFit", "load"]


@doors
class MoEResults(Pictures):
    """A fitted mixture of experts.

    `moestat.fit` and `moestat.fit_formula` return it.  Begin with `summary`, a table of the
    estimates; `explain`, what the warnings of the fit mean and what to do; and `plot`.  Names are
    those of statsmodels where statsmodels has them.

    If the data were a data frame, `params`, `bse`, `tvalues` and `pvalues` are pandas series, and
    `conf_int` and `cov_params` are frames, labelled by `param_names`.  Otherwise they are arrays.
    `theta`, the vector of all parameters, is always an array.

    Parameters
    ----------
    family : Family
        The model.
    solution : Solution
        Estimates, observed information and certificate.
    solver : str
        Name of the solver.
    weight : ndarray of shape (n,)
        Weights of the rows.
    response_variance : float
        Variance of a continuous response; NaN for classes.
    data : Data, optional
        The data of the fit, with the names of columns and classes.
    standard : StandardFit, optional
        The same fit to standardised data; None if the data were not standardised.
    cov_type : str
        Type of the covariance matrix that standard errors are computed from, see
        `get_robustcov_results`.
    robust : ndarray of shape (P, P), optional
        This covariance matrix, if it is not the inverse observed information.
    notes : tuple of str
        Messages of the warnings that the fit raised.
    prior : Prior, optional
        Prior density; the estimate is then the mode of the posterior density.  None means maximum
        likelihood.
    kinds : tuple of str
        Name of the class of each of these warnings.

    Notes
    -----
    Experts are in descending order of their mean weight if the model was given by name; otherwise
    their order is arbitrary.  Tables, pictures, messages and names of parameters, such as
    ``a[1,age]``, count experts from 1, or use the names that `named` gives them.  Positions in
    arrays count from 0.

    Examples
    --------
    >>> import moestat
    >>> data = moestat.datasets.load("penguins").dropna()
    >>> formula = "body_mass_g ~ flipper_length_mm"
    >>> result = moestat.fit_formula(formula, data, n_experts=1, rng=0)
    >>> float(result.params["a[1,flipper_length_mm]"].round(1))
    50.2
    >>> result.certificate.certified
    True
    """

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The results of a fit."""
        return cls(**{each.name: getattr(fitted, each.name) for each in fields(fitted)})

    def __repr__(self) -> str:
        family, certificate = self.family, self.certificate
        certified = "certified" if certificate.certified else "not certified"
        return (
            f"<MoEResults: {family.likelihood.name}, {family.gate.name} gate,"
            f" {family.n_experts} {family.expert.name} experts, n = {self.nobs:.10g},"
            f" log-likelihood {self.log_likelihood:.2f}, {certified}"
            f"{'' if self.prior is None else ', posterior mode'}>"
        )

    def _repr_html_(self) -> str:
        """The summary with the picture of `plot` beside it, if the fit has its rows."""
        picture = ""
        if self.has_rows:
            encoded = b64encode(self.picture()).decode()
            picture = f'<img alt="data and fit" src="data:image/png;base64,{encoded}">'
        return f"{picture}{self.summary().as_html()}"

    def get_robustcov_results(
        self,
        cov_type: str = "HC0",
        groups: ArrayLike | None = None,
        *,
        strata: ArrayLike | None = None,
        n_resamples: int = 500,
        rng: Seed = None,
    ) -> MoEResults:
        """Return the same fit with standard errors, tests and intervals from another covariance.

        Parameters
        ----------
        cov_type : {"observed", "expected", "HC0", "HC1", "cluster", "survey", "bootstrap"}
            "observed" is the inverse observed information.  "expected" is the inverse expected
            information at the inputs of the data.  "HC0" is the sandwich ``V M V`` of White (1982),
            which is valid when the model is misspecified; "HC1" is "HC0" times ``n / (n - p)``.
            "cluster" is the sandwich by groups of Liang and Zeger (1986).  "survey" is the
            covariance for a sample survey with weights, strata and clusters (Binder 1983).  Rows of
            weight 0, and rows left out because of missing values, stay in the design; the latter if
            labels are given for all rows, and not on sources.
            "bootstrap" is the covariance of the estimates from resampled rows or groups.  For a
            posterior mode V is the inverse curvature of the posterior density.  All types then
            describe how the mode varies over repeated samples under the same prior, not its
            distance from the maximum of the likelihood.
        groups : array_like of shape (n,), or str, optional
            Label of each row's group for "cluster" and "bootstrap", or of its cluster (primary
            sampling unit) for "survey".  A fit by formula takes the name of a column of its table,
            as long as that is in memory; one to a source reads the rows once more.
        strata : array_like of shape (n,), or str, optional
            Label of each row's stratum for "survey", or the name of a column.  The sampling
            weights are the ``sample_weight`` of the fit.  AIC, BIC and likelihood ratios treat
            these weights as counts, so they are not valid for a survey.
        n_resamples : int
            Number of resamples of "bootstrap".
        rng : numpy.random.Generator, int or None
            Source of the resamples.

        Returns
        -------
        MoEResults
            The fit with the new covariance; its ``cov_type`` is the type given.

        Raises
        ------
        ValueError
            If the type is unknown or the groups do not match the data.

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
            robust = robust_covariance(self, cov_type, groups, strata)
        else:
            known = ", ".join((*KINDS, "bootstrap"))
            raise ValueError(f"cov_type must be one of {known}, got {short(cov_type)}")
        return replace(self, cov_type=cov_type, robust=robust)

    def at_end(self, j: int) -> MoEResults:
        """Return the fit at another end of the search, see `ends`.

        Parameters
        ----------
        j : int
            Row of the table `ends`; 0 is this fit itself.

        Returns
        -------
        MoEResults
            The fit to the same data that begins at this end, with its own order of experts.

        Raises
        ------
        ValueError
            If there is no such end, or the rows of the fit are not in memory.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 80)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.at_end(0) is result
        True
        """
        seen = self._seen
        count = seen.starts.size
        if isinstance(j, bool) or not (isinstance(j, int | np.integer) and 0 <= j < count):
            raise ValueError(f"j must be a row of the table ends, 0 to {count - 1}, got {short(j)}")
        if j == 0:
            return self
        fitted = fit_from(self.named({}), seen.theta[j])
        result = MoEResults.of(fitted)
        return warn_and_note(result, misfits(result))

    @cached_property
    def simpler(self) -> Simpler | None:
        """The best fit with one expert fewer near this one, and its comparison by BIC.

        `moestat.fit` and `moestat.fit_formula` compute it for data in memory; of other results it
        is computed now, and summaries, intervals and tests do not mention it.
        """
        return simpler(self) if self.order is None else self.order

    def _warn_of_order(self) -> None:
        doubt = self._order_doubt
        if doubt is not None:
            warn_caller(doubt, OverSpecifiedWarning)

    def bootstrap(
        self,
        n_resamples: int = 500,
        kind: str = "pairs",
        *,
        groups: ArrayLike | None = None,
        rng: Seed = None,
        verbose: bool = False,
    ) -> BootstrapResult:
        """Refit the model to resampled data, see `moestat.bootstrap`.

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
        """Compute the profile likelihood interval of the parameter `name`, see `moestat.profile`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> low, high = result.profile("a[1,0]").interval
        >>> bool(low < result.blocks["a"][0, 0] < high)
        True
        """
        return profile(self, name, alpha)

    def compare_lr_test(self, restricted: MoEResults) -> TestResult:
        """Test a restricted fit against this one by the likelihood ratio, see `moestat.lr_test`.

        The restricted fit must have the same number of experts.

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
        """Test linear constraints, such as ``"a[1,0] = a[2,0], b[1] = 0"``, jointly by a Wald test.

        Parameters
        ----------
        constraints : str
            Equations separated by commas or semicolons.  They use the names in `param_names`.  A
            term by itself, such as ``"age"`` or ``"C(site)"``, stands for the hypothesis that all
            its estimated coefficients are 0: in the gate, in all experts, and of all levels of a
            factor.  Within an equation a term may be used if one parameter belongs to it.

        Returns
        -------
        TestResult
            The statistic, its degrees of freedom and the p-value.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.wald_test("a[1,0] = 1").df
        1
        """
        self._warn_of_order()
        constraints = of_whole_terms(constraints, estimated_terms(self))
        constraints = present_names(constraints, self.family, self.data)
        return wald(constraints, self.param_names, self.theta, self._spread, self._terms)

    def wald_test_terms(self) -> pd.DataFrame:
        """Test each term of the experts and of the gate by a Wald test, as in statsmodels.

        The hypothesis is that all coefficients of the term are 0: those of all experts, classes and
        responses, and of all columns of the term, such as the levels of a factor.  Coefficients
        with a known value, and those of the reference of the gate, are left out; coefficients that
        are equal by ``equal=`` count once.

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df`` and ``p_value`` (chi-square), one row for each part
            ("gate" or "expert") and term.  The statistic is NaN if a coefficient of the term has no
            standard error.

        Raises
        ------
        ValueError
            If the experts are not linear in their coefficients.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> data = {"x": x, "site": np.arange(60) % 3, "y": x + np.sin(7 * x)}
        >>> result = moestat.fit_formula("y ~ x + C(site)", data, n_experts=1, rng=0)
        >>> result.wald_test_terms()["df"].loc["expert"].to_dict()
        {'Intercept': 1, 'x': 1, 'C(site)': 2}
        """
        self._warn_of_order()
        return wald_test_terms(self)

    def t_test(self, constraints: str) -> Effects:
        """Test linear constraints on the parameters one at a time by normal tests, with intervals.

        Parameters
        ----------
        constraints : str
            Equations separated by commas or semicolons.  They use the names in `param_names`; a
            term of the data, as in ``"age = 0"``, may be used if exactly one parameter belongs to
            it.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.t_test("a[1,0] = 0").tvalue[0], result.tvalues[3]))
        True
        """
        self._warn_of_order()
        return t_test(self, constraints)

    def get_margeff(
        self,
        *,
        dummy: bool = False,
        which: str | None = None,
        variables: str | Sequence[str] | None = None,
        newdata: Any = None,
        at: Mapping[str, object] | str | None = None,
        by: str | Sequence[str] | None = None,
    ) -> Effects:
        """Compute average marginal effects: mean derivatives with respect to each variable.

        The prediction is the conditional mean, or the probability of each class.  Its derivatives
        are averaged over the rows of the fit, and their standard errors come from the delta method.
        For a fit by formula the variables are the columns of the data, whichever terms they occur
        in, and the effect of a level of a factor is the difference from the first level.

        Parameters
        ----------
        dummy : bool
            Whether the effect of a column of zeros and ones is the difference between the
            predictions at 1 and at 0 instead of a derivative.
        which : {"gate", "experts"}, optional
            "gate" for effects on the probability of each expert, "experts" for effects on the mean
            of each expert (for classes, on its probabilities); by default those on the mean or the
            probabilities of the mixture.
        variables : str or sequence of str, optional
            Variables whose effects are computed; by default all that the model reads.
        newdata : array_like or table, optional
            Rows to average over, in memory, each with weight 1; by default those of the fit.  A fit
            to blocks or a source needs them.
        at : mapping of str to value or list, or "mean", optional
            Values that variables have in every row; for a list the effects at each of its values,
            and for several lists at each combination.  "mean" is one row: numeric variables at
            their means, others at their most frequent value.
        by : str or sequence of str, optional
            Columns by whose values the rows are averaged separately.

        Returns
        -------
        Effects
            The effects; ``tidy()`` has one row for each, with columns for term, contrast, class or
            expert, `by` and `at`.

        Raises
        ------
        ValueError
            If a variable, level or column does not exist, or there are several responses.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.get_margeff().effect[0], result.blocks["a"][0, 0]))
        True
        """
        self._check_one("get_margeff")
        return marginal_effects(
            self, dummy, which=which, variables=variables, newdata=newdata, at=at, by=by
        )

    def comparisons(
        self,
        first: Mapping[str, object],
        second: Mapping[str, object],
        *,
        which: str | None = None,
        newdata: Any = None,
        by: str | Sequence[str] | None = None,
        ratio: bool = False,
    ) -> Effects:
        """Compare average predictions at two settings of variables.

        Each setting gives some variables the same value in every row; the other variables keep
        theirs.  The estimate is the average prediction at `second` minus that at `first`, with a
        standard error by the delta method.

        Parameters
        ----------
        first, second : mapping of str to value
            Values of variables by name.
        which, newdata, by
            As in `get_margeff`.
        ratio : bool
            Whether to report the ratio of the average predictions in place of their difference;
            tests are then of a ratio of 1.

        Returns
        -------
        Effects
            The differences, or ratios; ``tidy()`` has one row for each.

        Raises
        ------
        ValueError
            If a variable or level does not exist, or there are several responses.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> found = result.comparisons({"x[0]": 0.0}, {"x[0]": 2.0})
        >>> bool(np.isclose(found.effect[0], 2 * result.blocks["a"][0, 0]))
        True
        """
        self._check_one("comparisons")
        return comparisons(self, first, second, which=which, newdata=newdata, by=by, ratio=ratio)

    random_effects = question(random_effects)
    variance_components = question(variance_components)
    icc = question(icc)

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Ask a registered question about the fit by its name, also one of an installed package.

        Parameters
        ----------
        name : str
            Name in `moestat.estimation.inference.questions.QUESTIONS`.
        *arguments, **options
            What the question takes beside the fit.

        Returns
        -------
        Any
            The answer.

        Raises
        ------
        ValueError
            If there is no such question, with those that there are.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
        >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
        >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
        >>> result.ask("icc", alpha=0.1).equals(result.icc(0.1))
        True
        """
        return QUESTIONS[name].answer(self, *arguments, **options)

    @cached_property
    def _responses(self) -> Sequence[OneResponse]:
        """The fit of each response, if there are several."""
        return tuple(one_response(self, r) for r in range(len(self.family.likelihood.parts)))

    def response(self, name: str) -> OneResponse:
        """Select one of several responses, with its predictions, effects and plots.

        The predictions have standard errors.

        Parameters
        ----------
        name : str
            Name of the response.

        Raises
        ------
        ValueError
            If no response has this name.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 50)
        >>> y = {"height": x + np.sin(7 * x), "visits": np.arange(50) // 9}
        >>> result = moestat.fit(["gaussian", "poisson"], x, y, n_experts=1, rng=0)
        >>> result.response("visits").predict([0.0]).round().tolist()
        [2.0]
        """
        for response in self._responses:
            if response.name == name:
                return response
        known = ", ".join(repr(response.name) for response in self._responses)
        raise ValueError(
            f"name must be one of {known}, got {short(name)}"
            if known
            else "the fit has one response"
        )

    def named(self, names: Mapping[int | str, str] | Sequence[str]) -> MoEResults:
        """Return the same fit with names for its experts.

        Names of parameters, tables, pictures, messages and columns of predictions then have these
        names in place of numbers.  `save` stores them.

        Parameters
        ----------
        names : mapping of int to str, or sequence of str
            Names of some or all experts by their number from 1, or by their present name; or one
            name for each expert.  An empty mapping takes the names away.

        Returns
        -------
        MoEResults
            The fit with the names; equations may still use the numbers.

        Raises
        ------
        ValueError
            If there is no such expert, a name is not text that an equation can contain, or two
            experts have the same name.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", {"x": x}, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.named({1: "falling", 2: "rising"}).params.index[-1]
        'log nu[rising]'
        """
        if self.data is None:
            raise ValueError("named: the result has no record of its data, which holds the names")
        empty = isinstance(names, Mapping) and not names
        own = None if empty else with_names(self.experts, names).own
        return replace(self, data=replace(self.data, experts=own))

    def relabel(self, order: Sequence[int | str]) -> MoEResults:
        """Return the same fit with its experts in another order.

        Parameters
        ----------
        order : sequence of int or str
            Numbers of the experts of this fit, from 1, or their names, in their new order.

        Returns
        -------
        MoEResults
            A fit with the same density, log-likelihood and certificate.

        Raises
        ------
        ValueError
            If `order` does not hold each expert once, or if bounds, constraints or likelihoods
            differ between the experts.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> other = result.relabel([2, 1])
        >>> bool(np.array_equal(other.blocks["a"], result.blocks["a"][[1, 0]]))
        True
        """
        return relabelled(self, order)

    def fit_constrained(self, constraints: str) -> RestrictedFit:
        """Find the local maximum under constraints such as equal slopes ``"a[1,0] = a[2,0]"``.

        The constraints are linear.

        Parameters
        ----------
        constraints : str
            Equations separated by commas or semicolons.  They use the names in `param_names`; a
            term of the data, as in ``"age = 0"``, may be used if exactly one parameter belongs to
            it.

        Returns
        -------
        RestrictedFit
            The parameters, their standard errors and the likelihood ratio test of the constraints,
            see `moestat.fit_constrained`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.fit_constrained("a[1,0] = 1").lr_test.df
        1
        """
        self._warn_of_order()
        return fit_constrained(self, constraints)

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Wald intervals of level ``1 - alpha`` for the parameters in `params`, one row each.

        If the data do not distinguish two experts, the intervals are not valid, and the method
        issues an `OverSpecifiedWarning`.
        """
        self._warn_of_order()
        return self._labelled(self._interval(alpha), ["conf_low", "conf_high"])

    def classification_table(self, labels: ArrayLike) -> pd.DataFrame:
        """Cross-tabulate known labels (n,) of the rows and their most probable experts.

        The result is a pandas data frame with one row per label and one column per expert, from 1.
        A row of the fit counts as often as its weight says.

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

        known = self._of_rows("labels", labels)
        names, table = classification_table(self.responsibilities, known, self.rows.weight)
        experts = pd.Index(self.experts.keys, name="expert")
        return pd.DataFrame(table, index=pd.Index(names, name="label"), columns=experts)

    classes = question(classes)
    distal = question(distal)
    covariates = question(covariates)

    def without_data(self) -> MoEResults:
        """Return the same results without X and y, which need less storage.

        The names of the columns and the weights are kept.
        """
        data = None if self.data is None else without_rows(self.data)
        return replace(self, data=data, source=None, table=None, order=None)

    def save(self, path: str | Path) -> None:
        """Save the results, without pickle, in a file that `moestat.load` reads.

        Parameters
        ----------
        path : str or path
            Path of the file, a NumPy archive; the usual extension is ``.npz``.

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

    def summary(
        self, alpha: float = 0.05, *, exponentiate: bool = False, details: bool = False
    ) -> Summary:
        """Summarise the fit and its parameters in tables, by gate and expert.

        Experts are numbered from 1, or have their names.  Estimates have at least four significant
        digits, and enough digits to reach the second digit of their standard error.

        Parameters
        ----------
        alpha : float
            Intervals have the level ``1 - alpha``.
        exponentiate : bool
            Whether to report rate ratios and odds ratios, as in `tidy`; headings say which.
        details : bool
            Whether to add how the estimate was found and checked: the solver, its last step, the
            starts, and the curvature.  They are also in `certificate`.

        Returns
        -------
        Summary
            It prints as text and is shown as HTML in a notebook.  Its methods ``as_text``,
            ``as_latex``, ``as_html`` and ``as_csv`` return strings.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> "Expert 1" in result.summary(alpha=0.1).as_latex()
        True
        """
        return summarise(self, alpha, exponentiate, details)

    def explain(self) -> Explanation:
        """Explain the certificate and each warning of the fit, in order, and what to do.

        Returns
        -------
        Explanation
            It prints as text: what was observed, what it means for the estimates, and remedies.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> print(str(result.explain()).partition(".")[0])
        The fit is a local maximum of the likelihood in its box (certified)
        """
        return explain(self)

    def tidy(self, alpha: float = 0.05, *, exponentiate: bool = False) -> pd.DataFrame:
        """Return a table with one row per parameter, labelled by the names of the data.

        Parameters
        ----------
        alpha : float
            Intervals have the level ``1 - alpha``.
        exponentiate : bool
            Whether to report the exponentials of coefficients on a log or logit scale: rate ratios
            (or ratios of means) of experts with a log link, odds ratios of experts with a logit
            link, of classes and of a softmax gate.  Their ``std_error`` is that of the delta
            method, ``conf_low`` and ``conf_high`` are the exponentials of the ends of the interval,
            and ``statistic`` and ``p_value`` test that the ratio is 1.  Other parameters are left
            as they are; the further column ``scale`` says which is which.

        Returns
        -------
        pandas.DataFrame
            Columns ``part`` (gate or expert), ``expert`` (from 1), ``class`` (for classes: the
            class to whose log-odds against the last class the parameter belongs), ``term``,
            ``estimate``, ``std_error``, ``statistic`` (estimate over standard error), ``p_value``,
            ``conf_low``, ``conf_high``, ``status`` (estimated, reference, fixed, on a bound, not
            identified) and ``name`` (the name in `param_names`).  Quantities that do not exist are
            NaN.

        Raises
        ------
        ValueError
            If `exponentiate` is true and no coefficient is on a log or logit scale.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> list(result.tidy()["name"])
        ['b[1]', 'a[1,0]', 'log nu[1]']
        """
        rows = estimates(self, alpha)
        if not exponentiate:
            return tidy(rows)
        ratios = with_ratios(self.family, self.param_names, rows)
        return tidy(ratios).assign(scale=[each.scale for each in ratios])


@door()
def load(path: str | Path, *, max_bytes: int = MAX_BYTES) -> MoEResults:
    """Read the result of a fit from a file that `MoEResults.save` wrote.

    Parameters
    ----------
    path : str or path
        Path of the file.
    max_bytes : int
        Largest allowed size of the unpacked file in bytes, 1 GiB by default.

    Returns
    -------
    MoEResults
        The result; all its numbers are equal to those that were saved.

    Raises
    ------
    ValueError
        If the file does not contain a result, or is larger than `max_bytes` when unpacked.
    OSError
        If the file cannot be read.

    Notes
    -----
    Reading a file runs no code from it.  The result of a fit by formula evaluates its formula when
    it predicts.  The formula may then call only transforms of formulaic, universal functions of
    NumPy, and functions such as ``abs``; your own functions are not saved.

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
    record_types = (MoEResults, Solution, Certificate, Data, StandardFit, Coordinates, DataUnits)
    return read_record(path, (*record_types, Ends, Prior, Lasso, FormulaInputs, Simpler), max_bytes)
