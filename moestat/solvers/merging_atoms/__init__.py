"""Solvers for more experts than the truth has, in the moments of atoms that merge."""
