"""What a search for rates has found, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.exponents._strata import Stratum
from moestat.theory.exponents._work import Analysis, Rate

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """Rates of the parameters of a mixture of experts near one truth, and what was asked."""

    family: Family
    truth: FloatArray = field(repr=False)
    n_experts: int
    design: Design
    rows: tuple[Rate, ...]
    notes: tuple[str, ...]
    seconds: float
    nearest: Stratum | None
    """The nearest set of a list on which the answer differs; None where none was found in time."""
    analysis: Analysis = field(repr=False, compare=False)

    def loss_options(self) -> dict[str, Any]:
        """Options of the loss "block-exponents"."""
        family = self.family
        blocks = family.measure(self.truth).atoms
        over: dict[str, float] = {}
        for name in blocks:
            own = [row.r for row in self.rows if row.block == name and row.cell != "2, 2"]
            if own and all(math.isfinite(r) or math.isnan(r) for r in own):
                over[name] = max([1.0, *(r for r in own if math.isfinite(r))])
        if not over:
            raise ValueError("no block has an exponent, so that no loss is defined")
        left_out = [name for name in blocks if name not in over]
        return {
            "over": over,
            "vectors": [name for name in over if blocks[name].ndim > 1],
            "summed": [name for name in over if blocks[name].ndim > 2],
            "translated": [name for name in family.gate.translations if name in over],
            "masses": "normalised" if family.gate.normalised else None,
            "left_out": left_out,
        }
