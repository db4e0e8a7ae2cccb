"""Numbers of the steps along a ridge of merging atoms, in one record."""

from __future__ import annotations

from typing import NamedTuple


class RidgeRules(NamedTuple):
    """When a step along a ridge is made, corrected, shortened or refined.

    ``python -m tests.mutations merging_atoms`` shows which pinned fit notices each of them.
    """

    poor: float = 0.25
    good: float = 0.75
    """Parts of a predicted decrease below which the region shrinks and above which it grows; in
    (0, 1): off the ridge decreases are those of its sides."""
    faintest: float = 1e-16
    """Part of the largest curvature down to which a step follows one: rounding of float64."""
    whole: float = 0.9
    """Part of a predicted decrease that is as good as all of it, so that a shorter step will do; in
    (0, 1)."""
    corrections: int = 10
    """Corrections of a step at most."""
    few_rows: int = 1000
    """Rows up to which the information of the scores is asked for: it costs up to three quarters of
    a pass, which is little beside the steps' algebra for few rows only."""
    worth: float = 0.1
    """Part of a predicted decrease that is worth a correction; in (0, 1)."""
    suspect: float = 0.5
    """Part of a predicted decrease that may come from negative curvature; in (0, 1)."""
    growth: float = 2.0
    relief: float = 1.3
    """Growth of the radius after a good step, and with every one of how near it dares to come to
    where a step has failed; above 1."""
    shortest: float = 0.1
    longest: float = 0.6
    half: float = 0.5
    """Parts of a step that has failed, for the next one: at least, at most, and where no cubic
    fits; in (0, 1)."""
    steady: float = 0.9
    """Part of a residual variance that is as good as the same; in (0, 1)."""
    patch: int = 40
    """Passes across kinks before another look between them."""
    margin: float = 1e-9
    """How far from the kinks at its edges a cell counts as smooth, as a part of it."""
    close: float = 1.0
    """Root-mean-square difference of the predictors of two atoms that count as close; above 0."""
    small: float = 0.32
    smaller: float = 0.12
    """Parts of a step's length that cost its predicted decrease in stiff directions, and in those
    that may be softer than the noise; in (0, 1), the second below the first."""
    finer: float = 1.0 / 3.0
    finest: float = 1.0 / 40.0
    """Parts of the directions that corrections take: from turn to turn, and at last; in (0, 1)."""


RULES = RidgeRules()
