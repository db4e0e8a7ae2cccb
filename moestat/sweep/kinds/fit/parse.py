"""Specs of fits read from TOML, and checked in full before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moestat.base.registry import configured
from moestat.base.validate import first_meant, one_of, unknown
from moestat.estimation.search.maximum import MaximumStarts
from moestat.metrics.distances import DISTANCES
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.metrics.suitable import suitable_losses
from moestat.model.axes import family
from moestat.model.designs import make_design
from moestat.model.experts import EXPERTS
from moestat.model.family import Family
from moestat.model.gates import GATES
from moestat.model.generate import check_size, not_simulated
from moestat.model.likelihoods import LIKELIHOODS
from moestat.solvers import make_solver
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.keys import CURVE, TOP, TRUTH
from moestat.sweep.kinds.fit.spec import REGRESSION_ERROR, Curve, Spec, Truth, loss_label
from moestat.sweep.spec.keys import HEAD
from moestat.sweep.spec.limits import check_cells
from moestat.sweep.spec.sizes import read_sizes
from moestat.sweep.spec.tables import Table, short_text

_SOLVER = {"name": "newton"}
_SQUARES_SOLVER = {"name": "gauss-newton-bfgs"}
NEAR_TRUTH = {"truth": 3, "noise": 0.1}
"""Starts of fits with as many experts as the truth, and of estimates near the truth."""
_STARTS: dict[str, Mapping[str, object]] = {
    "maximum": {"maximum": MaximumStarts.count},
    "near-truth": NEAR_TRUTH,
}


def parse_fits(top: Table, text: str) -> Spec:
    """Read a spec whose cells are fits, by its top level without ``kind`` and its text."""
    head = top.read(HEAD)
    sizes = read_sizes(top)
    given = {key: _non_empty(top, key, kind) for key, kind in _TABLES.items()}
    values = {**head, **top.read(TOP)}
    top.finish()
    estimate = _estimate(top, values["estimate"])
    target, max_replicates = _adaptive(top, values)
    design = top.build("design", make_design, values["design"])
    truths = {name: read_truth(name, values) for name, values in given["truth"].items()}
    curves = tuple(
        _curve(position, each, truths, estimate) for position, each in enumerate(given["curve"], 1)
    )
    for i, curve in enumerate(curves):
        if any(curve.name == other.name for other in curves[:i]):
            raise SweepError(f"curve {curve.name!r}: name is taken by an earlier curve")
    spec = Spec(
        **head,
        sizes=sizes,
        design=design,
        truths=truths,
        curves=curves,
        text=text,
        target_slope_halfwidth=target,
        max_replicates=max_replicates,
        distances=_distances(top, values),
    )
    check_cells(spec.n_cells // spec.replicates * spec.most_replicates)
    return spec


def check_fits(spec: Spec) -> None:
    """Check that the losses, solvers, starts and sizes of the curves go with their truths."""
    for curve in spec.curves:
        _check_curve(spec, curve)


def _adaptive(top: Table, values: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """Half-width that the slopes' intervals should have, and the limit of the replicates."""
    target, limit = values["target_slope_halfwidth"], values["max_replicates"]
    if target is None:
        if limit is not None:
            raise top.error("max_replicates", "needs target_slope_halfwidth, too")
        return None, None
    if target <= 0:
        raise top.error("target_slope_halfwidth", f"must be > 0, got {target:g}")
    replicates = values["replicates"]
    if replicates < 2:
        raise top.error("target_slope_halfwidth", "needs replicates >= 2 to judge an interval by")
    if limit is None:
        raise top.error("max_replicates", "is missing")
    if limit < replicates:
        raise top.error("max_replicates", f"must be an integer >= {replicates}, got {limit}")
    return target, limit


def _distances(top: Table, values: Mapping[str, Any]) -> tuple[str, ...] | None:
    given = values["distances"]
    if given is None:
        return None
    if not isinstance(given, list) or any(
        given.count(name) > (name in DISTANCES) for name in given
    ):
        known = ", ".join(map(repr, DISTANCES))
        hint = first_meant(given, DISTANCES)
        message = f"must be a list of some of {known}, got {short_text(given)}{hint}"
        raise top.error("distances", message)
    return tuple(given)


