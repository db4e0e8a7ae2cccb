"""Rates: slopes of losses in log n, comparisons, local slopes at large n, plots."""
