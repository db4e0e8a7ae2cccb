"""Which layers compete in which steps, drawn before training."""

from __future__ import annotations

import numpy as np

from moestat.base.door import door, doors
from moestat.base.types import Seed
from moestat.base.validate import as_generator, positive_int, real_in

__all__ = ["CompetitionSchedule"]


@doors
class CompetitionSchedule:
    """A step of a layer competes with probability `rate`; at most `limit` layers do so at once.

    Layers are taken in order.  A competing step of a layer that already has `limit` competing
    layers below it moves to the next step, cyclically, that has fewer and in which the layer does
    not compete yet.  The number of competing steps of every layer stays as drawn.

    Parameters
    ----------
    n_layers, n_steps : int
        L and T.
    rate : float
        omega, the probability of competing.
    limit : int, optional
        A_max >= 1; no limit by default.
    warm_up : float
        Share of the steps, the first ones, in which no layer competes.
    earlier_first : bool
        Whether a step that moves goes to the last admissible one before it, and only where there is
        none to the first one after it.
    rng : Generator, int or None
        Source of the draws.

    Raises
    ------
    ValueError
        If an argument is out of range, or no admissible step is left.

    Notes
    -----
    Nguyen et al. (2025), App. B, eqs. (8) and (9); which admissible step t' is taken is not
    printed.  With `earlier_first` it is that of `competesmoe.py` of Fsoft-AIC/CompeteSMoE at
    0be1cb7, where a competing step can be lost, which is not copied.

    Examples
    --------
    >>> schedule = CompetitionSchedule(n_layers=4, n_steps=100, rate=0.3, limit=2, rng=0)
    >>> int(schedule.active.sum(axis=0).max())
    2
    """

    @door()
    def __init__(
        self,
        n_layers: int,
        n_steps: int,
        rate: float,
        limit: int | None = None,
        warm_up: float = 0.0,
        rng: Seed = None,
        *,
        earlier_first: bool = False,
    ) -> None:
        n_layers = positive_int("n_layers", n_layers)
        n_steps = positive_int("n_steps", n_steps)
        n_active = n_layers if limit is None else positive_int("limit", limit)
        first = round(real_in("warm_up", warm_up, 0.0, 1.0) * n_steps)
        draws = as_generator(rng).random((n_layers, n_steps))
        self.drawn = draws < real_in("rate", rate, 0.0, 1.0)
        self.drawn[:, :first] = False
        self.active = self.drawn.copy()
        below = np.zeros(n_steps, np.int64)
        for layer, row in enumerate(self.active):
            _defer(layer, row, below, n_active, first, earlier_first)
            below += row


def _defer(
    layer: int, row: np.ndarray, below: np.ndarray, n_active: int, first: int, earlier_first: bool
) -> None:
    """Move the steps of one layer where more than `n_active` layers would be active."""
    for step in np.flatnonzero(row & (below >= n_active)):
        free = np.flatnonzero((below < n_active) & ~row)
        free = free[free >= first]
        if not free.size:
            raise ValueError(
                f"no admissible step is left for layer {layer}: lower the rate or raise the limit,"
                f" which is {n_active}"
            )
        earlier, later = free[free < step], free[free > step]
        row[step] = False
        if earlier_first:
            row[earlier[-1] if earlier.size else later[0]] = True
        else:
            row[later[0] if later.size else earlier[0]] = True
