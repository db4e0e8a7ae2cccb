"""Doubts about a spec: what is allowed, but seldom meant; said before anything runs."""

from __future__ import annotations

from moestat.sweep.kinds.fit.spec import Spec
from moestat.sweep.spec.protocol import AnySpec


def doubts(spec: AnySpec) -> list[str]:
    """Sentences about what may not be meant in a spec of any kind; none for most."""
    if not isinstance(spec, Spec):
        return []
    stopping = [
        curve.name
        for curve in spec.curves
        if curve.solver.get("name") == "em" and curve.require_certificate
    ]
    if not stopping:
        return []
    return [
        "EM seldom ends at a certified maximum, and uncertified fits are left out of rates; curves"
        f" without require_certificate = false: {', '.join(stopping)}"
    ]
