"""Verdicts on every claim of the papers: gather the evidence, let the rules decide.

``python -m moestat.verify`` is the command line.
"""

from moestat.papers.verify.verification import CheckResult, ClaimResult, Verification, verify

__all__ = ["CheckResult", "ClaimResult", "Verification", "verify"]
