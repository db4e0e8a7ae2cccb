"""Rows that are elsewhere, and passes over any rows."""
