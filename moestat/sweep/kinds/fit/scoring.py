"""Scores of estimates that another program made, by the losses of a spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import unknown
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.model.family import Family
from moestat.model.measure import MixingMeasure
from moestat.rates.rate import RateResult, fit_rate
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.analysis import average_rates
from moestat.sweep.kinds.fit.spec import REGRESSION_ERROR, Curve, Spec, as_fits, loss_label
from moestat.sweep.spec.protocol import AnySpec


@dataclass(frozen=True)
class Scores:
    """The losses of foreign estimates of one curve."""

    curve: str  # name of the curve
    n: IntArray = field(repr=False)  # (N,): sample sizes
    # (N,): by label of the loss: that of the curve, then its further ones.  NaN where an estimate
    # is no measure, because a mass is 0 or infinite in float64.
    losses: Mapping[str, FloatArray] = field(repr=False)

    def rates(self, label: str) -> dict[str, RateResult]:
        """Rates of a loss over all estimates, ``all``, and of its ``mean`` and ``median`` by n."""
        n, values = self.finite(label)
        if np.unique(n).size < 2:
            return {}
        return {"all": fit_rate(n, values, n_bootstrap=0), **average_rates(n, values)}

    def finite(self, label: str) -> tuple[IntArray, FloatArray]:
        """Sample sizes and losses of the estimates that are measures."""
        is_measure = np.isfinite(self.losses[label])
        return self.n[is_measure], self.losses[label][is_measure]

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            "curve": self.curve,
            "n": self.n.tolist(),
            "losses": {
                label: [None if np.isnan(value) else value for value in values.tolist()]
                for label, values in self.losses.items()
            },
            "rates": {
                label: {name: rate.as_dict() for name, rate in self.rates(label).items()}
                for label in self.losses
            },
        }


def score(spec: AnySpec, path: str | Path) -> list[Scores]:
    """The losses of the estimates in an .npz file, by curve of a spec of fits.

    For each curve with estimates the file holds an array ``CURVE/n`` of shape (N,) and one array
    ``CURVE/BLOCK`` for each block of the fitted family, of shape (N, k) or (N, k, d).  With one
    curve in the spec ``CURVE/`` may be left out.  Parameters that a gate does not depend on, such
    as a translation of the softmax gate's, need not be pinned.
    """
    spec = as_fits(spec, "score")
    arrays = _arrays(Path(path))
    if len(spec.curves) == 1:
        only = spec.curves[0].name
        arrays = {n if n.startswith(f"{only}/") else f"{only}/{n}": a for n, a in arrays.items()}
    names = {name.rpartition("/")[0] for name in arrays}
    for name in sorted(names - {curve.name for curve in spec.curves}):
        curves = [curve.name for curve in spec.curves]
        raise SweepError(f"{path}: {unknown('curve', name, curves)}")
    return [
        _score_curve(spec, curve, arrays, str(path)) for curve in spec.curves if curve.name in names
    ]


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile, AttributeError) as error:
        reason = "is not an .npz file"
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        raise SweepError(f"cannot read the estimates {path}: {reason}") from None


def _score_curve(spec: Spec, curve: Curve, arrays: Mapping[str, np.ndarray], path: str) -> Scores:
    fitted, target = spec.fitted_family(curve), spec.target(curve)
    blocks = {
        name.rpartition("/")[2]: array
        for name, array in arrays.items()
        if name.rpartition("/")[0] == curve.name
    }
    n = np.atleast_1d(blocks.pop("n", np.empty(0)))
    if n.ndim != 1 or n.size == 0 or n.dtype.kind not in "iuf" or np.any(n < 1):
        raise SweepError(f"{path}: {curve.name}/n must be sample sizes of shape (N,), N >= 1")
    for block, array in blocks.items():
        if np.ndim(array) == 0 or len(array) != n.size:
            raise SweepError(f"{path}: {curve.name}/{block} must have {n.size} rows, as n has")
    losses: dict[str, FloatArray] = {}
    measures = list(_measures(fitted, blocks, n.size, f"{path}: {curve.name}"))
    for given in (curve.loss, *(each for each in curve.also if each != REGRESSION_ERROR)):
        loss = make_loss(given)
        losses[loss_label(given)] = np.array(
            [
                np.nan if measure is None else float(voronoi_terms(measure, target, loss).value)
                for measure in measures
            ]
        )
    return Scores(curve.name, n.astype(np.int64), losses)


def _measures(
    fitted: Family, blocks: Mapping[str, np.ndarray], size: int, label: str
) -> Iterable[MixingMeasure | None]:
    """The measure of each estimate; None where a mass is 0 or infinite."""
    for i in range(size):
        try:
            theta = fitted.pack({block: array[i] for block, array in blocks.items()})
        except (ValueError, TypeError) as error:
            raise SweepError(f"{label}: row {i}: {error}") from None
        try:
            yield fitted.measure(fitted.pin(theta))
        except ValueError:  # a mass is 0 or infinite
            yield None
