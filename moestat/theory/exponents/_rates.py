"""The call: rates of all blocks near a truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.threads import ONE_THREAD
from moestat.base.validate import as_floats, as_numbers, check_kind, is_sequence, positive_int
from moestat.model.designs import Design, Given, make_design
from moestat.model.family import Family, check_family
from moestat.theory.defaults import INPUTS, at_least_zero, reporter
from moestat.theory.exponents._analysis import analyse
from moestat.theory.exponents._result import Rates
from moestat.theory.exponents._strata import nearest_stratum

__all__ = ["rates"]

_SEARCHES = 0.75
"""Share of the time for searches that is left to exponents; the rest is for truths nearby."""


def rates(
    model: Family,
    truth: ArrayLike | Mapping[str, ArrayLike],
    n_experts: int | None = None,
    design: Design | str | Mapping[str, Any] | ArrayLike | None = None,
    *,
    seconds: float = 25.0,
    progress: bool | Callable[[str], None] | None = None,
) -> Rates:
    """Rates at which the parameters of a mixture of experts are estimated near a truth.

    For each block of parameters and each number of fitted atoms in a Voronoi cell it finds the
    exponent r with which the distance of densities bounds the error: an estimate whose density
    converges at ``n^(-1/2)`` has errors of the order ``n^(-1/(2 r))`` in the worst case near the
    truth.  It works for every registered gate, expert and likelihood and for members of one's own,
    from their compiled functions alone.

    Parameters
    ----------
    model : Family
        The family of the truth, with the true number of experts.
    truth : array_like of shape (P,) or mapping
        The truth: packed parameters, or blocks as `Family.pack` takes them.
    n_experts : int, optional
        Fitted experts; one more than the truth has by default.
    design : Design, str, mapping, array_like of shape (n, d) or data frame, optional
        Distribution of X, its name or options as in a spec, or the inputs themselves; uniform on
        [-2, 2] by default.
    seconds : float
        Time for searches, in seconds, without end if infinite.  What derivatives decide needs a few
        seconds more, and each direction that first derivatives do not see up to ten.
    progress : bool or callable, optional
        Whether to write a line for each step to standard error, or what to call with it; by
        default lines are written if standard error is a terminal.

    Returns
    -------
    Rates
        A table with one row for each block and kind of cell.

    Raises
    ------
    ValueError
        If there are fewer fitted experts than true ones, the truth has the wrong length, or a row
        has several responses, random effects or a likelihood for each expert.
    ImportError
        Without mpmath, extra ``theory``.

    Notes
    -----
    *proved*: an algebraic relation, printed, makes the exponent.  *certified*: the rank of
    derivatives in 96 digits, with a witness that others can check, see `Rates.certificates`.
    *searched*: the slope of an explicit sequence of measures in 96 digits; a slower one is not
    excluded.  *not identified*: other parameters have the same density; the direction is printed.
    *no such measure*: no measure of so many atoms has the truth's density.  Masses are bounded
    below by a twentieth of their cell, as on a compact parameter space.

    References
    ----------
    Nguyen, Nguyen and Ho (2023), "Demystifying softmax gating function in Gaussian mixture of
    experts"; Ho and Nguyen (2016), "Convergence rates of parameter estimation for some weakly
    identifiable finite mixtures".

    Examples
    --------
    Two lines under a sigmoid gate with two classes: cells of two atoms have r = 2.

    >>> import moestat
    >>> F = moestat.family("gaussian", gate="softmax", n_experts=2)
    >>> blocks = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1], "b": [0, 1], "nu": [0.2, 0.3]}
    >>> found = moestat.theory.rates(F, blocks, 3, seconds=1)
    >>> found.rate("b", 2).text, found.rate("b", 2).status
    ('n^(-1/8)', 'proved')
    """
    if find_spec("mpmath") is None:
        raise ImportError("rates need mpmath: install moestat with the extra 'theory'")
    check_family("model", model)
    law = model.likelihood
    several = law.support is None and law.n_responses(model.n_classes) is not None
    if law.parts or several or law.effects is not None or law.choices is not None:
        raise ValueError(
            f"model: rates are for one response of independent rows, not for {law.name!r}"
        )
    packed = model.pack(truth) if isinstance(truth, Mapping) else truth
    theta = model.pin(as_floats("truth", packed, (model.n_params,)))
    fitted = positive_int("n_experts", model.n_experts + 1 if n_experts is None else n_experts)
    if fitted < model.n_experts:
        raise ValueError(
            f"n_experts must be at least the truth's {model.n_experts}, got {n_experts}"
        )
    chosen = _inputs(design, model.n_features)
    length = at_least_zero("seconds", seconds)
    began = time.monotonic()
    report = reporter(progress, "rates")
    with ONE_THREAD, np.errstate(all="ignore"):
        found = analyse(model, theta, fitted, chosen, _SEARCHES * length, report)
        report("exceptional truths nearby")
        until = time.monotonic() + (1.0 - _SEARCHES) * length
        nearest, looked = nearest_stratum(model, theta, chosen, until)
    if nearest is None and looked > 0.0:
        found.notes.append(
            f"No exceptional truths of the list are within a distance of {looked:.2g}."
        )
    rows = tuple(replace(row) for row in found.rows)
    return Rates(
        model,
        theta,
        fitted,
        chosen,
        rows,
        tuple(found.notes),
        time.monotonic() - began,
        nearest,
        found,
    )


def _inputs(design: Any, n_features: int) -> Design:
    """The design that was given, or one that was described."""
    if design is None:
        return INPUTS
    if isinstance(design, str):
        return make_design({"law": design})
    if isinstance(design, Mapping):
        return make_design(design)
    to_numpy = getattr(design, "to_numpy", None)
    if to_numpy is not None or is_sequence(design) or isinstance(design, np.ndarray):
        X = as_numbers("design", design if to_numpy is None else to_numpy())
        X = X[:, None] if X.ndim == 1 and n_features == 1 else X
        return Given(as_floats("design", X, (None, n_features)).tolist())
    check_kind(
        "design",
        design,
        "quadrature",
        "a design such as moestat.Uniform(-2, 2), its name or options, or inputs (n, d)",
    )
    getattr(design, "check_features", lambda _: None)(n_features)
    return design
