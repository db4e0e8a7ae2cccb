"""Tables of a sweep for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from rich.table import Table

from moestat.rates.bounds import FASTER, SLOWER
from moestat.rates.rate import RateResult
from moestat.sweep.kinds.fit.analysis import CurveSummary
from moestat.sweep.kinds.fit.scoring import Scores
from moestat.sweep.kinds.fit.verdicts import LEVEL
from moestat.sweep.kinds.fit.words import maximum_clauses
from moestat.sweep.terminal import WideTable

_UNCERTIFIED = "\N{DAGGER}"
_HELLINGER = "d_H"
_ERROR = "error"
_AVERAGES = ("mean", "median")


def rates_table(title: str, summaries: Sequence[CurveSummary], details: bool = False) -> Table:
    """Rates with their intervals, and the counts that say how far to trust them.

    With `details` also the slope of the Hellinger distance of densities, and below the table those
    of the mean and the median loss.  Curves whose rate takes uncertified fits too carry a dagger.
    """
    regression = any(summary.errors.size for summary in summaries)
    columns: dict[str, Callable[[CurveSummary], str]] = {
        "slope": lambda summary: _slope(summary.rate),
        "95% interval": lambda summary: _interval(summary.rate),
    }
    if any(summary.curve.published is not None for summary in summaries):
        columns["paper"] = lambda summary: _stated(summary.curve.published)
    columns["theory"] = lambda summary: _stated(summary.curve.theory)
    if regression:
        columns[_ERROR] = lambda summary: _slope(summary.regression_error)
    if any(summary.evidence.missed is not None for summary in summaries):
        columns["missed"] = lambda summary: (
            "" if summary.evidence.missed is None else f"{summary.evidence.missed:.0%}"
        )
    columns |= {
        "certified": lambda summary: f"{summary.certified}/{summary.done}",
        "on bound": lambda summary: str(summary.on_bound),
        "failed": lambda summary: str(summary.failed),
    }
    if details and not regression:
        columns[_HELLINGER] = lambda summary: _slope(summary.hellinger)
    table = WideTable(title, ["curve"], list(columns), gap=0 if details else 1)
    for summary in summaries:
        mark = "" if summary.curve.require_certificate else f" {_UNCERTIFIED}"
        table.add_row(summary.curve.name + mark, *(cell(summary) for cell in columns.values()))
    notes = ["numbers in parentheses: standard error of the last digits of the slope"]
    if "missed" in columns:
        notes.append("missed: estimated share of the fits with a higher maximum somewhere else")
    if regression:
        notes.append(f"{_ERROR}: slope of the regression error in L2(mu)")
    elif details:
        notes.append(f"{_HELLINGER}: slope of the Hellinger distance")
    if details:
        notes += [
            f"{summary.curve.name}: slope of the mean loss {_slope(summary.averages['mean'])}, of"
            f" the median loss {_slope(summary.averages['median'])}"
            for summary in summaries
            if summary.averages
        ]
    table.caption = "\n".join([*notes, *_notes(summaries)])
    return table


def _notes(summaries: Sequence[CurveSummary]) -> Iterable[str]:
    if any(not summary.curve.require_certificate for summary in summaries):
        yield f"{_UNCERTIFIED} replay of a published procedure: uncertified fits enter the rate"
    for summary in summaries:
        if summary.left_out:
            yield f"{summary.curve.name}: uncertified, left out of the rate: {summary.left_out}"
        if summary.uneven:
            yield f"{summary.curve.name}: a selected sample: {summary.uneven}"
        if summary.evidence.missed is not None or summary.evidence.below_truth:
            yield f"{summary.curve.name}: {'; '.join(maximum_clauses(summary))}"
        if summary.with_empty_cells:
            count = summary.with_empty_cells
            yield f"{summary.curve.name}: fits with an empty Voronoi cell: {count}"
        if summary.replication.why:
            count = summary.replication.replicates
            yield f"{summary.curve.name}: {count} replicates: {summary.replication.why}"
    seeking = [s for s in summaries if s.evidence.missed is not None]
    known = sum(s.evidence.above_truth.count for s in seeking if s.evidence.above_truth is not None)
    if known:
        below = sum(s.evidence.below_truth for s in seeking)
        have = f"all {known}" if not below else f"{known - below} of {known}"
        recorded = "" if known == sum(s.done for s in seeking) else " and recorded it"
        yield (
            "bounds of theorems do not need the highest maximum, but a log-likelihood of at least"
            f" that of the truth: {have} fits that seek the maximum{recorded} have one"
        )
    yield from _reasons(summaries)
    yield from _verdict_notes(summaries)


def _reasons(summaries: Sequence[CurveSummary]) -> Iterable[str]:
    """Why curves have no rate; one line for all that lack it for the same reason."""
    reasons: dict[str, list[str]] = {}
    for summary in summaries:
        if summary.note:
            reasons.setdefault(summary.note, []).append(summary.curve.name)
    for note, names in reasons.items():
        who = names[0] if len(names) == 1 else f"{len(names)} of {len(summaries)} curves"
        yield f"{who}: no rate: {note}"


def _verdict_notes(summaries: Sequence[CurveSummary]) -> Iterable[str]:
    """What all curves together say about predictions and straightness."""
    judged = [summary for summary in summaries if summary.verdict.theory_p_value is not None]
    if judged:
        for word in (SLOWER, FASTER):
            agreeing = [summary for summary in judged if summary.verdict.theory == word]
            yield f"{word} than the bound: {len(agreeing)} of {len(judged)} (Holm, {LEVEL:.0%})"
            for summary in agreeing:
                p = summary.verdict.theory_p_value
                yield f"{summary.curve.name}: {word} than the bound: adjusted p = {p:.2g}"
    for summary in summaries:
        if summary.verdict.pre_asymptotic:
            p = summary.verdict.curvature_p_value
            yield f"{summary.curve.name}: slope still changing, no rate yet: adjusted p = {p:.2g}"


def scores_table(scores: Sequence[Scores]) -> Table:
    """Losses of foreign estimates, one row per curve and loss."""
    names = ["estimates", "no measure", "slope", "95% interval", *_AVERAGES]
    names += ["mean loss", "median loss"]
    table = WideTable("", ["curve", "loss"], names)
    for each in scores:
        for label in each.losses:
            rates, (n, values) = each.rates(label), each.finite(label)
            last = values[n == n.max()] if n.size else values
            table.add_row(
                each.curve,
                label,
                str(each.n.size),
                str(each.n.size - n.size),
                _slope(rates.get("all")),
                _interval(rates.get("all")),
                *(_slope(rates.get(name)) for name in _AVERAGES),
                *(f"{average(last):.3g}" if n.size else "" for average in (np.mean, np.median)),
            )
    table.caption = (
        "mean, median: slopes of theirs at each n; the losses are at the largest n\n"
        "no measure: estimates with a mass that is 0 or infinite"
    )
    return table


def _stated(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _slope(rate: RateResult | None) -> str:
    """A slope with the standard error of its last digits, as in -0.49(3)."""
    if rate is None:
        return "none"
    if math.isnan(rate.standard_error):
        return f"{rate.slope:+.2f}"
    digits = round(100 * rate.standard_error)
    return f"{rate.slope:+.2f}({digits or '<1'})"


def _interval(rate: RateResult | None) -> str:
    if rate is None or math.isnan(rate.interval[0]):
        return ""
    return f"{rate.interval[0]:+.2f}, {rate.interval[1]:+.2f}"
