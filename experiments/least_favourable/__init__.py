"""Computed least-favourable pairs: a local minimax bound with its constant for each truth.

`pairs` lets the bound explorer find the measures that are hardest to tell from a truth and makes a
two-point bound of them, `measured` finds what sweeps of the same truth measured, and `page` writes
and draws both.
"""
