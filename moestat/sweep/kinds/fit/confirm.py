"""The second pass of a sweep: more starts for the cells that may have missed their maximum."""

from __future__ import annotations

from dataclasses import replace

from moestat.estimation.rules import SAME_HEIGHT
from moestat.estimation.search.maximum import MaximumStarts
from moestat.solvers.driver import Cores
from moestat.sweep.kinds.fit.cell import estimate_with, run_fit
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import DONE, Record

SECOND_PASS = 40
"""Starts of the second pass, besides those near the truth: four times those of the first."""


def confirm_cell(text: str, cell: Cell) -> Record:
    """The record of a cell after a second pass; a pure function like that of the first.

    The second pass repeats the first one and adds a larger search.  Its estimate takes the place of
    the first one if it is higher, and its evidence in any case: ``certificate.second_pass`` holds
    the gain in log-likelihood, 0 for the same maximum, the loss of the first estimate, and where
    only one of the two is certified, whether the first one was.
    """
    spec = as_fits(parse_spec(text))
    first = run_fit(spec, cell)
    if first.status != DONE:
        return first
    truth = spec.truths[spec.curve(cell.curve).truth]
    second = estimate_with(
        Cores(1), spec, cell, [MaximumStarts(truth.family, truth.theta, SECOND_PASS)]
    )
    if second.status != DONE or second.log_likelihood is None or first.log_likelihood is None:
        return first
    gain = second.log_likelihood - first.log_likelihood
    is_higher = gain > SAME_HEIGHT
    taken = second if is_higher else first
    # Counts of runs belong to both passes.
    evidence = {key: second.certificate[key] for key in _EVIDENCE if key in second.certificate}
    note = {"gain": float(max(gain, 0.0)) if is_higher else 0.0, "first_loss": first.loss}
    if taken.certified != first.certified:
        note["first_certified"] = first.certified
    seconds = first.seconds + second.seconds
    certificate = {**taken.certificate, **evidence, "second_pass": note}
    return replace(taken, certificate=certificate, seconds=seconds)


_EVIDENCE = ("n_starts", "n_optima", "agreement", "n_collapsed", "p_higher", "above_near_truth")
