"""Linear functions of parameters one by one, and average effects of inputs on predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.data.variables import Variables
from moestat.estimation.fit.delta import gradients, normal_reach
from moestat.estimation.inference.constraints import equations, linear_constraints
from moestat.solvers.rules import DIFFERENCE_STEP

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted


__all__ = ["Effects", "marginal_effects", "t_test"]


@dataclass(frozen=True, repr=False)
class Effects:
    """Estimates with standard errors and separate tests."""

    names: list[str]
    """Name of each estimate."""
    effect: FloatArray
    sd: FloatArray
    """Estimates and their standard errors; shape (m,)."""
    null: FloatArray = field(repr=False)
    """Values under the hypotheses; shape (m,)."""

    @property
    def tvalue(self) -> FloatArray:
        """Estimates minus hypothetical values, divided by standard errors (m,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.effect - self.null) / self.sd

    @property
    def pvalue(self) -> FloatArray:
        """Two-sided normal p-values (m,)."""
        from scipy.stats import norm

        return 2.0 * norm.sf(np.abs(self.tvalue))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Normal intervals (m, 2) of level ``1 - alpha``."""
        half = normal_reach(alpha) * self.sd
        return np.column_stack([self.effect - half, self.effect + half])

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
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


def t_test(result: Fitted, constraints: str) -> Effects:
    """Tests of linear functions of parameters one by one, see `MoEResults.t_test`."""
    matrix, value = linear_constraints(constraints, result.param_names, terms=result._terms)
    error = np.sqrt(np.diag(result._spread(matrix)))
    names = [part.strip() for part in equations(constraints)]
    return Effects(names, matrix @ result.theta, error, value)


def marginal_effects(result: Fitted, dummy: bool = False) -> Effects:
    """Average effects of inputs on predictions, see `MoEResults.get_margeff`."""
    weight = result.weight / result.weight.sum()
    family, theta = result.family, result.theta
    classes = family.likelihood.support is not None
    names, effects, errors = [], [np.empty(0)], [np.empty(0)]
    for name, sides, width in _changes(result, dummy):
        total: FloatArray = np.zeros(1)
        slope: FloatArray = np.zeros(1)
        for sign, X in zip((-1.0, 1.0), sides, strict=True):
            for rows, value, gradient in gradients(family, theta, X):
                share = sign * (weight / width)[rows]
                total = total + value @ share
                slope = slope + gradient @ share
        effects.append(total)
        error = result._errors_of(slope.T)
        error[result._open(slope.T) | ~np.isfinite(error)] = np.nan
        errors.append(error)
        names += [f"{name}, {label}" for label in result._labels] if classes else [name]
    estimate = np.concatenate(effects)
    return Effects(names, estimate, np.concatenate(errors), np.zeros(estimate.size))


def _changes(
    result: Fitted, dummy: bool
) -> Iterator[tuple[str, list[FloatArray], float | FloatArray]]:
    """Changes of the variables of the data: names, inputs (n, d) before and after, and widths."""
    variables = Variables.of(result.rows)
    variables.check_unbound("get_margeff")
    read = [*variables.levels]
    if variables.formula is None:
        read = [read[f] for f in result.family.read]
    for name in read:
        levels, values = variables.levels[name], variables.values[name]
        if levels is None and np.ptp(values) == 0.0:
            continue
        if levels is None and dummy and np.isin(values, (0.0, 1.0)).all():
            yield name, [variables.changed(name, one) for one in (0, 1)], 1.0
        elif levels is None:
            half = DIFFERENCE_STEP * float(np.std(values) or 1.0)
            low, high = values.min(), values.max()
            # Splines are defined only between the smallest and the largest value.
            ends = [np.clip(values + side, low, high) for side in (-half, half)]
            yield name, [variables.changed(name, end) for end in ends], ends[1] - ends[0]
        else:
            before = variables.changed(name, levels[0])
            for level in levels[1:]:
                after = variables.changed(name, level)
                yield f"{name}: {level} - {levels[0]}", [before, after], 1.0
