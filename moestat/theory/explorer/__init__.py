"""The bound explorer: does ``d(p_G, p_G*) >~ D(G, G*)`` hold?  A search without sampling noise."""

from moestat.theory.explorer._explore import deviation_loss, explore
from moestat.theory.explorer._result import Exploration, Rung
from moestat.theory.explorer.cases import CASES, Case, quick_search, run_case

__all__ = [
    "CASES",
    "Case",
    "Exploration",
    "Rung",
    "deviation_loss",
    "explore",
    "quick_search",
    "run_case",
]
