"""Specs: an experiment as one readable TOML file, checked in full before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.registry import configured, table_of
from moestat.base.types import FloatArray
from moestat.estimation.starts import StartRule, make_starts
from moestat.metrics.distances import DISTANCES
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.metrics.suitable import suitable_losses
from moestat.model.designs import Design, Lattice, make_design
from moestat.model.experts import EXPERTS
from moestat.model.family import Family, family
from moestat.model.gates import GATES
from moestat.model.generate import check_size
from moestat.model.lattice import check_step
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.measure import MixingMeasure
from moestat.solvers import make_solver
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.keys import CURVE, TOP, TRUTH
from moestat.sweep.spec.identity import canonical_json, digest, digests, seeds
from moestat.sweep.spec.keys import HEAD
from moestat.sweep.spec.limits import check_cells, check_memory, memory_of
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.spec.sizes import read_sizes
from moestat.sweep.spec.tables import Table, shown

__all__ = [
    "REGRESSION_ERROR",
    "Curve",
    "Spec",
    "Truth",
    "as_fits",
    "loss_label",
    "read_truth",
]

_SOLVER = {"name": "newton"}
_SQUARES_SOLVER = {"name": "gauss-newton-bfgs"}
_STARTS = {"truth": 3, "noise": 0.1}
REGRESSION_ERROR = "regression-error"
"""Entry of a curve's further losses: the L2 distance of the regression functions."""

_COUNTS = "; a lattice design takes counts in place of rows"
_WORDS = ("theory", "published", "panel", "note")


@dataclass(frozen=True)
class Truth:
    """A named truth: the family and the parameters that the data are drawn from.

    Parameters
    ----------
    name : str
        Name in the spec.
    family : Family
        Family with k* experts.
    theta : ndarray of shape (P,)
        Packed parameters.
    bounds : mapping of str to (float, float)
        Bounds that replace the family's own; they concern fits, not data.
    noise : float or None
        Variance of the errors around a regression function; None for a density.
    """

    name: str
    family: Family = field(repr=False)
    theta: FloatArray = field(repr=False, compare=False)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    noise: float | None = None

    @cached_property
    def law(self) -> dict[str, Any]:
        """Plain data that determine the law of Y given X: axes, sizes and parameters."""
        blocks = self.family.unpack(self.theta)
        return {
            "likelihood": self.family.likelihood.name,
            "gate": table_of(self.family.gate),
            "expert": table_of(self.family.expert),
            "n_features": self.family.n_features,
            "n_classes": self.family.n_classes,
            **({} if self.noise is None else {"noise": self.noise}),
            **{name: block.tolist() for name, block in blocks.items()},
        }


