"""Specs of fits: truths, curves, and what a cell depends on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from moestat.base.registry import table_of
from moestat.base.types import FloatArray
from moestat.estimation.search.maximum import make_sweep_starts
from moestat.estimation.starts import StartRule
from moestat.model.axes import family
from moestat.model.designs import Design, Lattice
from moestat.model.family import Family
from moestat.model.joint import shortest_table
from moestat.model.lattice import check_step
from moestat.model.measure import MixingMeasure
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.identity import canonical_json, digest, digests, seeds
from moestat.sweep.spec.limits import check_memory, memory_of
from moestat.sweep.spec.protocol import AnySpec, SweepSpec
from moestat.sweep.spec.tables import Table

REGRESSION_ERROR = "regression-error"
"""Entry of a curve's further losses: the L2 distance of the regression functions."""

_COUNTS = "; a lattice design takes counts in place of rows"
_WORDS = ("theory", "alternatives", "published", "panel", "note")


@dataclass(frozen=True)
class Truth:
    """A named truth: the family and the parameters that the data are drawn from."""

    name: str  # name in the spec
    family: Family = field(repr=False)  # family with k* experts
    theta: FloatArray = field(repr=False, compare=False)  # (P,): packed parameters
    # Bounds that replace the family's own; they concern fits, not data.
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    # Variance of the errors around a regression function; None for a density.
    noise: float | None = None

    @cached_property
    def law(self) -> dict[str, object]:
        """Plain data that determine the law of Y given X: axes, sizes and parameters."""
        blocks = self.family.unpack(self.theta)
        return {
            "likelihood": shortest_table(self.family.likelihood, self.family.n_classes),
            "gate": table_of(self.family.gate),
            "expert": table_of(self.family.expert),
            "n_features": self.family.n_features,
            "n_classes": self.family.n_classes,
            **({} if self.noise is None else {"noise": self.noise}),
            **{name: block.tolist() for name, block in blocks.items()},
        }