_TABLES = {"truth": Mapping, "curve": list}


def _non_empty(top: Table, key: str, kind: type) -> Any:
    value = top.take(key)
    if not isinstance(value, kind) or not value:
        shape = "tables [truth.NAME]" if key == "truth" else "tables [[curve]]"
        raise top.error(key, f"must be one or more {shape}, got {short_text(value)}")
    return value


def read_truth(name: str, values: object) -> Truth:
    """A truth from its table in a spec; what is wrong with it raises a `SweepError`."""
    table = Table(values, f"truth {name!r}")
    likelihood = table.read(key for key in TRUTH if key.name == "likelihood")["likelihood"]
    law = table.build("likelihood", configured, LIKELIHOODS, likelihood)
    if why := not_simulated(law):
        raise table.error("likelihood", why)
    sized = isinstance(likelihood, dict) and "levels" in likelihood
    discrete = law.support is not None and not sized
    skipped = {"noise"} if discrete else {"noise", "n_classes"}
    options = table.read(key for key in TRUTH if key.name not in skipped)
    table.build("gate", configured, GATES, options["gate"])
    table.build("expert", configured, EXPERTS, options["expert"])
    bounds = table.numbers("bounds", options.pop("bounds"))
    model = table.build("bounds", lambda: family(likelihood, **options, bounds=bounds))
    # What options say need not be given.
    said = law.set_by_options.intersection(model.blocks)
    known = {b: float(model.box[b][0]) for b in said if b not in table}
    blocks = known | {b: table.numbers(b) for b in model.blocks if b not in known}
    noise = table.number("noise") if model.is_regression else None
    table.finish()
    one_per_expert = next(key for key, at in model.blocks.items() if at.ndim == 1)
    per_expert = blocks[one_per_expert]
    if not isinstance(per_expert, list) or not per_expert:
        raise table.error(
            one_per_expert, f"must list one number per expert, got {short_text(per_expert)}"
        )
    model = model.with_experts(len(per_expert))
    theta = table.build("", model.pack, blocks)
    _check_active(table, "gate", model)
    if noise is not None and noise < 0:
        raise table.error("noise", f"must be >= 0, got {noise:g}")
    pinned = model.pin(theta)
    outside = np.flatnonzero((pinned < model.lower) | (pinned > model.upper))
    if outside.size:
        at = int(outside[0])
        raise table.error(
            "bounds",
            f"{model.param_names[at]} = {pinned[at]:g} (last expert's translations pinned to 0)"
            f" lies outside [{model.lower[at]:g}, {model.upper[at]:g}]",
        )
    pairs = {key: (float(low), float(high)) for key, (low, high) in bounds.items()}
    return Truth(name, model, theta, pairs, noise)


def _check_active(table: Table, key: str, model: Family) -> None:
    """A sparse gate has as many experts as it keeps, or more."""
    active = model.gate.n_active
    if active is not None and active > model.n_experts:
        raise table.error(key, f"keeps {active} active of {model.n_experts} experts")


def _curve(
    position: int, values: object, truths: Mapping[str, Truth], estimate: str | None
) -> Curve:
    table = Table(values, f"curve {position}")
    name = table.text("name")
    table.label = f"curve {name!r}"
    truth = table.text("truth")
    if truth not in truths:
        raise table.error("truth", unknown("truth", truth, truths))
    true_family = truths[truth].family
    try:
        loss = table.take("loss")
    except SweepError as error:
        raise SweepError(f"{error}; {_losses_that_fit(true_family)}") from None
    n = read_sizes(table) if "n" in table else table.take("n", None)
    values_of_keys = {"name": name, "truth": truth, "loss": loss, "n": n, **table.read(CURVE)}
    table.finish()
    if not isinstance(values_of_keys["also"], list):
        raise table.error(
            "also", f"must be a list of losses, got {short_text(values_of_keys['also'])}"
        )
    if values_of_keys["solver"] is None:
        values_of_keys["solver"] = _SQUARES_SOLVER if true_family.is_regression else _SOLVER
    own = _estimate(table, values_of_keys.pop("estimate"))
    if own is not None and values_of_keys["starts"] is not None:
        raise table.error("estimate", "is not used where starts are given: leave out one of them")
    if values_of_keys["starts"] is None:
        # A replay of a published procedure, whose fits need no certificate, seeks no maximum.
        replay = not values_of_keys["require_certificate"] and own is None
        over = values_of_keys["n_experts"] > true_family.n_experts and not replay
        values_of_keys["starts"] = _STARTS[own or estimate or "maximum"] if over else NEAR_TRUTH
    values_of_keys["alternatives"] = _alternatives(table, values_of_keys)
    return Curve(**{**values_of_keys, "also": tuple(values_of_keys["also"])})