@dataclass(frozen=True)
class Curve:
    """One curve of a figure: a family fitted to data of a truth, and the loss it is scored by.

    Parameters
    ----------
    name : str
        Unique name; the label in tables and figures.
    truth : str
        Name of the truth; its family is fitted, with `n_experts` experts.
    n_experts : int
        Number of fitted experts k.
    gate : str, mapping or None
        Gate of the fitted family; None for the truth's.
    loss : str or mapping
        Voronoi loss, as `moestat.metrics.losses.make_loss` takes it.
    solver, starts : mapping
        Tables of `moestat.solvers.make_solver` and `moestat.estimation.starts.make_starts`.
    require_certificate : bool
        Whether only certified fits enter the rate.  False replays a published procedure.
    theory : float or None
        Slope that the literature states.
    panel : str
        Curves of one panel share the axes of a figure.
    published : float or None
        Slope that a paper reports; shown beside the measured one, never used.
    also : tuple of str or mapping
        Further losses of the same fits, each as `loss`, or ``"regression-error"``.
    note : str
        What a reader should know about the curve; reports show it.
    target : str or None
        Name of the truth that losses compare with, where it is not the one of the data: a best
        approximation by the fitted family.
    n : tuple of int or None
        Sample sizes of this curve, increasing; None for those of the spec.
    """

    name: str
    truth: str
    n_experts: int
    loss: Any
    solver: Mapping[str, Any]
    starts: Mapping[str, Any]
    require_certificate: bool = True
    theory: float | None = None
    panel: str = ""
    published: float | None = None
    also: tuple[Any, ...] = ()
    note: str = ""
    gate: Any = None
    target: str | None = None
    n: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Spec:
    """A sweep: truths, curves, sample sizes and replicates.  Make one with `load_spec`.

    Parameters
    ----------
    title : str
        What the experiment shows.
    seed : int
        Seed of the whole sweep.
    replicates : int
        Data sets per curve and sample size.
    sizes : tuple of int
        Sample sizes n of all curves that have none of their own, increasing.
    design : Design
        Law of the inputs.
    truths : mapping of str to Truth
        Truths by name.
    curves : tuple of Curve
        Curves in the order of the file.
    text : str
        The TOML text it was read from.
    target_slope_halfwidth : float or None
        Replicates are added to a curve until the 95% interval of its slope reaches no further
        than this to either side; None for a fixed number of replicates.
    max_replicates : int or None
        Where adding ends in any case; given together with the target.
    distances : tuple of str or None
        Distances of densities that are computed, names in `moestat.metrics.distances.DISTANCES`;
        None for all.
    kind : str
        What a cell is, a name in `moestat.sweep.kinds.kind.KINDS`.
    axis : str
        Name of the x-axis.
    """

    title: str
    seed: int
    replicates: int
    sizes: tuple[int, ...]
    design: Design
    truths: Mapping[str, Truth] = field(repr=False)
    curves: tuple[Curve, ...]
    text: str = field(repr=False, compare=False)
    target_slope_halfwidth: float | None = None
    max_replicates: int | None = None
    distances: tuple[str, ...] | None = None
    kind: str = "fit"
    axis: str = "n"

    def memory(self, curve: Curve) -> float | None:
        """Bytes of the largest sample of `curve` while it is fitted; None for counts."""
        if self.design.counted:
            return None
        return memory_of(self.sizes_of(curve)[-1], self.truths[curve.truth].family.n_features)

    def scale(self, n: float) -> float:
        """What the time of a fit is linear in.

        Passes over rows grow with n; over the cells of a lattice, with the steps of a harder fit.
        """
        return math.log(n) if self.design.counted else n

    def check_machine(self) -> None:
        """Refuse what this machine cannot run; stores made elsewhere stay readable.

        Raises
        ------
        SweepError
            If a sample exceeds the memory, or a lattice of responses cannot hold it.
        """
        for curve in self.curves:
            truth, where = self.truths[curve.truth], f"curve {curve.name!r}"
            if not isinstance(self.design, Lattice):
                rows = f"{where}: n: {self.sizes_of(curve)[-1]} rows"
                check_memory(self.memory(curve), rows, _COUNTS)
                continue
            fitted, table = self.fitted_family(curve), Table({}, where)
            _build(table, "design", check_step, self.design, truth.family, truth.theta, fitted)

    @property
    def n_cells(self) -> int:
        """Number of cells: curves times sizes times replicates, before any are added."""
        return sum(len(self.sizes_of(curve)) for curve in self.curves) * self.replicates

    def sizes_of(self, curve: Curve) -> tuple[int, ...]:
        """Sample sizes of a curve, increasing."""
        return curve.n or self.sizes

    @property
    def most_replicates(self) -> int:
        """Replicates that a curve may come to have."""
        return self.max_replicates or self.replicates

    @cached_property
    def design_table(self) -> dict[str, Any]:
        """Plain data of the design, defaults filled in."""
        return {
            "law" if key == "name" else key: float(value) if isinstance(value, int) else value
            for key, value in vars(self.design).items()
        }

    @property
    def canonical(self) -> str:
        """What the cells depend on, as canonical JSON with defaults filled in.

        Comments, layout and words that only tables and figures show (titles, panels, notes,
        published and predicted slopes) are not in it: they may change when a sweep has begun.
        """
        return canonical_json(
            {
                "seed": self.seed,
                "replicates": self.replicates,
                "n": list(self.sizes),
                "design": self.design_table,
                "truth": {name: _truth_table(truth) for name, truth in self.truths.items()},
                "curve": [_curve_table(curve) for curve in self.curves],
                **self._adaptive_table,
                **self._distances_table,
            },
            indent=1,
        )

    @property
    def _adaptive_table(self) -> dict[str, Any]:
        """Nothing for a fixed number of replicates: older stores know no such keys."""
        if self.target_slope_halfwidth is None:
            return {}
        return {
            "target_slope_halfwidth": self.target_slope_halfwidth,
            "max_replicates": self.max_replicates,
        }

    @property
    def _distances_table(self) -> dict[str, Any]:
        """Nothing for all distances: older stores know no such key."""
        return {} if self.distances is None else {"distances": list(self.distances)}

    def curve_identity(self, curve: Curve) -> dict[str, Any]:
        """Plain data that the cells of `curve` depend on, apart from seed, n and replicate.

        The names of the curve and of its truth are not in it.
        """
        table = _curve_table(curve)
        return {
            "design": self.design_table,
            "truth": _truth_table(self.truths[table.pop("truth")]),
            "curve": {key: item for key, item in table.items() if key not in ("name", "n")},
            **self._distances_table,
        }

    def stamp(self, curve: Curve) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(n, replicate)``: data seed, fit seed and identity of a cell of `curve`."""
        law, starts = digest(self.truths[curve.truth].law), dict(curve.starts)
        data = seeds("data", self.seed, law, self.design_table)
        fit = seeds("fit", self.seed, law, curve.n_experts, starts)
        identity = digests(digest([self.seed, self.curve_identity(curve)]))

        def stamp(n: float, replicate: int) -> tuple[int, int, str]:
            return data(n, replicate), fit(n, replicate), identity(n, replicate)

        return stamp

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`: equal for specs that ask for the same cells."""
        return digest(self.canonical)

    def curve(self, name: str) -> Curve:
        """The curve called `name`."""
        return next(curve for curve in self.curves if curve.name == name)

    def fitted_family(self, curve: Curve) -> Family:
        """The family that `curve` fits."""
        truth = self.truths[curve.truth]
        if curve.gate is None:
            return truth.family.with_experts(curve.n_experts)
        own = truth.family
        fitted = family(
            own.likelihood.name,
            gate=curve.gate,
            expert=table_of(own.expert),
            n_experts=curve.n_experts,
            n_features=own.n_features,
            n_classes=own.n_classes if own.likelihood.support is not None else None,
        )
        # The same expert, whose blocks may have other names beside another gate.
        box = {
            name: own.box[known]
            for name, known in zip(fitted.expert.bounds, own.expert.bounds, strict=True)
        }
        box |= {name: own.box[name] for name in own.likelihood.bounds}
        return replace(fitted, box={**fitted.box, **box})

    def scored(self, curve: Curve) -> Truth:
        """What the losses of `curve` compare with."""
        return self.truths[curve.target or curve.truth]

    def target(self, curve: Curve) -> MixingMeasure:
        """The true mixing measure, with masses as the gate of `curve` has them."""
        truth = self.scored(curve)
        fitted = self.fitted_family(curve).with_experts(truth.family.n_experts)
        return fitted.measure(fitted.embed(truth.family, truth.theta))

    def start_rules(self, curve: Curve) -> Sequence[StartRule]:
        """The start rules of `curve`."""
        truth = self.truths[curve.truth]
        fitted = self.fitted_family(curve)
        return make_starts(dict(curve.starts), truth.family, truth.theta, fitted)


