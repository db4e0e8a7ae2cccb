"""Specs of runs: fields shared by all curves, fields of each curve, and the field on the x-axis.

A spec of a kind without rates has, besides ``title``, ``seed`` and ``replicates``,

- fields of its kind at its top level, shared by all curves;
- ``x``, the field on the x-axis, and a table ``[values]`` with a list of its values; further lists
  of the same length give other fields at the same places;
- one table ``[[curve]]`` per curve, with its ``name``, ``panel``, ``note`` and fields of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from moestat.base.validate import one_of
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.identity import canonical_json
from moestat.sweep.spec.keys import HEAD, Key, Keys
from moestat.sweep.spec.limits import check_cells, check_memory
from moestat.sweep.spec.protocol import SweepSpec
from moestat.sweep.spec.tables import Table, short_text

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class RunCurve:
    """One curve of a figure: fields of its own."""

    name: str  # unique name; the label in tables and figures
    fields: Mapping[str, Any]  # all fields but those that `RunsSpec.values` gives
    panel: str = ""  # curves of one panel share the axes of a figure
    note: str = ""  # what a reader should know about the curve; reports show it


@dataclass(frozen=True, kw_only=True)
class RunsSpec(SweepSpec[RunCurve], Generic[R]):
    """A sweep whose cells are single runs."""

    # Values of the field on the x-axis, increasing, and of the fields that go with it.
    values: Mapping[str, tuple[Any, ...]]

    @abstractmethod
    def build_run(self, fields: Mapping[str, Any]) -> R:
        """The run with these fields; what is wrong with them raises a `ValueError`."""

    @abstractmethod
    def stamp_run(self, run: R, fields: Mapping[str, Any], replicate: int) -> tuple[int, int, str]:
        """Data seed, seed of the run and identity of a cell."""

    @abstractmethod
    def bytes_of(self, run: R) -> float:
        """About how much memory a run takes."""

    @property
    def sizes(self) -> tuple[float, ...]:
        """The places on the x-axis."""
        return self.values[self.axis]

    def sizes_of(self, curve: RunCurve) -> tuple[float, ...]:
        """The places of a curve: the same for all."""
        return self.sizes

    def fields(self, curve: RunCurve, x: float) -> dict[str, Any]:
        """The fields of the runs of a curve at one place."""
        at = self.sizes.index(x)
        return {**curve.fields, **{name: values[at] for name, values in self.values.items()}}

    def run(self, curve: RunCurve, x: float) -> R:
        """The runs of a curve at one place."""
        return self.build_run(self.fields(curve, x))

    def memory(self, curve: RunCurve) -> float:
        """Bytes of the largest run of a curve."""
        return max(self.bytes_of(self.run(curve, x)) for x in self.sizes)

    def scale(self, n: float) -> None:
        """None: runs take too long to time."""

    def check_machine(self) -> None:
        """Refuse what this machine cannot run; stores made elsewhere stay readable."""
        for curve in self.curves:
            check_memory(self.memory(curve), f"curve {curve.name!r}: its runs")

    @property
    def canonical(self) -> str:
        """See `SweepSpec`; a field of a curve that the x-axis gives is not in it either."""
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

    def stamp(self, curve: RunCurve) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, seed of a run and identity of a cell of `curve`."""
        runs = {x: (self.run(curve, x), self.fields(curve, x)) for x in self.sizes}
        return lambda x, replicate: self.stamp_run(*runs[x], replicate)


S = TypeVar("S", bound=RunsSpec[Any])

_CURVE = (
    Key("name", "string", "Unique name; the label in tables and figures.", True),
    Key("panel", "string", "Curves of one panel share axes.", default=""),
    Key("note", "string", "What a reader should know.", default=""),
)


def keys_of(what: str, names: Sequence[Key]) -> Keys:
    """All keys of a kind whose cells are `what`, and whose fields are `names`.

    A field may stand at the top level, in a curve, or, as a list, under ``[values]``, so that none
    of these must have it.
    """
    free = tuple(replace(key, required=False) for key in names)
    x = Key("x", "string", "The field on the x-axis.", True, choices=[key.name for key in names])
    values = Key("values", "object", "Lists of values, by field, in the order of places.", True)
    curve = Key("curve", "array", "Tables [[curve]].", True)
    lists = tuple(Key(key.name, "array", f"{key.words} One value for each place.") for key in free)
    tables = {"": (*HEAD, x, values, curve, *free), "values": lists, "curve": (*_CURVE, *free)}
    return Keys(what, tables)


