"""The interface of a spec that plans, stores and runners use, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from moestat.sweep.spec.identity import digest


class SweepCurve(Protocol):
    """A curve: a name, and the words that figures and reports show."""

    @property
    def name(self) -> str:
        """Its label in tables and figures."""
        ...

    @property
    def panel(self) -> str:
        """Curves of one panel share axes."""
        ...

    @property
    def note(self) -> str:
        """What a reader should know."""
        ...


C = TypeVar("C", bound=SweepCurve)


@dataclass(frozen=True, kw_only=True)
class SweepSpec(ABC, Generic[C]):
    """A spec with curves of one class."""

    title: str  # what the experiment shows
    seed: int  # seed of the whole sweep
    replicates: int  # cells per curve and place, to begin with
    curves: tuple[C, ...]  # in the order of the file
    text: str = field(repr=False, compare=False)  # the TOML text
    kind: str  # name in `moestat.sweep.kinds.kind.KINDS`
    axis: str = "n"  # name of the x-axis
    # Until when replicates are added, and where that ends; None for a fixed number.
    target_slope_halfwidth: float | None = None
    max_replicates: int | None = None

    @property
    @abstractmethod
    def canonical(self) -> str:
        """What the cells depend on, as canonical JSON; words that only figures show are not in it.

        They may change when a sweep has begun.
        """

    @abstractmethod
    def sizes_of(self, curve: C) -> Sequence[float]:
        """Places of a curve on the x-axis, increasing."""

    @abstractmethod
    def stamp(self, curve: C) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, fit seed and identity of a cell of `curve`."""

    @abstractmethod
    def memory(self, curve: C) -> float | None:
        """Bytes that the largest cell of a curve takes; None where it holds no rows."""

    @abstractmethod
    def scale(self, n: float) -> float | None:
        """Quantity that the time of a cell is linear in; None where cells take too long to time."""

    @abstractmethod
    def check_machine(self) -> None:
        """Refuse what this machine cannot run; stores made elsewhere stay readable."""

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`: equal for specs that ask for the same cells."""
        return digest(self.canonical)

    @property
    def n_cells(self) -> int:
        """Number of cells: curves times places times replicates, before any are added."""
        return sum(len(self.sizes_of(curve)) for curve in self.curves) * self.replicates

    @property
    def most_replicates(self) -> int:
        """Replicates that a curve may come to have."""
        return self.max_replicates or self.replicates

    def curve(self, name: str) -> C:
        """The curve called `name`."""
        return next(curve for curve in self.curves if curve.name == name)


AnySpec = SweepSpec[Any]
"""A spec of any kind."""
