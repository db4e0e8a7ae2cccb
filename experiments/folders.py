"""Where a checkout keeps the specs that the papers' modules write and the pages they make."""

from __future__ import annotations

from pathlib import Path

__all__ = ["EXPERIMENTS", "FIGURES"]

EXPERIMENTS = Path(__file__).resolve().parent
FIGURES = EXPERIMENTS.parent / "figures"
