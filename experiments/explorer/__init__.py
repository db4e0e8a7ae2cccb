"""The papers' lower bounds as cases of the bound explorer."""

from experiments.explorer.cases import CASES, Case, quick_search, run_case

__all__ = ["CASES", "Case", "quick_search", "run_case"]
