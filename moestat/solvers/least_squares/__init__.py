"""Solvers for regression functions."""
