"""What `rates` answers: a table, and what follows from it."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.validate import check_kind
from moestat.metrics.losses import VoronoiLoss
from moestat.metrics.losses.block_exponents import block_exponents
from moestat.model.designs import Design, Given
from moestat.theory.defaults import at_least_zero
from moestat.theory.exponents._found import Found
from moestat.theory.exponents._work import CERTIFIED, Rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from moestat.theory.exponents._lower import LowerBound
    from moestat.theory.exponents._strata import Stratum

__all__ = ["Rates"]

_WIDTH = 79
_HEAD = ("block", "atoms", "r", "worst case", "status", "n for .1", "n seen")


@dataclass(frozen=True)
class Rates(Found):
    """Rates of the parameters of a mixture of experts near one truth.

    Iterating gives the rows; `print`, HTML, `to_latex` and `plot` show them; `loss` is the Voronoi
    loss with these exponents and `spec` a sweep that would show them.

    Attributes
    ----------
    rows : tuple of Rate
        One for each block and kind of cell.
    family, truth, n_experts, design
        What was asked.
    notes : tuple of str
        What the reader must know besides.
    nearest : Stratum or None
        The nearest exceptional truths that were found, with their distance.
    seconds : float
        Time that the answer took.
    """

    def __iter__(self) -> Iterator[Rate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def rate(self, block: str, cell: str | int = 1) -> Rate:
        """The row of a block and kind of cell.

        Parameters
        ----------
        block : str
            Name of the block; "mass" for masses.
        cell : str or int
            Fitted atoms in the cell, or ``"2, 2"``.

        Raises
        ------
        KeyError
            If there is no such row.
        """
        for row in self.rows:
            if row.block == block and row.cell == str(cell):
                return row
        known = ", ".join(f"{row.block} ({row.cell})" for row in self.rows)
        raise KeyError(f"no row of block {block!r} in cells of {cell}; known: {known}")

    def n_seen(self, cell: str | int = 2) -> float:
        """Sample size from which the exponents of all blocks of a kind of cell can be seen.

        The blocks of a cell move together: a block that is still as far as its bounds changes the
        errors of the others.  NaN where the size of some block is not known.

        Parameters
        ----------
        cell : str or int
            Fitted atoms in the cell.

        Raises
        ------
        KeyError
            If there are no such cells.
        """
        if all(row.cell != str(cell) for row in self.rows):
            known = ", ".join(dict.fromkeys(repr(row.cell) for row in self.rows))
            raise KeyError(f"no cells of {cell}; known: {known}")
        sizes = [
            row.n_seen
            for row in self.rows
            if row.cell == str(cell) and row.block != "mass" and math.isfinite(row.r)
        ]
        return float(np.max(sizes)) if sizes else math.nan

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.block,
                row.cell,
                _number(row.r, row.at_least),
                row.text,
                row.status,
                _size(row.n_for),
                _size(row.n_seen),
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        import textwrap

        family = self.family
        title = (
            f"Rates of {_called(family.likelihood)} experts, {_called(family.expert)}, under the"
            f" {_called(family.gate)} gate: {family.n_experts} true atoms, {self.n_experts} fitted"
        )
        lines = textwrap.wrap(title, _WIDTH)
        lines += textwrap.wrap(f"X: {_design(self.design)}; {self.seconds:.0f} s", _WIDTH)
        cells = [_HEAD, *self._cells()]
        widths = [max(len(row[k]) for row in cells) for k in range(len(_HEAD))]
        shown = ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) for row in cells]
        lines += ["", shown[0].rstrip(), "-" * max(map(len, shown))]
        lines += [line.rstrip() for line in shown[1:]]
        lines += ["", "Why:"]
        for reason, rows in self._reasons().items():
            text = f"{'; '.join(rows)}: {reason}."
            lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in self._remarks:
            lines += textwrap.wrap(note, _WIDTH)
        return "\n".join(lines)

    @property
    def _remarks(self) -> list[str]:
        """The notes, what the nearest exceptional set changes, and what lacks a certificate."""
        from moestat.theory.exponents.certificates import without_records

        remarks = list(self.notes)
        if self.nearest is not None:
            remarks.append(f"Nearest exceptional truths: {self.nearest}.")
        why = without_records(self)
        if why and any(row.status == CERTIFIED for row in self.rows):
            remarks.append(f"Certified rows have no record for the checker: {why}.")
        return remarks

    def _reasons(self) -> dict[str, list[str]]:
        """Reason -> blocks with their kind of cell."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self.rows:
            found.setdefault(row.reason, {}).setdefault(row.cell, []).append(row.block)
        return {
            reason: [f"{', '.join(blocks)} ({cell})" for cell, blocks in cells.items()]
            for reason, cells in found.items()
        }

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in (*_HEAD, "why"))
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(value)}</td>" for value in (*cells, row.reason))
            + "</tr>"
            for cells, row in zip(self._cells(), self.rows, strict=True)
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._remarks)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_latex(self) -> str:
        """The table for a paper, with `booktabs`."""
        lines = [
            r"\begin{tabular}{llrll}",
            r"\toprule",
            r"block & atoms & $r$ & worst case & status \\",
            r"\midrule",
        ]
        for row in self.rows:
            if math.isinf(row.r):
                rate, r = "none", r"$\infty$"
            elif math.isnan(row.r):
                rate, r = "--", "--"
            else:
                power = 2.0 * row.r
                exponent = f"1/{power:g}" if power != 1.0 else "1"
                sign = r"\ge " if row.at_least else ""
                rate, r = f"$n^{{-{exponent}}}$", f"${sign}{row.r:g}$"
            name = re.sub(r"([_&%$#{}])", r"\\\1", row.block)
            lines.append(rf"\texttt{{{name}}} & {row.cell} & {r} & {rate} & {row.status} \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def to_frame(self) -> Mapping[str, list[Any]]:
        """The columns of the table by name, for ``pandas.DataFrame``."""
        names = ("block", "cell", "r", "at_least", "status", "reason", "n_for", "n_seen")
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def loss(self) -> VoronoiLoss:
        """The Voronoi loss that these exponents define.

        Deviations in cells of several atoms have the exponent r of their block, so that estimates
        err by about ``n^(-1/2)`` in it; a block that is not identified is left out.

        Raises
        ------
        ValueError
            If no block has an exponent.

        Examples
        --------
        >>> import moestat
        >>> F = moestat.family("gaussian", gate="softmax", n_experts=1)
        >>> blocks = {"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [0.25]}
        >>> found = moestat.theory.rates(F, blocks, 1)
        >>> moestat.voronoi_loss(F.measure(found.truth), F.measure(found.truth), found.loss())
        0.0
        """
        return block_exponents(**self.loss_options())

    def spec(self, name: str = "rates") -> str:
        """The TOML of a sweep that would show these rates, with floored masses.

        Inputs, classes and normal responses are counts on a lattice, with n to 1e14; samples of
        other responses are rows, with n to 1e5, and a note says where that is too small.  A gate of
        one's own is found by its name when the program that runs the sweep registers it.

        Parameters
        ----------
        name : str
            Title of the sweep, on one line.

        Raises
        ------
        ValueError
            If a sweep has no such model: with censored responses, trials by row, coefficients that
            are equal or fixed, an offset, or inputs of the gate or of experts alone.
        """
        from moestat.theory.exponents._spec import write_spec

        check_kind("name", name, str, "a text")
        if not name.strip() or not name.isprintable():
            raise ValueError(f"name must be text on one line, got {name!r}")
        return write_spec(self, name)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Distances against deviations, as the search found them, with the exponents' slopes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib Axes
            With one line for each block and kind of cell that was searched.
        """
        from moestat.theory.exponents._plot import draw

        if ax is not None:
            check_kind("ax", ax, "set_xscale", "axes of matplotlib")
        return draw(self, ax)

    def exceptional(self, seconds: float = 60.0) -> tuple[Stratum, ...]:
        """The sets of truths near this one on which the answer differs, nearest first.

        Parameters
        ----------
        seconds : float
            When to stop.
        """
        from moestat.theory.exponents._strata import strata_near

        until = monotonic() + at_least_zero("seconds", seconds)
        return tuple(strata_near(self.family, self.truth, self.design, until))

    def lower_bound(self, block: str, cell: str | int = 1) -> LowerBound | None:
        """The lower bound of Le Cam's two points for a row, with its constant.

        Parameters
        ----------
        block, cell
            As in `rate`.

        Returns
        -------
        LowerBound or None
            None where the answer has no pair of measures: blocks that are not identified, or whose
            exponent no search has seen.

        Examples
        --------
        >>> import moestat
        >>> F = moestat.family("gaussian", gate="softmax", n_experts=1)
        >>> blocks = {"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [0.25]}
        >>> found = moestat.theory.rates(F, blocks, 1)
        >>> print(found.lower_bound("b"))
        b (1): at least 0.068 n^(-1/2)
        """
        from moestat.theory.exponents._lower import lower_bound

        return lower_bound(self.analysis, self.rate(block, cell))

    def certificates(self) -> list[dict[str, Any]]:
        """A record for each certified answer, which others can check without this library.

        See `moestat.theory.exponents.certificates`.
        """
        from moestat.theory.exponents.certificates import certificates_of

        return certificates_of(self)


def _called(member: Any) -> str:
    options = {k: v for k, v in member.options.items() if not callable(v) and k != "random"}
    plain = [f"{k} {v}" for k, v in sorted(options.items()) if v is not None]
    return f"{member.name} ({', '.join(plain)})" if plain else str(member.name)


def _design(design: Design) -> str:
    if isinstance(design, Given):
        return f"{len(design.points)} given inputs"
    low, high = getattr(design, "low", None), getattr(design, "high", None)
    return design.name if low is None else f"{design.name} on [{low:g}, {high:g}]"


def _number(r: float, at_least: bool) -> str:
    if math.isinf(r):
        return "inf"
    if math.isnan(r):
        return "?"
    return f"{'>= ' if at_least else ''}{r:.3g}"


def _size(n: float) -> str:
    return f"{n:.0e}".replace("e+0", "e").replace("e+", "e") if np.isfinite(n) else ""
