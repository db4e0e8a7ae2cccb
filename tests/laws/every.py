"""All laws, registered."""

from tests.laws import entries, restricted, tables, trials
from tests.laws.laws import LAWS

__all__ = ["LAWS", "entries", "restricted", "tables", "trials"]
