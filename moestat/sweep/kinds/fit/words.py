"""What the numbers of a curve say, in a sentence that follows from them by a fixed rule."""

from __future__ import annotations

import math

from moestat.rates.bounds import FASTER, SLOWER
from moestat.rates.rate import RateResult
from moestat.sweep.kinds.fit.analysis import CurveSummary
from moestat.sweep.kinds.fit.shares import below_truth_clause, share


def verdict(summary: CurveSummary) -> str:
    """What the numbers of a curve say, in one sentence that follows from them by a fixed rule."""
    clauses = _rate_clauses(summary)
    if summary.on_bound:
        clauses.append(f"{share(summary.on_bound, summary.done)} of the fits lie on a bound")
    if summary.certified < summary.done:
        fate = "left out" if summary.curve.require_certificate else "kept in the rate"
        uncertified = share(summary.done - summary.certified, summary.done)
        clauses.append(f"{uncertified} of the fits are uncertified and {fate}")
    evidence = summary.evidence
    if evidence.with_several and evidence.unanimous < evidence.with_several:
        agreeing = share(evidence.unanimous, evidence.with_several)
        clauses.append(f"in {agreeing} of the fits all starts end at the best one")
    clauses += maximum_clauses(summary)
    if summary.with_empty_cells:
        clauses.append(f"{share(summary.with_empty_cells, summary.done)} have an empty cell")
    if summary.failed:
        clauses.append(
            f"{summary.failed} of {summary.planned} cells failed, so that the slope is from a"
            " selected sample"
        )
    if summary.uneven:
        clauses.append(f"{summary.uneven}, so that the interval may be too short")
    return "; ".join(clauses) + "."


def maximum_clauses(summary: CurveSummary) -> list[str]:
    """Whether the estimates are the maxima, where that was estimated, and what it does."""
    evidence, clauses = summary.evidence, list[str]()
    if evidence.missed is not None:
        clauses.append(f"an estimated {evidence.missed:.0%} of the fits miss their maximum")
    if evidence.above_truth is not None and evidence.below_truth:
        known = evidence.above_truth.count
        clauses.append(below_truth_clause(evidence.below_truth, known, summary.done))
    if evidence.confirmed:
        clauses.append(
            f"a second pass moved {evidence.moved} of {evidence.confirmed} fits to a higher maximum"
        )
        if summary.first is not None and summary.rate is not None:
            before, after = rounded(summary.first.slope), rounded(summary.rate.slope)
            clauses.append(f"the slope was {before} before it and is {after}")
    if summary.sure is not None and evidence.missed is not None:
        sure = summary.sure.rate
        without = "there is no slope" if sure is None else f"the slope is {measured(sure)}"
        clauses.append(f"without the {evidence.doubtful} fits in doubt {without}")
    return clauses


def _rate_clauses(summary: CurveSummary) -> list[str]:
    rate = summary.rate
    if rate is None:
        return [f"There is no rate: {summary.note}"]
    low, high = rate.interval
    if math.isnan(low):
        return [f"The fitted slope is {rounded(rate.slope)}, from too few fits for an interval"]
    word = "falls" if high < 0 else "grows" if low > 0 else "does not measurably fall"
    clauses = [f"The loss {word}: slope {measured(rate)}"]
    if summary.curve.published is not None:
        side = "inside" if low <= summary.curve.published <= high else "outside"
        clauses.append(f"the published slope {summary.curve.published:g} is {side} this interval")
    if summary.curve.theory is not None and rate.theory is not None:
        steep, flat = map(rounded, rate.theory_slopes)
        clauses.append(f"the bound has {steep}, with its logarithm {flat}: {rate.bound.sentence}")
    if summary.verdict.theory in (SLOWER, FASTER):
        p = p_value(summary.verdict.theory_p_value)
        clauses.append(f"all curves considered it is {summary.verdict.theory} (adjusted {p})")
    if summary.regression_error is not None:
        clauses.append(f"the regression error has slope {measured(summary.regression_error)}")
    if word != "falls" and summary.hellinger is not None and summary.hellinger.interval[1] < 0:
        clauses.append(f"the Hellinger distance falls: slope {measured(summary.hellinger)}")
    if summary.verdict.pre_asymptotic:
        p = p_value(summary.verdict.curvature_p_value)
        clauses.append(
            f"the slope is still changing over these sizes (adjusted {p}), so it is no rate yet"
        )
    return clauses


def measured(rate: RateResult) -> str:
    """Slope and interval, ``-0.49 [-0.55, -0.43]``."""
    if math.isnan(rate.interval[0]):
        return rounded(rate.slope)
    return f"{rounded(rate.slope)} [{rounded(rate.interval[0])}, {rounded(rate.interval[1])}]"


def p_value(value: float | None) -> str:
    """A p-value; none is shown more exactly than it can be known."""
    return "no test" if value is None else "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def rounded(value: float) -> str:
    """Two decimals, without a minus sign at 0."""
    return f"{round(value, 2) + 0.0:.2f}"
