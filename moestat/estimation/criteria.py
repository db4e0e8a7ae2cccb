"""Numbers that statisticians ask of a fit: degrees of freedom, criteria, shares of variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import short
from moestat.base.warnings import warn_of_old_name
from moestat.estimation.groups import Grouping
from moestat.estimation.inference.diagnostics import Influence, influence
from moestat.estimation.inference.generalised import (
    RegressionInfluence,
    influence_of_regression,
    null_log_likelihood,
    units,
)
from moestat.estimation.inference.on_source import entropy_on_source
from moestat.estimation.predicting import Predicting

__all__ = ["Criteria"]


class Criteria(Predicting):
    """Properties of `moestat.estimation.results.MoEResults` under the names of statsmodels."""

    @property
    def converged(self) -> bool:
        """Whether the solver reported convergence; `certificate` is the stronger statement."""
        return self.solution.certificate.status == "converged"

    @property
    def edf(self) -> float:
        """Degrees of freedom: the number of parameters that the data determine, see `identified`.

        Of a posterior mode the effective number, ``tr((I + Q)^-1 I)`` with the information I of the
        data and the curvature Q of minus the log prior density (Gray 1992): a parameter that the
        prior decides counts as none.
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
        """Sum of the weights of the groups, for which an expert is chosen once; None without."""
        if self.data is None or self.data.groups is None:
            return None
        if self.data.group_weight is not None:
            return self.data.group_weight
        own = Grouping(self.data.groups)
        return float(self.weight[own.order][own.begin].sum())

    @property
    def n_independent(self) -> float:
        """Sum of the weights of what is independent: of groups where there are any, else of rows.

        The n of BIC and of what is like it.
        """
        n_groups = self.n_groups
        return self.nobs if n_groups is None else n_groups

    @property
    def df_model(self) -> float:
        """Number of estimated parameters less one for the mean, ``nobs - df_resid - 1``."""
        return float(self._n_estimated - 1)

    @property
    def df_resid(self) -> float:
        """Number of observations less number of estimated parameters."""
        return self.nobs - self._n_estimated

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``2 edf - 2 l``; of a posterior mode with l at the mode."""
        return 2.0 * self._n_estimated - 2.0 * self.llf

    @property
    def bic(self) -> float:
        """Schwarz's criterion, ``edf log n - 2 l``, with n the number of groups if there are any.

        Of a posterior mode with l at the mode, in the manner of Fraley and Raftery (2007).
        """
        return np.log(self.n_independent) * self._n_estimated - 2.0 * self.llf

    @property
    def hqic(self) -> float:
        """The criterion of Hannan and Quinn (1979), ``2 p log log n - 2 l``."""
        return 2.0 * np.log(np.log(self.n_independent)) * self._n_estimated - 2.0 * self.llf

    @property
    def icl(self) -> float:
        """Integrated completed likelihood, ``BIC + 2 H`` with the entropy H of the assignments.

        ``H = -sum_t w_t sum_i tau_ti log tau_ti``, as in McLachlan and Peel (2000), Sec. 6.10, and
        `moestat.select`.  flexmix and mclust take ``-sum_t w_t log max_i tau_ti``, with each row
        assigned to its most probable expert, in place of H: `icl_map`.  That is smaller.
        """
        k = self.family.n_experts
        return self.bic + 2.0 * self.entropy * self.n_independent * np.log(k)

    @property
    def icl_map(self) -> float:
        """Integrated completed likelihood with rows at their most probable experts.

        ``BIC - 2 sum_t w_t log max_i tau_ti`` (Biernacki, Celeux and Govaert 2000), the ICL of
        flexmix, and of mclust with the sign turned.
        """
        tau, weight = self.assignments
        return self.bic - 2.0 * float(np.log(tau.max(axis=0)) @ weight)

    @property
    def rsquared(self) -> float:
        """Share of the response's variance that the conditional mean explains.

        ``1 - sum w (y - fitted)^2 / sum w (y - mean)^2``.

        Raises
        ------
        ValueError
            If the response is a class, or the data were not stored.
        """
        if self.family.likelihood.support is not None:
            raise ValueError(
                "classes have no R-squared; see bic and plot_calibration for the quality of the fit"
            )
        if np.ndim(self.rows.y) == 2:
            what = (
                "several responses" if self.family.likelihood.parts else "responses of two columns"
            )
            raise ValueError(f"{what} have no R-squared")
        y = np.asarray(self.rows.y, dtype=np.float64)
        centre = np.average(y, weights=self.weight)
        left = self.weight @ (y - np.asarray(self.fittedvalues)) ** 2
        return float(1.0 - left / (self.weight @ (y - centre) ** 2))

    @property
    def r_squared(self) -> float:
        """The old name of `rsquared`, for one release."""
        warn_of_old_name("r_squared", "rsquared")
        return self.rsquared

    @property
    def deviance(self) -> float:
        """Deviance of a generalised linear model of one expert, weighted, without the scale.

        Of classes it is ``-2 l``: a model with a parameter for each row has the log-likelihood 0.

        Raises
        ------
        ValueError
            For more experts than one, or a likelihood that is no exponential family.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.deviance, np.sum(result.resid**2)))
        True
        """
        if self.family.n_experts == 1 and self.family.likelihood.support is not None:
            return -2.0 * self.llf
        own = units(self, "deviance")
        return float(own.weight @ own.deviances)

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic, ``sum w (y - mu)^2 / V(mu)``, refused as `deviance`."""
        own = units(self, "pearson_chi2")
        return float(own.weight @ own.pearson**2)

    @property
    def resid_pearson(self) -> Any:
        """Pearson residuals (n,), ``(y - mu) / sqrt(V(mu))``, refused as `deviance`."""
        return self._inputs().like(units(self, "resid_pearson").pearson)

    @property
    def resid_deviance(self) -> Any:
        """Deviance residuals (n,), signed roots of each row's deviance, refused as `deviance`."""
        own = units(self, "resid_deviance")
        return self._inputs().like(np.sign(own.y - own.mean) * np.sqrt(own.deviances))

    @property
    def scale(self) -> float:
        """Pearson's statistic over rows less coefficients of the mean, refused as `deviance`.

        It is 1 where the variance is a known function of the mean, as of counts.  It is not the
        maximum-likelihood estimate that `blocks` has.
        """
        return units(self, "scale").scale

    @property
    def llnull(self) -> float:
        """Largest log-likelihood of one expert without inputs; an offset stays."""
        return null_log_likelihood(self)

    def pseudo_rsquared(self, kind: str = "cs") -> float:
        """Pseudo R-squared against one expert without inputs, `llnull`, for any number of experts.

        Parameters
        ----------
        kind : {"cs", "mcf"}
            ``1 - exp(2 (llnull - llf) / n)`` of Cox and Snell (1989), which is R-squared for one
            normal expert, or ``1 - llf / llnull`` of McFadden (1974).

        Raises
        ------
        ValueError
            If the kind is unknown, or the fit has random effects.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.pseudo_rsquared(), result.rsquared))
        True
        """
        if kind not in ("cs", "mcf"):
            raise ValueError(f"kind must be 'cs' or 'mcf', got {short(kind)}")
        if kind == "mcf":
            return 1.0 - self.llf / self.llnull
        return float(-np.expm1(2.0 * (self.llnull - self.llf) / self.nobs))

    def get_influence(self) -> RegressionInfluence:
        """Leverage, studentised residuals and Cook's distances of one expert.

        They are refused as `deviance`; `influence` is for any fit.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> round(float(result.get_influence().hat_matrix_diag.sum()), 6)
        2.0
        """
        return influence_of_regression(self)

    @property
    def entropy(self) -> float:
        """Entropy of the assignments per row, or group, divided by its maximum, ``log k``.

        0 where every row belongs to one expert, 1 where no row tells anything; 0 for k = 1.
        """
        if self.family.n_experts == 1:
            return 0.0
        if self.reads_source:
            total = entropy_on_source(self)
            return float(total / (self.n_independent * np.log(self.family.n_experts)))
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

    def influence(self, top: int = 100) -> Influence:
        """Approximate effect of leaving out each row, from one Newton step.

        Parameters
        ----------
        top : int
            Number of rows, those of largest displacement, of a fit to blocks or a source, which
            reads the rows once more; a fit to rows in memory has all of them.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.influence().moves.shape
        (50, 5)
        """
        return influence(self, top)