def _estimate(table: Table, given: str | None) -> str | None:
    """Which maximum over-specified fits look for."""
    return given if given is None else table.build("estimate", one_of, "estimate", given, _STARTS)


def _alternatives(table: Table, values: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Slopes that the predicted one is told from."""
    given = values["alternatives"]
    if given is None:
        return None
    numbers = isinstance(given, list) and all(
        isinstance(each, (int, float)) and not isinstance(each, bool) and -np.inf < each <= 0
        for each in given
    )
    if not numbers or not given:
        raise table.error("alternatives", f"must be a list of slopes <= 0, got {short_text(given)}")
    if values["theory"] is None:
        raise table.error("alternatives", "needs theory, too")
    return tuple(map(float, given))


def _losses_that_fit(fitted: Family) -> str:
    """The end of an error message about a loss: the losses that fit the family."""
    names = ", ".join(repr(loss_label(loss)) for loss in suitable_losses(fitted)) or "none"
    return f"losses that fit gate {fitted.gate.name!r} with this likelihood: {names}"


def _check_curve(spec: Spec, curve: Curve) -> None:
    """Everything about a curve that needs the rest of the spec."""
    table = Table({}, f"curve {curve.name!r}")
    if curve.target is not None and curve.target not in spec.truths:
        raise table.error("target", unknown("truth", curve.target, spec.truths))
    if curve.gate is not None:
        table.build("gate", configured, GATES, curve.gate)
    fitted = table.build("gate", spec.fitted_family, curve)
    measure = table.build("gate", spec.target, curve)
    least = max(spec.truths[curve.truth].family.n_experts, spec.scored(curve).family.n_experts)
    if curve.n_experts < least and curve.target is None:
        raise table.error(
            "n_experts",
            f"must be at least the {least} of the truth, got {curve.n_experts}: with fewer experts"
            " the model is wrong; then name its best approximation as target",
        )
    _check_active(table, "gate", fitted)
    if curve.theory is not None and curve.theory > 0:
        raise table.error("theory", f"must be <= 0: losses fall with n; got {curve.theory:g}")
    for key, given in (("loss", curve.loss), *(("also", given) for given in curve.also)):
        if key == "also" and given == REGRESSION_ERROR:
            if not fitted.is_regression:
                raise table.error("also", f"{given!r} is for regression functions")
            continue
        try:
            loss = table.build(key, make_loss, given)
            table.build(key, loss.check_gate, fitted.gate)
            table.build(key, voronoi_terms, measure, measure, loss)
        except SweepError as error:
            raise SweepError(f"{error}; {_losses_that_fit(fitted)}") from None
        if key == "loss" and loss.represent is not None:
            raise table.error("loss", f"{loss.name!r} has no cells of its own: list it under also")
    labels = [loss_label(given) for given in (curve.loss, *curve.also)]
    for i, label in enumerate(labels):
        if label in labels[:i]:
            raise table.error("also", f"loss {label!r} is there already")
    solver = table.build("solver", make_solver, dict(curve.solver))
    if solver.needs.regression != fitted.is_regression:
        raise table.error(
            "solver", f"{solver.name!r} does not fit likelihood {fitted.likelihood.name!r}"
        )
    table.numbers("starts", curve.starts)
    table.build("starts", spec.start_rules, curve)
    table.build("design", check_size, spec.design, spec.sizes_of(curve)[-1], fitted)
    n_free, least_n = fitted.n_free_params, spec.sizes_of(curve)[0]
    if least_n < n_free:
        raise SweepError(
            f"n: {least_n} samples cannot determine the {n_free} free parameters of curve"
            f" {curve.name!r}"
        )
