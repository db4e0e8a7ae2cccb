"""All laws, registered."""

from tests.laws import comparisons, entries, readers, restricted, tables, trials
from tests.laws.laws import LAWS

__all__ = ["LAWS", "comparisons", "entries", "readers", "restricted", "tables", "trials"]
