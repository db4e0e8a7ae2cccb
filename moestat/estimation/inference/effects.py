"""Linear functions of parameters one by one, and average effects of inputs on predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.estimation.inference.constraints import linear_constraints
from moestat.estimation.inference.delta import gradients

__all__ = ["Effects", "marginal_effects", "t_test"]

_STEP = 1e-4
"""Half of a difference in an input, in its standard deviations: an error of 1e-8 of the effect."""


@dataclass(frozen=True, repr=False)
class Effects:
    """Estimates with standard errors, one by one.

    Parameters
    ----------
    names : list of str
        What each is.
    effect, sd : ndarray of shape (m,)
        Estimates and their standard errors.
    null : ndarray of shape (m,)
        Values under the hypotheses.
    """

    names: list[str]
    effect: FloatArray
    sd: FloatArray
    null: FloatArray = field(repr=False)

    @property
    def tvalue(self) -> FloatArray:
        """Estimates less the values of the hypotheses over standard errors (m,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.effect - self.null) / self.sd

    @property
    def pvalue(self) -> FloatArray:
        """Two-sided normal p-values (m,)."""
        from scipy.stats import norm

        return 2.0 * norm.sf(np.abs(self.tvalue))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Normal intervals (m, 2) of level ``1 - alpha``."""
        from scipy.stats import norm

        half = norm.ppf(1.0 - real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0) * self.sd
        return np.column_stack([self.effect - half, self.effect + half])

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """A pandas frame with the columns of statsmodels, one row per estimate."""
        import pandas as pd

        ends = self.conf_int(alpha)
        columns = {
            "coef": self.effect,
            "std err": self.sd,
            "z": self.tvalue,
            "P>|z|": self.pvalue,
            "Conf. Int. Low": ends[:, 0],
            "Conf. Int. Upp.": ends[:, 1],
        }
        return pd.DataFrame(columns, index=self.names)

    def __repr__(self) -> str:
        return self.summary_frame().to_string(float_format="{:.4g}".format)


def t_test(result: Any, constraints: str) -> Effects:
    """Tests of linear functions of parameters one by one, see `MoEResults.t_test`."""
    matrix, value = linear_constraints(constraints, result.param_names)
    error = result._errors_of(matrix)
    names = [part.strip() for part in constraints.replace(";", ",").split(",")]
    if len(names) != len(value):  # names of parameters have commas, too
        names = [f"c{row}" for row in range(len(value))]
    return Effects(names, matrix @ result.theta, error, value)


def marginal_effects(result: Any, dummy: bool = False) -> Effects:
    """Average derivatives of predictions in the inputs, see `MoEResults.get_margeff`."""
    X, weight = result.rows.X, result.weight / result.weight.sum()
    family, theta = result.family, result.theta
    features = result.data.features or [f"x{f}" for f in range(family.n_features)]
    classes = family.likelihood.support is not None
    names, effects, errors = [], [], []
    for f in family.read:
        column = X[:, f]
        binary = dummy and bool(np.isin(column, (0.0, 1.0)).all())
        half = _STEP * float(column.std() or 1.0)
        sides = (0.0, 1.0) if binary else (column - half, column + half)
        total: FloatArray = np.zeros(1)
        slope: FloatArray = np.zeros(1)
        for sign, side in zip((-1.0, 1.0), sides, strict=True):
            moved = X.copy()
            moved[:, f] = side
            for rows, value, gradient in gradients(family, theta, moved):
                total = total + sign * value @ weight[rows]
                slope = slope + sign * gradient @ weight[rows]
        width = 1.0 if binary else 2.0 * half
        effects.append(total / width)
        errors.append(result._errors_of(slope.T / width))
        labels = [f"{features[f]}, {label}" for label in result._labels]
        names += labels if classes else [str(features[f])]
    estimate = np.concatenate(effects) if effects else np.empty(0)
    error = np.concatenate(errors) if errors else np.empty(0)
    return Effects(names, estimate, error, np.zeros(estimate.size))
