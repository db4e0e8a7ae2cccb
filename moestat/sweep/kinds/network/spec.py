"""Specs of networks: fields that all curves share, what each changes, and what the x-axis varies.

A spec of kind ``"network"`` has, besides ``title``, ``seed`` and ``replicates``,

- fields of `FIELDS` at its top level, shared by all curves;
- ``x``, the field on the x-axis, and a table ``[values]`` with a list of its values; further lists
  of the same length give other fields at the same places;
- one table ``[[curve]]`` per curve, with its ``name``, ``panel``, ``note`` and fields of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moestat.base.registry import made
from moestat.base.validate import positive_int
from moestat.networks import OPTIMISERS, Network, PatchLaw
from moestat.networks.optimisers import Optimiser
from moestat.networks.training import PRECISIONS
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.identity import canonical_json, digest, seed_from
from moestat.sweep.spec.tables import Table

__all__ = [
    "FIELDS",
    "NetworkCurve",
    "NetworkSpec",
    "Run",
    "make_run",
    "parse_networks",
    "parse_runs",
]

_LAW = ("n_clusters", "n_features", "n_patches", "alpha", "beta", "gamma", "sigma_p", "scale")
_NETWORK = ("expert", "n_experts", "n_neurons", "activation", "initialisation", "sigma_0")
_TRAINING = ("optimiser", "learning_rate", "router_rate", "n_steps", "precision", "look_every")
FIELDS = ("n", "n_test", *_LAW, *_NETWORK, *_TRAINING)
"""What a run is made of: sizes of its samples, its data, its network and its training."""

_DEFAULTS: dict[str, Any] = {"optimiser": "normalised-gd", "precision": "float32", "look_every": 50}
_REQUIRED = ("n", "n_steps", "n_experts", "sigma_0")


@dataclass(frozen=True)
class Run:
    """What one cell trains.

    Parameters
    ----------
    n, n_test : int
        Examples to train on and to test on.
    law : PatchLaw
        Their law.
    network : Network
        The network.
    optimiser : Optimiser
        The rule of a step.
    n_steps : int
        Steps T.
    precision : str
        Name in `moestat.networks.training.PRECISIONS`.
    look_every : int
        Steps between two points of a curve.
    """

    n: int
    n_test: int
    law: PatchLaw
    network: Network
    optimiser: Optimiser
    n_steps: int
    precision: str
    look_every: int


def make_run(fields: Mapping[str, Any]) -> Run:
    """A run from its fields, defaults filled in.

    Parameters
    ----------
    fields : mapping
        Values by name in `FIELDS`.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    ValueError
        If a field is missing or out of range; the message names it.

    Examples
    --------
    >>> make_run({"n": 100, "n_steps": 5, "n_experts": 4, "sigma_0": 0.01}).n_test
    100
    """
    for name in _REQUIRED:
        if name not in fields:
            raise ValueError(f"{name} is missing")
    given = {**_DEFAULTS, "n_test": fields["n"], **fields}
    sizes = {name: positive_int(name, given[name]) for name in ("n", "n_test", "n_steps")}
    rates = {name: given[name] for name in ("learning_rate", "router_rate") if name in given}
    if given["precision"] not in PRECISIONS:
        known = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"precision must be one of {known}, got {given['precision']!r}")
    return Run(
        **sizes,
        law=PatchLaw(**{name: given[name] for name in _LAW if name in given}),
        network=Network(**{name: given[name] for name in _NETWORK if name in given}),
        optimiser=made(OPTIMISERS, given["optimiser"], rates),
        precision=given["precision"],
        look_every=positive_int("look_every", given["look_every"]),
    )


@dataclass(frozen=True)
class NetworkCurve:
    """One curve of a figure: fields of its own.

    Parameters
    ----------
    name : str
        Unique name; the label in tables and figures.
    fields : mapping
        All fields but those that `NetworkSpec.values` gives.
    panel : str
        Curves of one panel share the axes of a figure.
    note : str
        What a reader should know about the curve; reports show it.
    """

    name: str
    fields: Mapping[str, Any]
    panel: str = ""
    note: str = ""


@dataclass(frozen=True)
class NetworkSpec:
    """A sweep of networks.

    Parameters
    ----------
    title : str
        What the experiment shows.
    seed : int
        Seed of the whole sweep.
    replicates : int
        Runs per curve and place on the x-axis.
    axis : str
        The field on the x-axis.
    values : mapping of str to tuple
        Values of that field, increasing, and of the fields that go with it.
    curves : tuple of NetworkCurve
        Curves in the order of the file.
    text : str
        The TOML text it was read from.
    """

    title: str
    seed: int
    replicates: int
    axis: str
    values: Mapping[str, tuple[Any, ...]]
    curves: tuple[NetworkCurve, ...]
    text: str = field(repr=False, compare=False)
    kind: str = "network"
    target_slope_halfwidth: None = None

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The places on the x-axis."""
        return self.values[self.axis]

    def sizes_of(self, curve: NetworkCurve) -> tuple[Any, ...]:
        """The places of a curve: the same for all."""
        return self.sizes

    def check_machine(self) -> None:
        """Nothing here depends on the machine."""

    @property
    def n_cells(self) -> int:
        """Number of cells: curves times places times replicates."""
        return len(self.curves) * len(self.sizes) * self.replicates

    @property
    def most_replicates(self) -> int:
        """Replicates that a curve may come to have."""
        return self.replicates

    def curve(self, name: str) -> NetworkCurve:
        """The curve called `name`."""
        return next(curve for curve in self.curves if curve.name == name)

    def fields(self, curve: NetworkCurve, x: float) -> dict[str, Any]:
        """The fields of the runs of a curve at one place."""
        at = self.sizes.index(x)
        return {**curve.fields, **{name: values[at] for name, values in self.values.items()}}

    def run(self, curve: NetworkCurve, x: float) -> Run:
        """The runs of a curve at one place."""
        return make_run(self.fields(curve, x))

    @cached_property
    def canonical(self) -> str:
        """What the cells depend on, as canonical JSON; words that only figures show are not in it.

        A field of a curve that the x-axis gives is not in it either.
        """
        return canonical_json(
            {
                "kind": self.kind,
                "seed": self.seed,
                "replicates": self.replicates,
                "x": self.axis,
                "values": {name: list(values) for name, values in self.values.items()},
                "curve": [{"name": curve.name, **curve.fields} for curve in self.curves],
            },
            indent=1,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `canonical`: equal for specs that ask for the same cells."""
        return digest(self.canonical)

    def stamp(self, curve: NetworkCurve) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, seed of a run and identity of a cell of `curve`.

        Runs on the same law and sizes of samples share their data seed, whatever they train on
        them, and all runs of one replicate the seed of weights and noise.
        """
        runs = {x: self.run(curve, x) for x in self.sizes}

        def stamp(x: float, replicate: int) -> tuple[int, int, str]:
            run = runs[x]
            data = {**vars(run.law), "n": run.n, "n_test": run.n_test}
            trained = {
                **{name: vars(run.network)[name] for name in _NETWORK},
                **{"optimiser": type(run.optimiser).__name__, **vars(run.optimiser)},
                **{"n_steps": run.n_steps, "precision": run.precision},
                **{"look_every": run.look_every},
            }
            return (
                seed_from("data", self.seed, data, replicate),
                seed_from("fit", self.seed, replicate),
                digest([self.seed, data, trained, replicate]),
            )

        return stamp


def parse_networks(top: Table, text: str) -> NetworkSpec:
    """Check a spec whose cells are networks.

    Parameters
    ----------
    top : Table
        The spec's top level, without ``kind``.
    text : str
        The TOML text that it was read from.

    Returns
    -------
    NetworkSpec
        The checked spec.

    Raises
    ------
    SweepError
        If anything is wrong.
    """
    return parse_runs(top, text, FIELDS, NetworkSpec)


def parse_runs(
    top: Table, text: str, names: Sequence[str], build: Callable[..., NetworkSpec]
) -> NetworkSpec:
    """Check a spec whose cells are runs with fields of their own, called `names`.

    `build` is the class of the spec; arguments and errors are else those of `parse_networks`.
    """
    title = top.text("title")
    seed = top.integer("seed", 0)
    replicates = top.integer("replicates", 1)
    axis = top.text("x")
    if axis not in names:
        raise top.error("x", f"must be one of {', '.join(names)}, got {axis!r}")
    values = _values(Table(top.table("values"), "values"), axis, names)
    shared = _fields(top, values, names)
    given = top.take("curve")
    if not isinstance(given, list) or not given:
        raise top.error("curve", f"must be one or more tables [[curve]], got {given!r}")
    curves = tuple(_curve(i, each, shared, values, names) for i, each in enumerate(given, 1))
    top.finish()
    for i, curve in enumerate(curves):
        if any(curve.name == other.name for other in curves[:i]):
            raise SweepError(f"curve {curve.name!r}: name is taken by an earlier curve")
    spec = build(title, seed, replicates, axis, values, curves, text)
    for curve in curves:
        for x in spec.sizes:
            _check(spec, curve, x)
    return spec


def _values(table: Table, axis: str, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The values of the x-axis and of the fields that go with it."""
    found: dict[str, tuple[Any, ...]] = {}
    for name in (axis, *(name for name in names if name != axis)):
        if name != axis and name not in table:
            table.take(name, None)
            continue
        value = table.take(name)
        if not isinstance(value, list) or not value:
            raise table.error(name, f"must be a list of values, got {value!r}")
        found[name] = tuple(map(_whole, value))
    table.finish()
    places = found[axis]
    for x in places:
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 < x < float("inf"):
            raise table.error(axis, f"must hold numbers > 0, got {x!r}")
    if sorted(set(places)) != list(places):
        raise table.error(axis, f"must hold increasing values, got {list(places)!r}")
    for name, values in found.items():
        if len(values) != len(places):
            message = f"must hold as many values as {axis}, {len(places)}, got {len(values)}"
            raise table.error(name, message)
    return found


def _whole(value: Any) -> Any:
    """A whole number as an int: stores know no 10.0 beside 10."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fields(table: Table, values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields that a table gives."""
    found = {}
    for name in names:
        given = name in table
        value = table.take(name, None)
        if given and name in values:
            raise table.error(name, "is given by [values], too")
        if given:
            found[name] = _whole(value)
    return found


def _curve(
    position: int,
    given: Any,
    shared: Mapping[str, Any],
    values: Mapping[str, Any],
    names: Sequence[str],
) -> NetworkCurve:
    table = Table(given, f"curve {position}")
    name = table.text("name")
    table.where = f"curve {name!r}"
    panel, note = table.text("panel", ""), table.text("note", "")
    own = _fields(table, values, names)
    table.finish()
    return NetworkCurve(name, {**shared, **own}, panel, note)


def _check(spec: NetworkSpec, curve: NetworkCurve, x: float) -> None:
    """Refuse fields that make no run; the message names the curve and the field."""
    try:
        spec.run(curve, x)
    except (ValueError, TypeError) as error:
        raise SweepError(f"curve {curve.name!r}, {spec.axis} = {x}: {error}") from None
