"""Evidence that is computed again and agrees with what was kept: the kept one stays.

Processors and libraries round differently, in the last digits of a number and in the first ones of
a number that is 0.  Pages and kept evidence of a verification would change with each of them.
"""

from __future__ import annotations

import math
import re
from typing import Any

from experiments.verify.results import CheckResult

__all__ = ["agree", "steady"]

_RELATIVE = 1e-5
"""Relative difference of two numbers that agree; searches stop at 1e-8 or so."""
_ROUNDING = 1e-14
"""Numbers that differ by no more agree, whatever their size."""
_PRINTED = 0.06
"""The same of numbers inside a text, which has two digits of them: half a unit of the last one."""
_NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?")


def agree(one: Any, two: Any) -> bool:
    """Whether two values are the same up to rounding.

    Parameters
    ----------
    one, two : float, int, str, bool or tuple of these
        Values of one field of an evidence.

    Returns
    -------
    bool
        Whether they agree: numbers to a relative 1e-5 or an absolute 1e-14, texts in all words and
        in the two digits of each number, tuples in each member.

    Examples
    --------
    >>> agree((0.1, 3e-17), (0.1000000001, 0.0)), agree(0.1, 0.1001)
    (True, False)
    >>> agree("distance 5.1e-9 at D", "distance 5.2e-9 at D"), agree("a", "b")
    (True, False)
    """
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(agree, one, two))
    if isinstance(one, str) and isinstance(two, str):
        words = [_NUMBER.sub("#", text) for text in (one, two)]
        numbers = [list(map(float, _NUMBER.findall(text))) for text in (one, two)]
        return words[0] == words[1] and all(
            math.isclose(*pair, rel_tol=_PRINTED, abs_tol=_ROUNDING)
            for pair in zip(*numbers, strict=True)
        )
    if isinstance(one, float) and isinstance(two, float):
        both_missing = math.isnan(one) and math.isnan(two)
        return both_missing or math.isclose(one, two, rel_tol=_RELATIVE, abs_tol=_ROUNDING)
    return type(one) is type(two) and one == two


def steady(fresh: CheckResult, kept: CheckResult | None) -> CheckResult:
    """The kept result of a check if a fresh one agrees with it, else the fresh one.

    Parameters
    ----------
    fresh : CheckResult
        What was computed now.
    kept : CheckResult or None
        What an earlier verification kept of the same check.

    Returns
    -------
    CheckResult
        `kept` where evidence and outcome agree, else `fresh`.
    """
    if kept is None or type(kept.evidence) is not type(fresh.evidence):
        return fresh
    now, before = vars(fresh.evidence), vars(kept.evidence)
    same = now.keys() == before.keys() and all(agree(now[name], before[name]) for name in now)
    return kept if same and fresh.outcome == kept.outcome else fresh