def as_fits(spec: AnySpec, what: str = "spec") -> Spec:
    """A spec of fits as what it is.

    Raises
    ------
    SweepError
        If it is of another kind: `what` is for fits.
    """
    if not isinstance(spec, Spec):
        raise SweepError(f"{what}: for sweeps of fits, got one of kind {spec.kind!r}")
    return spec


def loss_label(loss: Any) -> str:
    """Name of a loss in tables, with its options.

    Parameters
    ----------
    loss : str or mapping
        A loss as a spec gives it.

    Returns
    -------
    str
        The label.

    Examples
    --------
    >>> loss_label("D1"), loss_label({"name": "softmax-D2r", "r": 2})
    ('D1', 'softmax-D2r, r = 2')
    """
    if not isinstance(loss, Mapping):
        return str(loss)
    options = [
        f", {key} = {value:g}" if isinstance(value, (int, float)) else f", {key} = {value}"
        for key, value in loss.items()
        if key != "name"
    ]
    return str(loss["name"]) + "".join(options)


def parse_fits(top: Table, text: str) -> Spec:
    """Check a spec whose cells are fits.

    Parameters
    ----------
    top : Table
        The spec's top level, without ``kind``.
    text : str
        The TOML text that it was read from.

    Returns
    -------
    Spec
        The checked spec.

    Raises
    ------
    SweepError
        If anything is wrong.
    """
    head = top.read(HEAD)
    sizes = read_sizes(top)
    given = {key: _non_empty(top, key, kind) for key, kind in _TABLES.items()}
    found = {**head, **top.read(TOP)}
    top.finish()
    target, most = _adaptive(top, found)
    design = _build(top, "design", make_design, found["design"])
    truths = {name: read_truth(name, values) for name, values in given["truth"].items()}
    curves = tuple(
        _curve(position, values, truths) for position, values in enumerate(given["curve"], 1)
    )
    for i, curve in enumerate(curves):
        if any(curve.name == other.name for other in curves[:i]):
            raise SweepError(f"curve {curve.name!r}: name is taken by an earlier curve")
    title, seed, replicates = (head[key.name] for key in HEAD)
    spec = Spec(
        title,
        seed,
        replicates,
        sizes,
        design,
        truths,
        curves,
        text,
        target,
        most,
        _distances(top, found),
    )
    check_cells(sum(len(spec.sizes_of(curve)) for curve in curves) * spec.most_replicates)
    for curve in curves:
        _check_curve(spec, curve)
    return spec


