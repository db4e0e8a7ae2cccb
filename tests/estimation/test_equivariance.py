"""Fits of every family follow the units of the data, as far as the family is closed."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.starts import GivenStarts
from moestat.model.units import Coordinates, DataUnits, closed_part
from tests.kinds import CURVED, GAUSSIAN, MULTINOMIAL, OTHERS, each_run, kind_id, make

ALL = [*MULTINOMIAL, *GAUSSIAN, *CURVED, *OTHERS]
MAPS = [(-6.0, 6.0, 1e6), (6.0, -6.0, -1e6), (-2.0, 3.0, 17.0)]
"""Powers of ten of the scales of X and y, and shifts in scales."""


def moved(family, X, y, log_scale, log_unit, shift):
    """Coordinates and data after a map, of which the closed part is taken."""
    scale = 10.0**log_scale * np.linspace(1.0, 2.0, family.n_features)
    wanted = DataUnits(shift * scale, scale, shift * 10.0**log_unit, 10.0**log_unit)
    units = closed_part(family, wanted)
    if not np.issubdtype(np.asarray(y).dtype, np.integer):
        y = units.level + units.unit * y
    return Coordinates(family, units), units.centre + units.scale * X, y


def pairs(kind):
    """A fit near the truth beside the fits to mapped data, for each of the maps."""
    family = make(kind, 2, 2, 3)
    truth = family.typical(0)
    X, y = moestat.sample(family, truth, 2000, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        one = moestat.fit(family, X, y, starts=[GivenStarts([truth])])
        for change in MAPS:
            coordinates, Xm, ym = moved(family, X, y, *change)
            start = coordinates.outward(truth)
            known = {name for name, (low, high) in family.gate.bounds.items() if low == high}
            values = {name: float(np.max(start[family.blocks[name]])) for name in known}
            box = {**family.box, **{name: (value, value) for name, value in values.items()}}
            there = replace(family, box=box)
            other = moestat.fit(there, Xm, ym, starts=[GivenStarts([start])])
            yield one, other, coordinates, X, Xm


def height(one, other, coordinates):
    """Relative difference of the log-likelihoods after the Jacobian of the map."""
    there = other.log_likelihood + one.nobs * np.log(coordinates.units.unit)
    return abs(there / one.log_likelihood - 1.0)


def differences(one, other, coordinates, X, Xm):
    """Largest relative differences between a fit and the fit to mapped data."""
    family = one.family
    unit = coordinates.units.unit
    theta = coordinates.outward(one.theta)
    matrix = coordinates.matrix
    errors = np.sqrt(np.diag(matrix @ one.cov_params() @ matrix.T))
    free = errors > 0.0  # the others are pinned
    size = np.maximum(np.abs(theta), errors)
    if family.likelihood.support is None:
        predicted = (np.asarray(other.predict(Xm)) - coordinates.units.level) / unit
        apart = np.abs(predicted - one.predict(X)).max() / np.std(one.predict(X))
    else:
        then = family.probabilities(other.theta, Xm)
        apart = np.abs(then - family.probabilities(one.theta, X)).max()
    return {
        "log-likelihood": height(one, other, coordinates),
        "parameters": (np.abs(other.theta - theta)[free] / size[free]).max(),
        "standard errors": np.abs(other.bse[free] / errors[free] - 1.0).max(),
        "predictions": apart,
    }


def is_sharp(result):
    """Whether a climb ends at one place to rounding: not on a jump, at a bound or on a ridge."""
    certificate = result.certificate
    ended = certificate.status == "converged" and not certificate.active
    return ended and not result.family.has_jumps and np.isfinite(certificate.condition)


LONG = ("gaussian-competition-free-ffn+3", "gaussian-competition-top-linear")


@pytest.mark.parametrize(
    "kind", each_run(ALL, [kind for kind in ALL if kind_id(kind) not in LONG], kind_id)
)
def test_fits_follow_the_units_of_the_data(kind):
    """Heights always do; the rest wherever rounding does not decide where a climb ends."""
    for one, other, *rest in pairs(kind):
        assert one.certificate.certified == other.certificate.certified
        # On bounds of the fit's own, which have no units, a fit ends where the likelihood rises;
        # across jumps rounding decides which of two pieces a search tries first.
        ends = one.certificate.active or other.certificate.active or one.family.has_jumps
        assert height(one, other, rest[0]) < (1e-3 if ends else 1e-5)
        if not is_sharp(one):
            continue
        assert one.certificate.inertia == other.certificate.inertia
        assert one.certificate.active == other.certificate.active
        for what, difference in differences(one, other, *rest).items():
            assert difference < 1e-6, what


@pytest.mark.parametrize(
    "kind", [("gaussian", "softmax", "linear"), ("poisson", "softmax", "linear")]
)
def test_plain_families_are_sharp(kind):
    assert all(is_sharp(one) for one, *_ in pairs(kind))
