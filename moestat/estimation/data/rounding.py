"""The steps in which a response is recorded, and the least variance that they support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, is_sequence, real_in
from moestat.estimation.rules import ROUNDING
from moestat.model.family import Family
from moestat.model.responses import columns_of
from moestat.solvers.rows import Rows
from moestat.solvers.rules import HALF_OF_DIGITS

__all__ = ["checked_resolution", "least_variances", "resolution_of", "step_of"]


def _variances(family: Family) -> list[str]:
    """The block of the variance of each response (R,) that could collapse; "" if there is none."""
    likelihood, blocks = family.likelihood, list[str]()
    names = [one.block("nu") for one in likelihood.parts] or ["nu"]
    for law, name in zip(likelihood.laws, names, strict=True):
        of_experts = (law,) if law.choices is None else law.choices.laws
        normal = any(one.collapse == "nu" and one.ends[1] == np.inf for one in of_experts)
        blocks.append(name if normal and name in likelihood.scales else "")
    return blocks


def step_of(values: FloatArray, weight: FloatArray | None = None) -> float:
    """The step of the grid on which values (n,) were recorded; 0 if they show no grid.

    The step is the largest h such that all differences of values are multiples of h.  It counts
    only if values occur repeatedly, some more often than others, and the grid is so coarse that
    among as many values drawn on it two would be equal.  Values that differ by rounding of float64,
    or of float32, are equal.

    Parameters
    ----------
    values : ndarray of shape (n,)
        A response.
    weight : ndarray of shape (n,), optional
        Weights of the rows; those of weight 0 do not count.

    Notes
    -----
    Euclid's algorithm for the greatest common divisor, on all distances from the smallest value.
    Neither the unit of the values, nor a shift, nor copies of the rows change what it finds.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> round(step_of(np.round(y, 1)), 6), round(step_of(2.54 * np.round(4.0 * y)), 6), step_of(y)
    (0.1, 2.54, 0.0)
    """
    units = np.ones(values.size) if weight is None else weight
    used = units > 0.0
    if not used.all():
        values, units = values[used], units[used]
    subset = values[:: max(1, values.size // ROUNDING.few)]
    if values.size < 2 or _divisor(np.unique(subset))[0] == 0.0:
        return 0.0  # if all values lie on a grid, so does every subset
    distinct, place = np.unique(values, return_inverse=True)
    step, count = _divisor(distinct)
    heavy = np.bincount(place, units)
    repeats = np.ptp(heavy) > HALF_OF_DIGITS * heavy.max()
    return step if repeats and count <= float(distinct.size) ** 2 else 0.0


def _divisor(values: FloatArray) -> tuple[float, float]:
    """Greatest common divisor of the distances between sorted values, and the range divided by it.

    Both are 0 if the divisor is not clearly larger than rounding errors.
    """
    size = max(abs(float(values[0])), abs(float(values[-1])))
    for epsilon in (np.finfo(np.float64).eps, np.finfo(np.float32).eps):
        error = ROUNDING.errors * float(epsilon) * size
        apart = values[np.append(True, np.diff(values) > error)]
        away = apart - apart[0]
        if away.size < 2:
            return 0.0, 0.0
        step = float(np.diff(apart).min())
        while step > ROUNDING.clear * error:
            step, remainder = _remainders(away, step, error)
            if remainder is None:
                return step, float(np.round(away[-1] / step))
            step = remainder
    return 0.0, 0.0


def _remainders(away: FloatArray, step: float, error: float) -> tuple[float, float | None]:
    """The step, estimated from longer and longer distances, and its smallest remainder, or None.

    A step that is estimated from a distance of m steps has the error `error` / m, so it predicts
    farther multiples.
    """
    known, size = 1.0, 0
    while size < away.size:
        farthest = known * (ROUNDING.part * step / error - 1.0)
        reach = np.searchsorted(away, farthest * step, side="right")
        size = max(int(reach), size + 1)
        near = away[:size]
        multiple = np.round(near / step)
        remainder, allowed = np.abs(near - multiple * step), error * (1.0 + multiple / known)
        off_grid = remainder > allowed
        if off_grid.any():
            return step, float(remainder[off_grid].min())
        if allowed[-1] > 2.0 * ROUNDING.part * step:
            return step, 0.0  # too far for this step to say where it ends
        if multiple[-1] > known:
            known = float(multiple[-1])
            step = float(near[-1]) / known
    return step, None


def checked_resolution(
    family: Family, given: float | Sequence[float] | None
) -> tuple[float, ...] | None:
    """The step of each response (R,) that a user gives, 0 for none; None if none is given."""
    if given is None:
        return None
    blocks, parts = _variances(family), family.likelihood.parts
    steps, each = [given] * len(blocks), bool(parts) and is_sequence(given)
    if each:
        steps = as_floats("resolution", given, (len(blocks),)).tolist()
    steps = [float(real_in("resolution", step, 0.0)) for step in steps]
    if any(steps) and not any(blocks):
        raise ValueError(
            f"resolution: experts of the {family.likelihood.name} likelihood have no variance of"
            " their own that steps of y could bound; leave it out"
        )
    for one, step, block in zip(parts if each else (), steps, blocks, strict=False):
        if step and not block:
            raise ValueError(
                f"resolution: experts have no variance of {one.name!r} that steps could bound; give"
                f" 0 for this response, got {step:g}"
            )
    return tuple(step if block else 0.0 for step, block in zip(steps, blocks, strict=True))


def resolution_of(family: Family, data: Rows) -> tuple[float, ...]:
    """The step in which each response (R,) is recorded; 0 without one, for counts and classes."""
    steps: list[float] = []
    for block, values in zip(_variances(family), columns_of(data.y), strict=True):
        weight = data.weight
        if np.iscomplexobj(data.y):  # of censored responses those that are known
            weight = np.where(np.real(data.y) == np.imag(data.y), weight, 0.0)
        steps.append(step_of(values, weight) if block else 0.0)
    return tuple(steps)


def least_variances(family: Family, data: Rows, steps: Sequence[float]) -> dict[str, float]:
    """The least variance that steps (R,) of the responses support, by block, if there are steps.

    It is the variance of a uniform distribution over one step, ``h^2 / 12`` (Sheppard, 1897).  For
    the logarithm of a response it is that of the finest step, at the largest response.
    """
    variances: dict[str, float] = {}
    each = zip(_variances(family), steps, columns_of(data.y), family.likelihood.laws, strict=True)
    for block, step, values, law in each:
        if block and step > 0.0:
            positive = law.ends[0] == 0.0
            largest = float(values[data.weight > 0.0].max()) if positive else 1.0
            variances[block] = (step / largest) ** 2 / 12.0
    return variances