def _adaptive(top: Table, found: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """Half-width that the slopes' intervals should have, and the most replicates for it."""
    target, most = found["target_slope_halfwidth"], found["max_replicates"]
    if target is None:
        if most is not None:
            raise top.error("max_replicates", "needs target_slope_halfwidth, too")
        return None, None
    if target <= 0:
        raise top.error("target_slope_halfwidth", f"must be > 0, got {target:g}")
    replicates = found["replicates"]
    if replicates < 2:
        raise top.error("target_slope_halfwidth", "needs replicates >= 2 to judge an interval by")
    if most is None:
        raise top.error("max_replicates", "is missing")
    if most < replicates:
        raise top.error("max_replicates", f"must be an integer >= {replicates}, got {most}")
    return target, most


def _distances(top: Table, found: Mapping[str, Any]) -> tuple[str, ...] | None:
    given = found["distances"]
    if given is None:
        return None
    if not isinstance(given, list) or any(
        given.count(name) > (name in DISTANCES) for name in given
    ):
        known = ", ".join(map(repr, DISTANCES))
        raise top.error("distances", f"must be a list of some of {known}, got {shown(given)}")
    return tuple(given)


_TABLES = {"truth": Mapping, "curve": list}


def _non_empty(top: Table, key: str, kind: type) -> Any:
    value = top.take(key)
    if not isinstance(value, kind) or not value:
        shape = "tables [truth.NAME]" if key == "truth" else "tables [[curve]]"
        raise top.error(key, f"must be one or more {shape}, got {shown(value)}")
    return value


def _build(table: Table, key: str, make: Any, *given: Any) -> Any:
    """``make(*given)``, its complaint put under `key`."""
    try:
        return make(*given)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise table.error(key, message.removeprefix(key).lstrip(": ")) from None


def read_truth(name: str, values: Any) -> Truth:
    """A truth from its table in a spec; what is wrong with it raises a `SweepError`."""
    table = Table(values, f"truth {name!r}")
    likelihood = table.text("likelihood", "multinomial")
    discrete = _build(table, "likelihood", LIKELIHOODS.__getitem__, likelihood).support is not None
    skipped = {"noise"} if discrete else {"noise", "n_classes"}
    options = table.read(key for key in TRUTH if key.name not in skipped)
    _build(table, "gate", configured, GATES, options["gate"])
    _build(table, "expert", configured, EXPERTS, options["expert"])
    bounds = options.pop("bounds")
    model = _build(table, "bounds", lambda: family(likelihood, **options, bounds=bounds))
    blocks = {block: table.take(block) for block in model.blocks}
    noise = table.number("noise") if model.is_regression else None
    table.finish()
    one_per_expert = next(key for key, at in model.blocks.items() if at.ndim == 1)
    per_expert = blocks[one_per_expert]
    if not isinstance(per_expert, list) or not per_expert:
        raise table.error(
            one_per_expert, f"must list one number per expert, got {shown(per_expert)}"
        )
    model = model.with_experts(len(per_expert))
    theta = _build(table, "", model.pack, blocks)
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


def _curve(position: int, values: Any, truths: Mapping[str, Truth]) -> Curve:
    table = Table(values, f"curve {position}")
    name = table.text("name")
    table.where = f"curve {name!r}"
    truth = table.text("truth")
    if truth not in truths:
        known = ", ".join(map(repr, truths))
        raise table.error("truth", f"unknown truth {truth!r}; known: {known}")
    own = truths[truth].family
    try:
        loss = table.take("loss")
    except SweepError as error:
        raise SweepError(f"{error}; {_losses_that_fit(own)}") from None
    n = read_sizes(table) if "n" in table else table.take("n", None)
    found = {"name": name, "truth": truth, "loss": loss, "n": n, **table.read(CURVE)}
    table.finish()
    if not isinstance(found["also"], list):
        raise table.error("also", f"must be a list of losses, got {shown(found['also'])}")
    if found["solver"] is None:
        found["solver"] = _SQUARES_SOLVER if own.is_regression else _SOLVER
    found["starts"] = _STARTS if found["starts"] is None else found["starts"]
    return Curve(**{**found, "also": tuple(found["also"])})


def _losses_that_fit(fitted: Family) -> str:
    """What an error about a loss ends with."""
    names = ", ".join(repr(loss_label(loss)) for loss in suitable_losses(fitted)) or "none"
    return f"losses that fit gate {fitted.gate.name!r} with this likelihood: {names}"


def _check_curve(spec: Spec, curve: Curve) -> None:
    """Everything about a curve that needs the rest of the spec."""
    table = Table({}, f"curve {curve.name!r}")
    if curve.target is not None and curve.target not in spec.truths:
        known = ", ".join(map(repr, spec.truths))
        raise table.error("target", f"unknown truth {curve.target!r}; known: {known}")
    if curve.gate is not None:
        _build(table, "gate", configured, GATES, curve.gate)
    fitted = _build(table, "gate", spec.fitted_family, curve)
    measure = _build(table, "gate", spec.target, curve)
    least = max(spec.truths[curve.truth].family.n_experts, spec.scored(curve).family.n_experts)
    if curve.n_experts < least and curve.target is None:
        raise table.error(
            "n_experts",
            f"must be at least the {least} of the truth, got {curve.n_experts}: with fewer the"
            " model is wrong, and name its best approximation as target",
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
            loss = _build(table, key, make_loss, given)
            _build(table, key, loss.check_gate, fitted.gate)
            _build(table, key, voronoi_terms, measure, measure, loss)
        except SweepError as error:
            raise SweepError(f"{error}; {_losses_that_fit(fitted)}") from None
        if key == "loss" and loss.represent is not None:
            raise table.error("loss", f"{loss.name!r} has no cells of its own: list it under also")
    labels = [loss_label(given) for given in (curve.loss, *curve.also)]
    for i, label in enumerate(labels):
        if label in labels[:i]:
            raise table.error("also", f"loss {label!r} is there already")
    solver = _build(table, "solver", make_solver, dict(curve.solver))
    if solver.needs.regression != fitted.is_regression:
        raise table.error(
            "solver", f"{solver.name!r} does not fit likelihood {fitted.likelihood.name!r}"
        )
    _build(table, "starts", spec.start_rules, curve)
    _build(table, "design", check_size, spec.design, spec.sizes_of(curve)[-1], fitted)
    n_free, least_n = fitted.n_free_params, spec.sizes_of(curve)[0]
    if least_n < n_free:
        raise SweepError(
            f"n: {least_n} samples cannot determine the {n_free} free parameters of curve"
            f" {curve.name!r}"
        )


def _truth_table(truth: Truth) -> dict[str, Any]:
    """Plain data of a truth: its law, and the bounds of the fits."""
    return {**truth.law, "bounds": {key: list(pair) for key, pair in truth.bounds.items()}}


def _curve_table(curve: Curve) -> dict[str, Any]:
    """Plain data of a curve, without the words that only tables and figures show."""
    table = _plain(asdict(curve))
    return {key: item for key, item in table.items() if key not in _WORDS and item is not None}


def _plain(value: Any) -> Any:
    """Mappings and tuples as dicts and lists, for JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
