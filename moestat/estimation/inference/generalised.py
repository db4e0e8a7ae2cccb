"""Statistics of a generalised linear model: deviance, Pearson residuals, leverage.

The model is a fit of one expert whose likelihood is an exponential family.  Definitions are those
of McCullagh and Nelder (1989), Sec. 2.3 and 2.4; names and scaling are those of statsmodels' GLM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import xlog1py, xlogy

from moestat.base.types import FloatArray
from moestat.estimation.fit.delta import gradients
from moestat.estimation.inference.inner_fit import inner_fit
from moestat.solvers import Newton, Solution
from moestat.solvers.driver import Cores, attempt
from moestat.solvers.problem import Objective, Problem, Request
from moestat.solvers.squares import profile_log_likelihood

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "RegressionInfluence",
    "Units",
    "influence_of_regression",
    "null_log_likelihood",
    "units",
]


Number: TypeAlias = float | FloatArray
"""The known number of a family: one for all responses, or one for each (n,)."""


@dataclass(frozen=True)
class _Law:
    """An exponential family; `a` is its known number, such as trials or a dispersion."""

    variance: Callable[[FloatArray, Number], FloatArray]
    """``V(mu, a)``: variance of a response over the scale."""
    deviance: Callable[[FloatArray, FloatArray, Number], FloatArray]
    """``d(y, mu, a)``: deviance of one response."""
    scaled: bool = False
    """Whether the scale is estimated, and not 1."""


def _binomial(y: FloatArray, p: FloatArray, n: Number) -> FloatArray:
    saturated = xlogy(y, y) + xlog1py(1.0 - y, -y)
    return 2.0 * n * (saturated - xlogy(y, p) - xlog1py(1.0 - y, -p))


def _negative_binomial(y: FloatArray, mu: FloatArray, a: Number) -> FloatArray:
    return 2.0 * (xlogy(y, y / mu) - (y + 1.0 / a) * np.log((1.0 + a * y) / (1.0 + a * mu)))


_NORMAL = _Law(lambda mu, a: np.ones_like(mu), lambda y, mu, a: (y - mu) ** 2, True)
_COUNTS = _Law(lambda mu, a: mu + a * mu**2, _negative_binomial)
_LAWS = {
    "gaussian": _NORMAL,
    "least-squares": _NORMAL,
    "poisson": _Law(lambda mu, a: mu, lambda y, mu, a: 2.0 * (xlogy(y, y / mu) - (y - mu))),
    "binomial": _Law(lambda p, n: p * (1.0 - p) / n, _binomial),
    "gamma": _Law(
        lambda mu, a: mu**2, lambda y, mu, a: 2.0 * ((y - mu) / mu - np.log(y / mu)), True
    ),
    "inverse-gaussian": _Law(
        lambda mu, a: mu**3, lambda y, mu, a: (y - mu) ** 2 / (y * mu**2), True
    ),
    "negative-binomial": _COUNTS,
    "geometric": _COUNTS,
}


@dataclass(frozen=True)
class Units:
    """Responses (n,) with their means and variances over the scale, and weights."""

    law: _Law
    y: FloatArray
    mean: FloatArray
    parameter: Number  # trials, or the dispersion of counts: what the law reads besides means
    weight: FloatArray
    # coefficients of the mean that are estimated, without those of a dispersion
    n_coefficients: float

    @property
    def variance(self) -> FloatArray:
        """Variance function at the means (n,)."""
        return self.law.variance(self.mean, self.parameter)

    @property
    def pearson(self) -> FloatArray:
        """``(y - mu) / sqrt(V(mu))`` (n,), without the scale."""
        return (self.y - self.mean) / np.sqrt(self.variance)

    @property
    def deviances(self) -> FloatArray:
        """Deviance of each response (n,), at least 0, without the scale and the weight."""
        return np.maximum(self.law.deviance(self.y, self.mean, self.parameter), 0.0)

    @property
    def scale(self) -> float:
        """Pearson's statistic over its degrees of freedom; 1 where the variance is known."""
        if not self.law.scaled:
            return 1.0
        degrees = float(self.weight.sum()) - self.n_coefficients
        return float(self.weight @ self.pearson**2) / degrees


def units(result: Fitted, name: str) -> Units:
    """Responses and means of a fit of one expert; `name` is the statistic, for error messages."""
    family, likelihood = result.family, result.family.likelihood
    if likelihood.parts:
        raise ValueError(
            f"{name} is available for one response at a time: use"
            f" result.response({likelihood.parts[0].name!r}).{name}"
        )
    law = _LAWS.get(likelihood.name)
    if family.n_experts > 1:
        raise ValueError(
            f"{name} is available only for one expert, a generalised linear model; for a mixture"
            f" of {family.n_experts} experts use quantile_residuals(), resid, bic or llnull"
        )
    others = sorted({*likelihood.options} - {"trials", "link"})
    if law is None or likelihood.effects is not None or others:
        what = f"{' '.join(others)} {likelihood.name} likelihood".lstrip()
        what += " with random effects" * bool(likelihood.effects)
        raise ValueError(
            f"{name} is available only for the likelihoods {', '.join(_LAWS)}; for the {what} use"
            " quantile_residuals() or bic"
        )
    rows, theta = result.rows, result.theta
    y, mean, parameter = likelihood.encode(rows.y, 1), family.mean(theta, rows.X), 1.0
    if likelihood.name == "binomial":
        by_row = likelihood.with_trials is not None
        parameter = np.imag(y) if by_row else float(likelihood.options["trials"])
        y, mean = (likelihood.level(y), mean) if by_row else (y / parameter, mean / parameter)
    elif likelihood.name == "negative-binomial":
        parameter = float(np.ravel(result.blocks["phi"])[0])
    scale_places = family.index[0, family.layout[1] + family.layout[2] :]
    n_coefficients = result.edf - int(np.sum(result.free[scale_places]))
    return Units(
        law, np.asarray(y, dtype=np.float64), mean, parameter, result.weight, n_coefficients
    )


