"""Explicit measures that decide claims: pairs with one density, and sequences near a truth.

Every witness has one input and is built to meet the assumptions that its paper states; `about`
says how.  Nothing here is an outcome: distances and losses are computed when a witness is asked.
"""

from experiments.claims.witnesses import classes, gaussian, regressions
from experiments.claims.witnesses.witness import Pair, Path

__all__ = ["Pair", "Path", "classes", "gaussian", "regressions"]
