"""Sweeps of fits."""
