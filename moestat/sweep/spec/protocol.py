"""What plans, stores and runners know of a spec, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar


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


class SweepSpec(Protocol[C]):
    """A spec with curves of one class."""

    @property
    def kind(self) -> str:
        """Name in `moestat.sweep.kinds.kind.KINDS`."""
        ...

    @property
    def title(self) -> str:
        """What the experiment shows."""
        ...

    @property
    def text(self) -> str:
        """The TOML text."""
        ...

    @property
    def axis(self) -> str:
        """Name of the x-axis."""
        ...

    @property
    def seed(self) -> int:
        """Seed of the whole sweep."""
        ...

    @property
    def replicates(self) -> int:
        """Cells per curve and place, to begin with."""
        ...

    @property
    def most_replicates(self) -> int:
        """Replicates that a curve may come to have."""
        ...

    @property
    def target_slope_halfwidth(self) -> float | None:
        """Until when replicates are added; None for a fixed number."""
        ...

    @property
    def curves(self) -> Sequence[C]:
        """The curves in the order of the file."""
        ...

    @property
    def n_cells(self) -> int:
        """Curves times places times replicates."""
        ...

    @property
    def canonical(self) -> str:
        """What the cells depend on, as canonical JSON."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`."""
        ...

    def curve(self, name: str) -> C:
        """The curve called `name`."""
        ...

    def sizes_of(self, curve: C) -> Sequence[float]:
        """Places of a curve on the x-axis, increasing."""
        ...

    def stamp(self, curve: C) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, fit seed and identity of a cell of `curve`."""
        ...

    def memory(self, curve: C) -> float | None:
        """Bytes that the largest cell of a curve takes; None where it holds no rows."""
        ...

    def scale(self, n: float) -> float | None:
        """What the time of a cell is linear in; None where cells take too long to be tried."""
        ...

    def check_machine(self) -> None:
        """Refuse what this machine cannot run; stores made elsewhere stay readable."""
        ...


AnySpec = SweepSpec[Any]
"""A spec of any kind."""