@dataclass(frozen=True)
class RegressionInfluence:
    """Leverage and influence of the rows of a generalised linear model.

    Parameters
    ----------
    hat_matrix_diag : ndarray of shape (n,)
        Leverage: the diagonal of the hat matrix with the expected information; it sums to the
        number of coefficients.
    resid_studentized : ndarray of shape (n,)
        Pearson residuals over ``sqrt(scale (1 - leverage))``.
    cooks_distance : ndarray of shape (n,)
        ``r^2 h / ((1 - h) p)`` with the studentised residual r, leverage h and p coefficients.

    Notes
    -----
    McCullagh and Nelder (1989), Sec. 12.7; Cook and Weisberg (1982).
    """

    hat_matrix_diag: FloatArray
    resid_studentized: FloatArray
    cooks_distance: FloatArray
    index: pd.Index | None = None

    def summary_frame(self) -> pd.DataFrame:
        """A pandas table with one row per row of the data."""
        import pandas as pd

        columns = {
            "hat_matrix_diag": self.hat_matrix_diag,
            "resid_studentized": self.resid_studentized,
            "cooks_distance": self.cooks_distance,
        }
        return pd.DataFrame(columns, index=self.index)


def influence_of_regression(result: Fitted) -> RegressionInfluence:
    """Leverage and Cook's distances of a fit of one expert, see `MoEResults.get_influence`."""
    fitted_units = units(result, "get_influence")
    family, X = result.family, result.rows.X
    moves = np.empty((len(X), family.n_params))
    for rows, _, gradient in gradients(family, result.theta, X):
        moves[rows] = gradient[:, 0].T
    if family.likelihood.name == "binomial" and family.likelihood.with_trials is None:
        moves /= fitted_units.parameter
    moves = moves[:, result.free] * np.sqrt(fitted_units.weight / fitted_units.variance)[:, None]
    length = np.linalg.norm(moves, axis=0)
    moves /= np.where(length > 0.0, length, 1.0)
    leverage = np.einsum(
        "np,pq,nq->n", moves, np.linalg.pinv(moves.T @ moves, hermitian=True), moves
    )
    resid = fitted_units.pearson / np.sqrt(fitted_units.scale * (1.0 - leverage))
    distance = resid**2 / fitted_units.n_coefficients * leverage / (1.0 - leverage)
    return RegressionInfluence(leverage, resid, distance, result._inputs().index)


def null_log_likelihood(result: Fitted) -> float:
    """The largest log-likelihood of one expert without inputs, on the rows of a fit.

    The offset is kept.  Parameters of the likelihood, such as a variance, are estimated with the
    intercept, so that a fit with inputs is never lower.
    """
    family = result.family
    if family.likelihood.effects is not None:
        raise ValueError(
            "llnull is defined only for independent rows; compare fits with random effects by"
            " moestat.lr_test or bic"
        )
    inner = inner_fit(result, mode=True)
    if family.is_regression:
        y, weight = inner.data.y, inner.data.weight
        half_of_null = 0.5 * float(weight @ (y - np.average(y, weights=weight)) ** 2)
        fitted = inner.family.regression(inner.theta, inner.data.X)[0]
        half_of_fit = 0.5 * float(weight @ (y - fitted) ** 2)
        total = float(weight.sum())
        loss = profile_log_likelihood(half_of_fit, total) - profile_log_likelihood(
            half_of_null, total
        )
        return float(result.llf - loss)
    null_family = inner.family.with_experts(1)
    try:
        null_family = null_family.holding([*null_family.held, *null_family.read])
    except ValueError:
        raise ValueError(
            f"llnull: gate {family.gate.name!r} is not defined without inputs; as a comparison fit"
            " one expert with a constant gate, gate_inputs=[]"
        ) from None
    atoms, shared = inner.family.split(inner.theta)
    starts = [
        null_family.feasible(null_family.pin(null_family.join(atom[None], shared)))
        for atom in atoms
    ]
    starts.append(
        null_family.feasible(null_family.pin(null_family.join(atoms.mean(axis=0)[None], shared)))
    )
    problems = [Problem(null_family, inner.data) for _ in starts]
    climbs = [Newton().steps(p, start) for p, start in zip(problems, starts, strict=True)]
    ends = attempt(climbs, problems, Cores(1))
    solved = [end.log_likelihood for end in ends if isinstance(end, Solution)]
    if not solved:
        raise ValueError("llnull: no maximum of one expert without inputs was found")
    # What the change of units adds to a log-likelihood is the same for both.
    request = Request(Objective.VALUE, inner.theta)
    height = -Problem(inner.family, inner.data).evaluate(request).value
    return float(result.llf - (height - max(solved)))
