"""The papers' lower bounds as cases of the bound explorer."""

from moestat.papers.explorer.cases import CASES, Case, quick_search, run_case

__all__ = ["CASES", "Case", "quick_search", "run_case"]
