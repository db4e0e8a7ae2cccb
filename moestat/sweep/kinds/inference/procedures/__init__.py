"""Procedures that a sweep of inference judges.  A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from moestat.sweep.kinds.inference.procedures import (
    bootstrap,
    nested,
    order,
    prediction,
    profile,
    selection,
    wald,
)
from moestat.sweep.kinds.inference.procedures.procedure import Procedure

__all__ = ["PROCEDURES", "Procedure"]

PROCEDURES: Mapping[str, Procedure] = {
    "wald": Procedure(wald.judge, "coverage", 0.95),
    "prediction": Procedure(prediction.judge, "coverage", 0.95),
    "profile": Procedure(profile.judge, "coverage", 0.95),
    "bootstrap": Procedure(bootstrap.judge, "coverage", 0.95),
    "nested": Procedure(nested.judge, "rejections", 0.05),
    "order": Procedure(order.judge, "rejections", 0.05),
    "selection": Procedure(selection.judge, "share", None),
}
"""Procedures by name."""
