"""A kind of sweep as one record: what a cell is, and how its spec is read, run and shown.

One engine (plans, executors, stores, the command line) serves all kinds.  A kind is a folder beside
this module with a module ``kind`` whose ``KIND`` is imported when a spec first asks for it, or a
record of your own, registered here or offered by an entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moestat.base.registry import Registry
from moestat.sweep.spec.protocol import SweepCurve, SweepSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table as ShownTable

    from moestat.solvers.problem import Target
    from moestat.sweep.spec.keys import Keys
    from moestat.sweep.spec.plan import Cell
    from moestat.sweep.spec.tables import Table
    from moestat.sweep.store.record import Record
    from moestat.sweep.store.store import Store


class Summary(Protocol):
    """The summary of one curve of a store."""

    @property
    def curve(self) -> SweepCurve:
        """The curve of the spec."""
        ...

    @property
    def failed(self) -> int:
        """Number of cells that failed."""
        ...

    @property
    def drawable(self) -> int:
        """Number of records that a figure has a use for."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        ...


S = TypeVar("S", bound=SweepSpec[Any])
T = TypeVar("T", bound=Summary)


@dataclass(frozen=True)
class Kind(Generic[S, T]):
    """One kind of sweep."""

    name: str
    """What specs call it, ``kind = "..."``."""
    keys: Keys
    """Declarations of all keys of its specs."""
    parse: Callable[[Table, str], S]
    """``parse(top, text)``: the checked spec, of the top level without ``kind``."""
    run_cell: Callable[[S, Cell], Record]
    """``run_cell(spec, cell)``: the record of a cell."""
    summarise: Callable[[Store], Sequence[T]]
    """``summarise(store)``: one summary per curve."""
    table: Callable[[str, Sequence[T], bool], ShownTable]
    """``table(title, summaries, details)``: a table for the terminal."""
    draw: Callable[[str, Sequence[T], str], Figure]
    """``draw(title, summaries, size)``: a figure of one of `sizes`."""
    page: Callable[[Store, Sequence[T], str | None], str]
    """``page(store, summaries, figure)``: the report in Markdown, with the picture of
    that name if there is one."""
    latex: Callable[[Sequence[T]], str] | None = None
    """``latex(summaries)``: the main table of a report in LaTeX."""
    sizes: tuple[str, ...] = ("screen",)
    """Sizes that figures can have: names in `moestat.rates.style.WIDTHS`."""
    check: Callable[[S], None] | None = None
    """``check(spec)``: further checks of a new spec, which the spec in a store has passed."""
    run_together: Callable[[Target, S, Sequence[Cell]], list[Record]] | None = None
    """``run_together(target, spec, cells)``: records of cells that are one batch on a device."""


@dataclass(frozen=True)
class _Shipped:
    """A kind of this folder, which is imported on first use."""

    name: str


KINDS = Registry[Kind[Any, Any] | _Shipped]("kind of sweep", "moestat.kinds", _Shipped)
"""Kinds by name; `register` takes a `Kind` of your own."""

for _name in ("fit", "network", "training", "inference"):
    KINDS.register(_Shipped(_name))


def kind_of(name: str) -> Kind[Any, Any]:
    """The kind of sweep called `name`, a name in `KINDS`."""
    kind = KINDS[name]
    if isinstance(kind, Kind):
        return kind
    return import_module(f"moestat.sweep.kinds.{name}.kind").KIND
