"""Tables for the terminal that lose nothing: what is too wide for it goes into tables below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

_UNBOUNDED = 10_000  # characters
_LEAST = 8  # characters of a name that is folded


class WideTable(Table):
    """A table whose names stand at the left of every part that it is cut into.

    `left` and `right` are the headings of the columns of names, which fold, and of the columns of
    values, which do not; `gap` characters stand between columns, beside one.
    """

    def __init__(self, title: str, left: Sequence[str], right: Sequence[str], gap: int = 1) -> None:
        super().__init__(
            title=title or None,
            title_justify="left",
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, gap),
            collapse_padding=True,
        )
        self._names, self._gap = len(left), gap
        for name in left:
            self.add_column(name, overflow="fold", min_width=_LEAST)
        for name in right:
            self.add_column(name, justify="right", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or its parts one below the other."""
        unbounded = options.update(max_width=_UNBOUNDED)
        if Measurement.get(console, unbounded, self).maximum <= options.max_width:
            # Wide enough for whole headings and names.
            yield from super().__rich_console__(console, options)
            return
        for at, columns in enumerate(self._parts(options.max_width)):
            part = WideTable(str(self.title or "") if at == 0 else "", [], [], self._gap)
            part.columns = [
                replace(column, _index=i, width=None if i < self._names else _width(column))
                for i, column in enumerate(columns)
            ]
            part.rows = self.rows
            yield from Table.__rich_console__(part, console, options)
        if self.caption:  # of all parts: as wide as the screen, not as the last of them
            yield console.render_str(str(self.caption), style="table.caption")

    def _parts(self, width: int) -> Iterator[list[Column]]:
        """Columns of each part: the names, and as many of the others as there is room for."""
        names, values = self.columns[: self._names], self.columns[self._names :]
        between = 1 + self._gap
        all_values = sum(_width(column) + between for column in values)
        for share in (_LEAST, width // (2 + len(names))):  # rather fold names than cut the table
            wide = (max(column.min_width or 0, min(_width(column), share)) for column in names)
            room = width - 2 - sum(each + between for each in wide)
            if all_values <= room:
                break
        part: list[Column] = []
        free = room
        for column in values:
            needed = _width(column) + between
            if part and needed > free:
                yield [*names, *part]
                part, free = [], room
            part.append(column)
            free -= needed
        yield [*names, *part]


def _width(column: Column) -> int:
    """Characters of the longest cell; a heading wraps between its words."""
    cells = [line for cell in column.cells for line in str(cell).splitlines()]
    return max(map(cell_len, [*cells, *str(column.header).split()]), default=0)
