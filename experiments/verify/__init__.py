"""Verdicts on every claim of the papers: gather the evidence, let the rules decide.

``python -m experiments.verify`` is the command line.
"""

from experiments.verify.results import CheckResult, ClaimResult, FactResult, Verification
from experiments.verify.verification import verify, verify_fact

__all__ = ["CheckResult", "ClaimResult", "FactResult", "Verification", "verify", "verify_fact"]
