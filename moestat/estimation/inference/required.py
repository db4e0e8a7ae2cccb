"""How many rows an estimate needs: from the information of one row at a truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, real_in
from moestat.estimation.inference.constraints import linear_constraints
from moestat.estimation.inference.covariance import AtInputs
from moestat.metrics.information import expected_information
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.solvers.problem import Sample

__all__ = ["RequiredN", "required_n"]

_NULL = 1e-10
"""Eigenvalues of the information, scaled to unit diagonal, below this are 0."""


@dataclass(frozen=True)
class RequiredN:
    """The number of rows at which an estimate has a standard error.

    Parameters
    ----------
    what : str
        Parameter, or linear combination.
    n : int
        Number of rows.
    error : float
        The standard error that was asked for.
    unit_error : float
        Standard error of one row: that of n rows is this over the root of n.
    """

    what: str
    n: int
    error: float
    unit_error: float

    def error_at(self, n: Any) -> FloatArray:
        """Standard errors at numbers of rows (m,)."""
        return self.unit_error / np.sqrt(np.asarray(n, dtype=np.float64))

    def __str__(self) -> str:
        return f"{self.what}: {self.n} rows for a standard error of {self.error:g}"


def required_n(
    model: Any, truth: Any = None, design: Design | None = None, *, error: float, what: str
) -> RequiredN:
    """The number of rows at which an estimate has a given standard error.

    Parameters
    ----------
    model : Family or MoEResults
        The model; or a fit, whose estimate is then the truth and whose inputs are the design.
    truth : array_like of shape (P,), optional
        Packed parameters that generate the data; needed with a family.
    design : Design, optional
        Law of the inputs; uniform on [0, 1]^d by default, or the inputs of the fit.
    error : float
        Standard error, in units of what is estimated.
    what : str
        Name of a parameter, or a linear combination of them such as ``"a[1,0] - a[0,0]"``.

    Returns
    -------
    RequiredN
        The number of rows, and the errors at others.

    Raises
    ------
    ValueError
        If a name is unknown, or the information does not tell what is asked for: where experts
        merge, or an expert is one too many, errors fall more slowly than ``n^(-1/2)``, and no
        number follows from the information.

    Notes
    -----
    ``n = g' I^-1 g / error^2`` with the expected information I of one row and the derivative g:
    the normal limit of the maximum-likelihood estimate. It is a statement for large n; where
    experts overlap, errors at small n are larger than this.

    Examples
    --------
    The mean of normal responses with variance 4 is known to 0.1 from 400 rows; with a slope beside
    it the intercept at the end of [0, 1] needs four times as many.

    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> truth = F.pack({"beta0": [0], "beta1": [0], "a": [0], "b": [1], "nu": [4]})
    >>> print(required_n(F, truth, error=0.1, what="b[0] + 0.5 * a[0,0]"))
    b[0] + 0.5 * a[0,0]: 400 rows for a standard error of 0.1
    >>> required_n(F, truth, error=0.1, what="b[0]").n
    1600
    """
    target = real_in("error", error, 0.0, open_low=True)
    fitted = not isinstance(model, Family)
    family, names = (model.family if fitted else model), model.param_names
    if truth is None and not fitted:
        raise ValueError("truth: parameters are needed with a family")
    theta = as_floats("truth", model.theta if truth is None else truth, (family.n_params,))
    if fitted and design is None:
        rows = model.rows
        X = np.ascontiguousarray(rows.X.T)
        at = AtInputs(Sample(X, np.empty(0), rows.weight / rows.weight.sum()))
        information = expected_information(family, theta, at, n_nodes=1)
    else:
        information = expected_information(family, theta, design)
    (row,), _ = linear_constraints(what, names)
    unit = float(np.sqrt(_variance(family, information, row, what)))
    count = max(1, int(np.ceil((unit / target) ** 2 * (1.0 - 1e-12))))
    return RequiredN(what, count, target, unit)


def _variance(family: Family, information: FloatArray, row: FloatArray, what: str) -> float:
    """``g' I^-1 g`` over the free coordinates."""
    free = np.flatnonzero(family.lower < family.upper)
    block = information[np.ix_(free, free)]
    size = np.sqrt(np.maximum(np.diag(block), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(block / np.outer(size, size))
    along = vectors.T @ (row[free] / size)
    null = values <= _NULL * values[-1]
    lost = np.linalg.norm(along[null]) > 1e-6 * np.linalg.norm(along)
    if not np.any(row[free]) or lost:
        raise ValueError(
            f"what: the information at the truth does not tell {what!r}: it is a reference, not"
            " identified, or experts merge there, and errors fall more slowly than n^(-1/2)"
        )
    return float(np.sum(along[~null] ** 2 / values[~null]))
