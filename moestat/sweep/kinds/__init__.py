"""Kinds of sweeps: one folder each."""