@dataclass(frozen=True)
class Curve:
    """One curve of a figure: a family fitted to data of a truth, and the loss it is scored by."""

    name: str  # unique name; the label in tables and figures
    truth: str  # name of the truth; its family is fitted, with `n_experts` experts
    n_experts: int  # number of fitted experts k
    loss: str | Mapping[str, object]  # Voronoi loss, as `moestat.metrics.losses.make_loss` takes it
    # Tables of `moestat.solvers.make_solver` and `moestat.estimation.starts.make_starts`.
    solver: Mapping[str, object]
    starts: Mapping[str, Any]
    # Whether only certified fits enter the rate.  False replays a published procedure.
    require_certificate: bool = True
    theory: float | None = None  # slope that the literature states
    # Slopes that an interval has to tell it from; None for the exponents of the theorems.
    alternatives: tuple[float, ...] | None = None
    panel: str = ""  # curves of one panel share the axes of a figure
    # Slope that a paper reports; shown beside the measured one, never used.
    published: float | None = None
    # Further losses of the same fits, each as `loss`, or ``"regression-error"``.
    also: tuple[str | Mapping[str, object], ...] = ()
    note: str = ""  # what a reader should know about the curve; reports show it
    gate: str | Mapping[str, object] | None = (
        None  # gate of the fitted family; None for the truth's
    )
    # Name of the truth that losses compare with, where it is not the one of the data: a best
    # approximation by the fitted family.
    target: str | None = None
    # Sample sizes of this curve, increasing; None for those of the spec.
    n: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Spec(SweepSpec[Curve]):
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
        Distribution of the inputs.
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

    kind: str = "fit"
    sizes: tuple[int, ...]
    design: Design
    truths: Mapping[str, Truth] = field(repr=False)
    distances: tuple[str, ...] | None = None

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
        """See `SweepSpec`: a sample has to fit the memory, a lattice of responses to hold it."""
        for curve in self.curves:
            truth, label = self.truths[curve.truth], f"curve {curve.name!r}"
            if not isinstance(self.design, Lattice):
                rows = f"{label}: n: {self.sizes_of(curve)[-1]} rows"
                check_memory(self.memory(curve), rows, _COUNTS)
                continue
            fitted, table = self.fitted_family(curve), Table({}, label)
            table.build("design", check_step, self.design, truth.family, truth.theta, fitted)

    def sizes_of(self, curve: Curve) -> tuple[int, ...]:
        """Sample sizes of a curve, increasing."""
        return curve.n or self.sizes

    @cached_property
    def design_table(self) -> dict[str, object]:
        """Plain data of the design, defaults filled in."""
        return {
            "law" if key == "name" else key: float(value) if isinstance(value, int) else value
            for key, value in vars(self.design).items()
        }

    @property
    def canonical(self) -> str:
        """See `SweepSpec`; defaults are filled in."""
        adaptive = {
            "target_slope_halfwidth": self.target_slope_halfwidth,
            "max_replicates": self.max_replicates,
        }
        return canonical_json(
            {
                "seed": self.seed,
                "replicates": self.replicates,
                "n": list(self.sizes),
                "design": self.design_table,
                "truth": {name: _truth_table(truth) for name, truth in self.truths.items()},
                "curve": [_curve_table(curve) for curve in self.curves],
                # Older stores, with a fixed number of replicates, know no such keys.
                **(adaptive if self.max_replicates else {}),
                **self._distances_table,
            },
            indent=1,
        )

    @property
    def _distances_table(self) -> dict[str, object]:
        """Nothing for all distances: older stores know no such key."""
        return {} if self.distances is None else {"distances": list(self.distances)}

    def curve_identity(self, curve: Curve) -> dict[str, object]:
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

    def fitted_family(self, curve: Curve) -> Family:
        """The family that `curve` fits."""
        truth = self.truths[curve.truth]
        if curve.gate is None:
            return truth.family.with_experts(curve.n_experts)
        true_family = truth.family
        fitted = family(
            true_family.likelihood,
            gate=curve.gate,
            expert=table_of(true_family.expert),
            n_experts=curve.n_experts,
            n_features=true_family.n_features,
            n_classes=true_family.n_classes if true_family.likelihood.support is not None else None,
        )
        # The same expert, whose blocks may have other names beside another gate.
        box = {
            name: true_family.box[known]
            for name, known in zip(fitted.expert.bounds, true_family.expert.bounds, strict=True)
        }
        box |= {name: true_family.box[name] for name in true_family.likelihood.bounds}
        return replace(fitted, box={**fitted.box, **box})

    def scored(self, curve: Curve) -> Truth:
        """The truth that the losses of `curve` compare estimates with."""
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
        return make_sweep_starts(dict(curve.starts), truth.family, truth.theta, fitted)


def as_fits(spec: AnySpec, what: str = "spec") -> Spec:
    """Return a spec of fits with its type; refuse a spec of another kind, as `what` is for fits."""
    if not isinstance(spec, Spec):
        raise SweepError(f"{what}: for sweeps of fits, got one of kind {spec.kind!r}")
    return spec


def doubts(spec: AnySpec) -> list[str]:
    """Sentences about likely mistakes in a spec of any kind; usually none."""
    if not isinstance(spec, Spec):
        return []
    alone = [curve.name for curve in spec.curves if len(spec.sizes_of(curve)) == 1]
    notes = []
    if alone:
        notes.append(
            "a slope needs two or more sample sizes, and a test of straightness three; curves with"
            f" one, which can have no rate: {', '.join(alone)}"
        )
    stopping = [
        curve.name
        for curve in spec.curves
        if curve.solver.get("name") == "em" and curve.require_certificate
    ]
    if not stopping:
        return notes
    return [
        *notes,
        "EM seldom ends at a certified maximum, and uncertified fits are left out of rates; curves"
        f" without require_certificate = false: {', '.join(stopping)}",
    ]


def loss_label(loss: str | Mapping[str, object]) -> str:
    """Name of a loss in tables, with its options, from a loss as a spec gives it.

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


def _truth_table(truth: Truth) -> dict[str, object]:
    """Plain data of a truth: its law, and the bounds of the fits."""
    return {**truth.law, "bounds": {key: list(pair) for key, pair in truth.bounds.items()}}


def _curve_table(curve: Curve) -> dict[str, Any]:
    """Plain data of a curve, without the words that only tables and figures show."""
    table = {key: _plain(item) for key, item in asdict(curve).items() if key not in _WORDS}
    return {key: item for key, item in table.items() if item is not None}


def _plain(value: object) -> object:
    """Mappings and tuples as dicts and lists, for JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
