"""Sweeps of networks: a cell trains one network and records its metrics and their curves."""
