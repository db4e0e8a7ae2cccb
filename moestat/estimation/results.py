"""Results of a fit, in the manner of statsmodels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.model.family import Family
from moestat.model.measure import MixingMeasure
from moestat.solvers import Certificate, Solution

__all__ = ["MoEResults"]

_IDENTIFIED = 1e-12


@dataclass(frozen=True)
class MoEResults:
    """A fitted mixture of experts.

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
    """

    family: Family
    solution: Solution = field(repr=False)
    solver: str
    weight: FloatArray = field(repr=False)
    response_variance: float = field(default=float("nan"), repr=False)

    @property
    def params(self) -> FloatArray:
        """Packed parameters (P,); `blocks` has them by name."""
        return self.solution.theta

    @property
    def blocks(self) -> dict[str, FloatArray]:
        """Parameters by block."""
        return self.family.unpack(self.params)

    @property
    def measure(self) -> MixingMeasure:
        """The fitted mixing measure."""
        return self.family.measure(self.params)

    @property
    def certificate(self) -> Certificate:
        """Evidence that this is a maximum."""
        return self.solution.certificate

    @property
    def log_likelihood(self) -> float:
        """Total log-likelihood, natural log."""
        return self.solution.log_likelihood

    @property
    def nobs(self) -> float:
        """Sum of the sample weights."""
        return float(self.weight.sum())

    @property
    def _n_estimated(self) -> int:
        """Free parameters, with the noise variance of a regression function."""
        return self.family.n_free_params + int(self.family.is_regression)

    @property
    def aic(self) -> float:
        """Akaike's criterion, with the free parameters counted."""
        return 2.0 * self._n_estimated - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, with the free parameters counted."""
        return np.log(self.nobs) * self._n_estimated - 2.0 * self.log_likelihood

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
        return float(np.exp(-2.0 * self.log_likelihood / self.nobs - 1.0) / (2.0 * np.pi))

    @property
    def r_squared(self) -> float:
        """Share of the response's variance that a regression function explains."""
        return 1.0 - self.residual_variance / self.response_variance

    @cached_property
    def singular_values(self) -> FloatArray:
        """Singular values of the scaled Jacobian at the free coordinates, ascending.

        The Gauss-Newton spectrum: every column of J has length 1, so that the values do not
        depend on the units of the parameters; their ratio is the condition of the fit.
        """
        return np.sqrt(np.maximum(self._spectrum[0], 0.0))

    @cached_property
    def free(self) -> np.ndarray:
        """Coordinates neither pinned nor on a bound, shape (P,)."""
        lower, upper = self.family.box_at(self.params)
        return (self.params > lower) & (self.params < upper)

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Eigenvalues and vectors of the scaled information of the free coordinates."""
        at = np.flatnonzero(self.free)
        block = self.solution.information[np.ix_(at, at)]
        scale = np.sqrt(np.maximum(np.abs(np.diag(block)), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(block / np.outer(scale, scale))
        return values, vectors, scale

    def cov_params(self) -> FloatArray:
        """Covariance matrix (P, P) of the estimate: the inverse observed information.

        Rows and columns of pinned and bounded coordinates are 0.  A coordinate that a null
        direction of the information moves is not identified: its row and column are NaN, and so
        is everything when the information is not positive.
        """
        return self._covariance.copy()

    @cached_property
    def _covariance(self) -> FloatArray:
        covariance = np.zeros((self.family.n_params, self.family.n_params))
        at = np.flatnonzero(self.free)
        if at.size == 0:
            return covariance
        values, vectors, scale = self._spectrum
        if values[0] < -_IDENTIFIED * values[-1]:
            covariance[np.ix_(at, at)] = np.nan
            return covariance
        good = values > _IDENTIFIED * values[-1]
        inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T / np.outer(scale, scale)
        moved = np.abs(vectors[:, ~good]).max(axis=1, initial=0.0) > 1e-6
        inverse[moved] = np.nan
        inverse[:, moved] = np.nan
        covariance[np.ix_(at, at)] = inverse
        return covariance

    @property
    def bse(self) -> FloatArray:
        """Standard errors (P,); 0 for pinned and bounded, NaN for unidentified coordinates."""
        return np.sqrt(np.diag(self._covariance))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Wald intervals (P, 2) of level ``1 - alpha``."""
        from scipy.stats import norm

        half = norm.ppf(1.0 - real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0) * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities (n, K) at inputs X (n, d)."""
        return self.family.probabilities(self.params, X)

    def predict(self, X: Any) -> Any:
        """Most probable class label, 1..K, or the conditional mean of y, at inputs X (n, d)."""
        likelihood = self.family.likelihood
        if likelihood.support is not None:
            return likelihood.decode(np.argmax(self.predict_proba(X), axis=1))
        return self.family.mean(self.params, X)

    def summary(self) -> str:
        """A text table of the fit, its certificate and its parameters.

        Returns
        -------
        str
            In the layout of statsmodels.
        """
        from scipy.stats import norm
        from statsmodels.iolib.table import SimpleTable

        family, certificate = self.family, self.certificate
        title = f"Mixture of experts: {family.gate.name} gate, {family.likelihood.name} experts"
        positive, zero, negative = certificate.inertia
        facts = [
            ["Experts", family.n_experts, "Log-likelihood", f"{self.log_likelihood:.6f}"],
            ["Observations", f"{self.nobs:g}", "AIC", f"{self.aic:.3f}"],
            ["Free parameters", family.n_free_params, "BIC", f"{self.bic:.3f}"],
            ["Solver", self.solver, "Status", certificate.status],
            [
                "Certified",
                "yes" if certificate.certified else "NO",
                "Gain left",
                f"{certificate.gain:.1e}",
            ],
            [
                "Inertia (+, 0, -)",
                f"{positive}, {zero}, {negative}",
                "Condition",
                f"{certificate.condition:.1e}",
            ],
            [
                "Iterations",
                certificate.iterations,
                "Starts (agreeing)",
                f"{certificate.n_starts} ({certificate.agreement:.0%})",
            ],
            ["Distinct optima", certificate.n_optima, "On a bound", len(certificate.active)],
        ]
        if family.is_regression:
            variance = f"{self.residual_variance:.6g}"
            facts.append(["Residual variance", variance, "R-squared", f"{self.r_squared:.6f}"])
        if certificate.n_collapsed:
            atoms = ", ".join(map(str, certificate.collapsed)) or "none"
            facts.append(["Collapsed atoms", atoms, "Collapsed starts", certificate.n_collapsed])
        if certificate.kinks:
            facts.append(
                [
                    "Held at a kink",
                    certificate.kinks,
                    "Reach across kinks",
                    f"{certificate.reach:.1e}",
                ]
            )
        rows = []
        interval = self.conf_int()
        lower, upper = family.box_at(self.params)
        for j, name in enumerate(family.param_names):
            value, error = self.params[j], self.bse[j]
            if family.lower[j] == family.upper[j]:
                note = ["(reference)", "", "", "", ""]
            elif lower[j] == upper[j]:
                note = ["(held: sets the scale)", "", "", "", ""]
            elif not self.free[j]:
                note = ["(on bound)", "", "", "", ""]
            elif not np.isfinite(error):
                note = ["(not identified)", "", "", "", ""]
            else:
                z = value / error
                low, high = interval[j]
                note = [
                    f"{error:.4f}",
                    f"{z:.3f}",
                    f"{2 * norm.sf(abs(z)):.3f}",
                    f"{low:.4f}",
                    f"{high:.4f}",
                ]
            rows.append([name, f"{value:.4f}", *note])
        head = ["", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"]
        return f"{SimpleTable(facts, title=title)}\n{SimpleTable(rows, headers=head)}"
