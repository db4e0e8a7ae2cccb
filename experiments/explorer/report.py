"""Cases with what was found, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable

from experiments.explorer.cases import Case
from moestat.theory.explorer._result import Exploration

__all__ = ["HEAD", "as_expected", "details", "row", "summary"]

HEAD = (
    "| case | bound | setting | D | d / D, first and last | exponent r | residual | found |"
    " expected | rounding |\n|---|---|---|---|---|---|---|---|---|---|"
)
"""The first lines of the table of cases."""


def as_expected(case: Case, found: Exploration) -> bool:
    """Whether verdict and exponent are those that the case expects."""
    inside = case.band is None or case.band[0] <= found.exponent <= case.band[1]
    return found.verdict == case.expected and inside


def _exponent(found: Exploration) -> str:
    if found.vanishes:
        return "d = 0"
    return "" if math.isnan(found.exponent) else f"{found.exponent:.3f}"


def _expected(case: Case) -> str:
    band = "" if case.band is None else f", r in [{case.band[0]:g}, {case.band[1]:g}]"
    return case.expected + band


def row(case: Case, found: Exploration) -> str:
    """One line of the summary."""
    rungs = found.rungs
    residual = "" if math.isnan(found.residual) else f"{found.residual:.3f}"
    mark = "" if as_expected(case, found) else " **not as expected**"
    cells = (
        case.name,
        case.source,
        case.setting,
        f"{rungs[0].loss:.1e} to {rungs[-1].loss:.1e}" if rungs else "",
        f"{rungs[0].ratio:.1e}, {rungs[-1].ratio:.1e}" if rungs else "",
        _exponent(found),
        residual,
        found.verdict + mark,
        _expected(case),
        f"{found.rounding_error():.0e}" if rungs else "",
    )
    return "| " + " | ".join(cells) + " |"


def summary(found: Iterable[tuple[Case, Exploration]]) -> str:
    """The table of all cases."""
    return "\n".join([HEAD, *(row(case, exploration) for case, exploration in found)])


def details(case: Case, found: Exploration) -> str:
    """What was found at each radius, with the worst direction and why it is expected."""
    parts = [
        f"### {case.name}: {case.source}, {case.setting}",
        f"```text\n{found.table()}\n```",
    ]
    if found.worst_direction:
        parts.append(f"Worst direction at the smallest D: {found.worst_direction}.")
    if case.note:
        parts.append(f"Expected because: {case.note}.")
    return "\n\n".join(parts)