def parse_runs(top: Table, text: str, keys: Sequence[Key], build: Callable[..., S]) -> S:
    """Check a spec whose cells are runs with fields of their own, the `keys`.

    `top` is the spec's top level without ``kind``, `build` the class of the spec.
    """
    head = top.read(HEAD)
    axis = top.text("x")
    top.build("x", one_of, "x", axis, [key.name for key in keys])
    values = _values(Table(top.table("values"), "values"), axis, keys)
    shared = _fields(top, values, keys)
    given = top.take("curve")
    if not isinstance(given, list) or not given:
        raise top.error("curve", f"must be one or more tables [[curve]], got {short_text(given)}")
    curves = tuple(_curve(i, each, shared, values, keys) for i, each in enumerate(given, 1))
    top.finish()
    for i, curve in enumerate(curves):
        if any(curve.name == other.name for other in curves[:i]):
            raise SweepError(f"curve {curve.name!r}: name is taken by an earlier curve")
    spec = build(**head, axis=axis, values=values, curves=curves, text=text)
    check_cells(spec.n_cells)
    for curve in curves:
        for x in spec.sizes:
            _check(spec, curve, x)
    return spec


def _values(table: Table, axis: str, keys: Sequence[Key]) -> dict[str, tuple[Any, ...]]:
    """The values of the x-axis and of the fields that go with it."""
    values_by_key: dict[str, tuple[Any, ...]] = {}
    for key in sorted(keys, key=lambda key: key.name != axis):
        if key.name != axis and key.name not in table:
            table.take(key.name, None)
            continue
        value = table.take(key.name)
        if not isinstance(value, list) or not value:
            raise table.error(key.name, f"must be a list of values, got {short_text(value)}")
        values_by_key[key.name] = tuple(map(_as_integer, value))
        for each in values_by_key[key.name]:
            table.check(key, each)
    table.finish()
    places = values_by_key[axis]
    for x in places:
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 < x < float("inf"):
            raise table.error(axis, f"must hold numbers > 0, got {short_text(x)}")
    if sorted(set(places)) != list(places):
        raise table.error(axis, f"must hold increasing values, got {short_text(list(places))}")
    for name, values in values_by_key.items():
        if len(values) != len(places):
            message = f"must hold as many values as {axis}, {len(places)}, got {len(values)}"
            raise table.error(name, message)
    return values_by_key


def _as_integer(value: T) -> T | int:
    """A float that is a whole number as an int, so that 10.0 and 10 are one value in a store."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fields(table: Table, values: Mapping[str, object], keys: Sequence[Key]) -> dict[str, Any]:
    """The fields that a table gives."""
    values_by_key = {}
    for key in keys:
        given = key.name in table
        value = table.take(key.name, None)
        if given and key.name in values:
            raise table.error(key.name, "is given by [values], too")
        if given:
            values_by_key[key.name] = _as_integer(value)
            table.check(key, values_by_key[key.name])
    return values_by_key


def _curve(
    position: int,
    given: object,
    shared: Mapping[str, object],
    values: Mapping[str, object],
    keys: Sequence[Key],
) -> RunCurve:
    table = Table(given, f"curve {position}")
    name = table.text("name")
    table.label = f"curve {name!r}"
    words = table.read(_CURVE)
    values_of_curve = _fields(table, values, keys)
    table.finish()
    return RunCurve(name, {**shared, **values_of_curve}, **words)


def _check(spec: RunsSpec[Any], curve: RunCurve, x: float) -> None:
    """Refuse fields that make no run; the message names the curve and the field."""
    try:
        spec.run(curve, x)
    except (ValueError, TypeError) as error:
        raise SweepError(f"curve {curve.name!r}, {spec.axis} = {x}: {error}") from None
