"""Where a checkout keeps the specs that the papers' modules write and the pages they make."""

from __future__ import annotations

from pathlib import Path

import moestat

__all__ = ["EXPERIMENTS", "FIGURES"]

_CHECKOUT = Path(moestat.__file__).resolve().parents[1]

EXPERIMENTS = _CHECKOUT / "experiments"
FIGURES = _CHECKOUT / "figures"
