"""What searches of theory share: the inputs where none are named, and lines of progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from numbers import Real

from moestat.base.validate import short
from moestat.model.designs import Uniform

__all__ = ["INPUTS", "at_least_zero", "reporter"]

INPUTS = Uniform(-2.0, 2.0)
"""Inputs of both signs, so that |x| and x are different functions."""


def at_least_zero(name: str, value: object) -> float:
    """A number of seconds, which may be infinite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0.0:
        raise ValueError(f"{name} must be a number >= 0, got {short(value)}")
    return float(value)


def reporter(progress: bool | Callable[[str], None] | None, name: str) -> Callable[[str], None]:
    """What to call with a line of progress.

    Parameters
    ----------
    progress : bool, callable or None
        Whether to write lines to standard error, or what to call with them; None writes them if
        standard error is a terminal.
    name : str
        Name of the search, at the beginning of each line.
    """
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise ValueError(
            f"progress must be True, False, None or a function of a text, got {short(progress)}"
        )
    wanted = sys.stderr.isatty() if progress is None else progress
    began = time.monotonic()

    def write(text: str) -> None:
        if wanted:
            print(f"{name}, {time.monotonic() - began:4.0f} s: {text}", file=sys.stderr)

    return write
