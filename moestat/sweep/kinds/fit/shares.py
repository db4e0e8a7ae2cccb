"""Shares of fits in words, for tables, reports and the status of a sweep that runs."""

from __future__ import annotations

_DASH = "\N{EN DASH}"


def below_truth_clause(below: int, known: int, done: int) -> str:
    """How many of the estimates that recorded it have a lower log-likelihood than the truth."""
    # Cells of an earlier release did not record it.
    of_those = "" if known == done else f" of the {known} fits that recorded it"
    return f"{share(below, known)}{of_those} have a lower log-likelihood than the truth"


def share(count: int, total: int) -> str:
    """A share in percent; 0% means none, 100% all."""
    if total == 0:
        return _DASH
    if count in (0, total):
        return f"{count // total:.0%}"
    percent = 100.0 * count / total
    return "<1%" if percent < 1 else ">99%" if percent > 99 else f"{percent:.0f}%"
