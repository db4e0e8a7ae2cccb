"""All laws, registered."""

from tests.laws import (
    comparisons,
    designs,
    doubts,
    entries,
    misfit,
    naming,
    readers,
    restricted,
    summaries,
    tables,
    trials,
)
from tests.laws.laws import LAWS

__all__ = [
    "LAWS",
    "comparisons",
    "designs",
    "doubts",
    "entries",
    "misfit",
    "naming",
    "readers",
    "restricted",
    "summaries",
    "tables",
    "trials",
]
