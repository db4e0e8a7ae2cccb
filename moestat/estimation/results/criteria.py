"""Degrees of freedom, information criteria, R-squared and related numbers of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.validate import one_of
from moestat.base.warnings import warn_of_old_name
from moestat.estimation.inference.diagnostics import Influence, influence
from moestat.estimation.inference.generalised import (
    RegressionInfluence,
    influence_of_regression,
    null_log_likelihood,
    units,
)
from moestat.estimation.results.residuals import Residuals
from moestat.estimation.results.row_likelihoods import RowLikelihoods
from moestat.estimation.results.simulating import Simulating
from moestat.estimation.results.source_rows import by_parts, sum_over_parts

__all__ = ["Criteria"]


class Criteria(Residuals, Simulating, RowLikelihoods):
    """Properties of `MoEResults` under the names of statsmodels."""

    @property
    def converged(self) -> bool:
        """Whether the solver reported convergence; `certificate` has stronger checks."""
        return self.solution.certificate.status == "converged"

    @property
    def log_posterior(self) -> float:
        """Log-likelihood plus log prior density, up to a constant; `llf` without a prior.

        The constant depends on the prior and the data only: of fits to the same data with the same
        prior, such as from other seeds, the one with the largest value is the highest mode.
        """
        return self.llf + self._inner.log_prior

    @property
    def df_model(self) -> float:
        """Number of estimated parameters minus one for the mean, ``nobs - df_resid - 1``."""
        return float(self._n_estimated - 1)

    @property
    def df_resid(self) -> float:
        """Number of observations minus number of estimated parameters."""
        return self.nobs - self._n_estimated

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``2 edf - 2 l``, where l is the log-likelihood at the estimate."""
        return 2.0 * self._n_estimated - 2.0 * self.llf

    @property
    def hqic(self) -> float:
        """The criterion of Hannan and Quinn (1979), ``2 p log log n - 2 l``."""
        return 2.0 * np.log(np.log(self.n_independent)) * self._n_estimated - 2.0 * self.llf

    @property
    def icl(self) -> float:
        """Integrated completed likelihood, ``BIC + 2 H`` with the entropy H of the assignments.

        ``H = -sum_t w_t sum_i tau_ti log tau_ti``, as in McLachlan and Peel (2000), Sec. 6.10, and
        `moestat.select`.  flexmix and mclust assign each row to its most probable expert and use
        ``-sum_t w_t log max_i tau_ti`` in place of H, which is smaller; see `icl_map`.
        """
        k = self.family.n_experts
        return self.bic + 2.0 * self.entropy * self.n_independent * np.log(k)

    @property
    def icl_map(self) -> float:
        """Integrated completed likelihood with each row assigned to its most probable expert.

        ``BIC - 2 sum_t w_t log max_i tau_ti`` (Biernacki, Celeux and Govaert 2000).  This is the
        ICL of flexmix, and of mclust with the opposite sign.
        """
        return self.bic - 2.0 * sum_over_parts(self, "icl_map", _log_of_largest)

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
        if self.family.likelihood.parts:
            raise ValueError("several responses have no R-squared")
        if self.family.likelihood.dtype is np.complex128:
            raise ValueError("responses of two columns have no R-squared")
        if self.reads_source:
            total = float(self.rows_elsewhere.totals.squares[-1, -1])
        else:
            y = np.asarray(self.rows.y, dtype=np.float64)
            total = float(self.weight @ (y - np.average(y, weights=self.weight)) ** 2)
        return 1.0 - sum_over_parts(self, "rsquared", _sum_of_squares) / total

    @property
    def r_squared(self) -> float:
        """The old name of `rsquared`, for one release."""
        warn_of_old_name("r_squared", "rsquared")
        return self.rsquared

    @property
    def deviance(self) -> float:
        """Weighted deviance of one expert, a generalised linear model, not divided by the scale.

        For classes it is ``-2 l``, because a model with a parameter for each row has l = 0.

        Raises
        ------
        ValueError
            If there are several experts, or the likelihood is not an exponential family.

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
        return sum_over_parts(self, "deviance", _deviance)

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic, ``sum w (y - mu)^2 / V(mu)``, for the models of `deviance`."""
        return sum_over_parts(self, "pearson_chi2", _pearson_chi2)

    @property
    @by_parts
    def resid_pearson(self) -> Any:
        """Pearson residuals (n,), ``(y - mu) / sqrt(V(mu))``, for the models of `deviance`."""
        return self._inputs().like(units(self, "resid_pearson").pearson)

    @property
    @by_parts
    def resid_deviance(self) -> Any:
        """Deviance residuals (n,), signed roots of the deviance of each row; see `deviance`."""
        fitted_units = units(self, "resid_deviance")
        return self._inputs().like(
            np.sign(fitted_units.y - fitted_units.mean) * np.sqrt(fitted_units.deviances)
        )

    @property
    def scale(self) -> float:
        """Pearson's statistic divided by the number of rows minus coefficients of the mean.

        It is 1 if the variance is a known function of the mean, as for Poisson counts.  It differs
        from the maximum-likelihood estimate in `blocks`.  It is available for the models of
        `deviance`.
        """
        return units(self, "scale").scale

    @property
    def llnull(self) -> float:
        """Maximum log-likelihood of one expert without inputs, but with the offset of the fit."""
        return null_log_likelihood(self)

    def pseudo_rsquared(self, kind: str = "cs") -> float:
        """Pseudo R-squared, a comparison with one expert without inputs (`llnull`).

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
        if one_of("kind", kind, ("cs", "mcf")) == "mcf":
            return 1.0 - self.llf / self.llnull
        return float(-np.expm1(2.0 * (self.llnull - self.llf) / self.nobs))

    def get_influence(self) -> RegressionInfluence:
        """Leverage, studentised residuals and Cook's distances of one expert.

        They are available for the models of `deviance`; `influence` is available for any fit.

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

        It is 0 if each row belongs to one expert with certainty, and 1 if all experts are equally
        probable for every row.  For k = 1 it is 0.
        """
        if self.family.n_experts == 1:
            return 0.0
        total = sum_over_parts(self, "entropy", _entropy)
        return float(total / (self.n_independent * np.log(self.family.n_experts)))

    @property
    def _order_doubt(self) -> str | None:
        """The reason why Wald inference is not valid; None if there is none."""
        if self.order is None or self.prior is not None:
            return None
        return self._in_words(str(self.order)) if self.order.gain > 0.0 else None

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


def _log_of_largest(part: Criteria) -> float:
    """Weighted sum of the logarithms of the largest responsibilities."""
    tau, weight = part.assignments
    return float(np.log(tau.max(axis=0)) @ weight)


def _sum_of_squares(part: Criteria) -> float:
    """Weighted sum of the squares of the residuals."""
    return float(part.weight @ np.asarray(part.resid) ** 2)


def _entropy(part: Criteria) -> float:
    """Weighted sum of the entropies of the responsibilities."""
    tau, weight = part.assignments
    return -float(np.sum(tau * np.log(np.maximum(tau, np.finfo(float).tiny)) @ weight))


def _deviance(part: Criteria) -> float:
    of_rows = units(part, "deviance")
    return float(of_rows.weight @ of_rows.deviances)


def _pearson_chi2(part: Criteria) -> float:
    of_rows = units(part, "pearson_chi2")
    return float(of_rows.weight @ of_rows.pearson**2)
