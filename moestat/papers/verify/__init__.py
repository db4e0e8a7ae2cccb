"""Verdicts on every claim of the papers: gather the evidence, let the rules decide.

``python -m moestat.verify`` is the command line.
"""

from moestat.papers.verify.verification import (
    CheckResult,
    ClaimResult,
    FactResult,
    Verification,
    verify,
    verify_fact,
)

__all__ = ["CheckResult", "ClaimResult", "FactResult", "Verification", "verify", "verify_fact"]
