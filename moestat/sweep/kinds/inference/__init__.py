"""Sweeps whose cells apply intervals and tests to a data set drawn from a known truth."""
