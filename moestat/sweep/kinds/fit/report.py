"""Reports: a sweep as a figure, a Markdown page and a LaTeX table, all from the stored numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from moestat.metrics.information import information_spectrum
from moestat.model.designs import Design
from moestat.rates.rate import RateResult
from moestat.sweep.escape import markdown_code, markdown_table, markdown_text, panel_label
from moestat.sweep.kinds.fit.analysis import ABSORBED, CELL_KINDS, CurveSummary, Exponent
from moestat.sweep.kinds.fit.box import box_of
from moestat.sweep.kinds.fit.evidence import Spread
from moestat.sweep.kinds.fit.shares import share
from moestat.sweep.kinds.fit.spec import Truth, as_fits, loss_label
from moestat.sweep.kinds.fit.verdicts import LEVEL
from moestat.sweep.kinds.fit.words import measured, p_value, rounded, verdict
from moestat.sweep.store.store import Store

_DAGGER = "\N{DAGGER}"
_DASH = "\N{EN DASH}"
_REGRESSION_NOTE = """\
Regression error: slope of the distance of the fitted regression function to the true one in L2(mu),
of the same fits. Starts agree: share of the fits whose starts all end within 0.01 units of
log-likelihood of the best; below 100% these are local least-squares estimates."""
_MAXIMUM_NOTE = """\
Over-specified fits look for the highest maximum in the box. Half agree: share of the fits of which
at least half of the runs reached the best log-likelihood to within 0.01. Miss the maximum:
estimated share of the fits with a higher maximum somewhere else, from the heights that their runs
came to. Without doubt: the slope without the fits of which fewer than half of the runs agree; those
whose maximum is easy to find are no random choice, so that the two slopes may differ.

A theorem's bound does not depend on the highest maximum: its proof uses of an estimate only that it
lies in the compact set and that its log-likelihood is at least that of the truth (the basic
inequalities of van de Geer (2000), Chapters 4 and 9). Under each curve stands the share of the fits
of which this is so; where it is all of them, the bound holds for them, and for every higher
maximum, with the same constants."""
_NEEDED = "n for 0.1"
_LOG_LOG = "on log(log n / n)"
_TRUTH_COLUMNS = ("truth", "smallest eigenvalue", "condition", _NEEDED, "null directions")
_TRUTH_NOTE = """\
The expected information of one sample at each truth (pinned coordinates left out): its smallest
eigenvalue and condition number over the identified directions, the sample size at which every
identified direction has a standard error of 0.1 or less, and the directions along which the
density, or the regression function, does not change at all. Well below that sample size no
asymptotic rate can be seen; along a null direction no estimator converges."""
_NODES = {1: 100, 2: 20}
"""Quadrature nodes per input; with more inputs the information of a truth is not computed."""
_REPLAY = "replay of a published procedure: uncertified fits enter the rate"
_KIND_NAMES = {"exact": "cells of one fitted atom", "over": "cells of several"}

_RULES = f"""\
Slopes are fitted to log loss against log n by weighted least squares; brackets hold 95% intervals
(HC3 covariance, t quantiles). Only certified fits enter, except in curves marked {_DAGGER}.
Published slopes are shown and used for nothing. Shares are of the fits that did not fail; a fit
with an empty cell leaves a true atom without a fitted one. Beside the slope stands the sample size
that its truth needs before an asymptotic rate can be seen ("Truths"). The slope {_LOG_LOG} is
that on the theorems' scale, where n^(-1/2) with its logarithm is 0.50. Cells of 1, 2, 3: slopes of
the error of the atoms in Voronoi cells of that many fitted atoms, the largest error of a block.

The sentence under each curve follows from its numbers, before rounding, by one rule:

- the loss *falls* if the interval lies below 0, *grows* if it lies above, and else *does not
  measurably fall*; in the last two cases it is said if the Hellinger distance falls, by its own
  interval;
- a published slope is *inside* or *outside* the interval of the measured one;
- a prediction is an upper bound with a power of log n, so that two slopes belong to it, without and
  with the logarithm, by the same regression, sizes and weights: a curve is *not slower than the
  bound* if its interval reaches or lies below them, *of this exponent* if it holds one between them
  and is at most half the gap to the next exponent wide to either side, *faster than the bound*,
  which refutes nothing, if it lies below both. All curves considered a slope is *slower* or
  *faster* if the test of it has p < {LEVEL:g} after adjustment for the number of curves (Holm): of
  twenty reports whose predictions all hold, no more than one says so of any curve;
- fits on a bound of the parameter space, uncertified fits, fits whose starts disagree, fits with
  empty cells and failed cells are mentioned if there are any;
- the slope is called *still changing* (pre-asymptotic, so no rate yet) if the test of curvature
  has p < {LEVEL:g}, adjusted likewise."""


def markdown_report(
    store: Store, summaries: Sequence[CurveSummary], figure: str | None = None
) -> str:
    """The report of a sweep in Markdown, with the figure of that file name if there is one."""
    parts = [f"# {markdown_text(store.spec.title)}", _provenance(store, summaries)]
    if figure:
        parts.append(f"![Loss against sample size](<{figure}>)")
    parts += ["## How to read this", _RULES]
    if any(map(_is_regression, summaries)):
        parts.append(_REGRESSION_NOTE)
    spec = as_fits(store.spec)
    truths = [_truth_row(name, truth, spec.design) for name, truth in spec.truths.items()]
    needed = {row[0]: row[_TRUTH_COLUMNS.index(_NEEDED)] for row in truths}
    if any(summary.evidence.missed is not None for summary in summaries):
        parts.append(_MAXIMUM_NOTE)
    parts += ["## Truths", _TRUTH_NOTE, markdown_table(_TRUTH_COLUMNS, truths)]
    for name, curves in _by_panel(summaries).items():
        parts.append(f"## Panel {markdown_text(panel_label(name))}" if name else "## Rates")
        parts.append(_main_table(curves, needed))
        if not all(summary.curve.require_certificate for summary in curves):
            parts.append(f"{_DAGGER} {_REPLAY}.")
        for summary in curves:
            parts += _curve_parts(store, summary)
    return "\n\n".join(parts) + "\n"


def latex_table(summaries: Sequence[CurveSummary]) -> str:
    """The main table of a report in LaTeX, panel by panel, for a document that loads booktabs."""
    columns = _main_columns(summaries)
    head, *_ = _main_rows(summaries, columns)
    lines = [
        "% Needs \\usepackage{booktabs}.  Intervals: 95%, HC3 covariance, t quantiles.",
        f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        "\\toprule",
        " & ".join(map(_tex, head)) + " \\\\",
    ]
    for name, curves in _by_panel(summaries).items():
        lines.append("\\midrule")
        if name:
            title = _tex(f"Panel {panel_label(name)}")
            lines.append(f"\\multicolumn{{{len(head)}}}{{l}}{{{title}}} \\\\")
        lines += [" & ".join(map(_tex, row)) + " \\\\" for row in _main_rows(curves, columns)[1:]]
    lines.append("\\bottomrule")
    if not all(summary.curve.require_certificate for summary in summaries):
        note = _tex(f"{_DAGGER} {_REPLAY}")
        lines.append(f"\\multicolumn{{{len(head)}}}{{l}}{{\\footnotesize {note}}} \\\\")
    return "\n".join([*lines, "\\end{tabular}"]) + "\n"


def _by_panel(summaries: Sequence[CurveSummary]) -> dict[str, list[CurveSummary]]:
    """Panel -> its curves, in the order of the panels' names."""
    panels: dict[str, list[CurveSummary]] = {}
    for summary in summaries:
        panels.setdefault(summary.curve.panel, []).append(summary)
    return dict(sorted(panels.items()))


def _provenance(store: Store, summaries: Sequence[CurveSummary]) -> str:
    spec = as_fits(store.spec)
    design = ", ".join(f"{key} = {value}" for key, value in spec.design_table.items())
    settled = sum(summary.done + summary.failed for summary in summaries)
    planned = sum(summary.planned for summary in summaries)
    made_by = {
        ", ".join(f"{name} {number}" for name, number in versions.items())
        for versions in store.makers()
        if versions
    }
    lines = [
        f"n from {spec.sizes[0]:,} to {spec.sizes[-1]:,} ({len(spec.sizes)} sizes), "
        f"{_replicates(summaries)}, seed {spec.seed}; inputs: {design}.",
        f"Spec {spec.digest[:12]}; {settled} of {planned} cells have results"
        + ("." if settled == planned else ": the sweep is not complete."),
    ]
    lines += [f"Made by {text}." for text in sorted(made_by)]
    return "  \n".join(lines)


def _replicates(summaries: Sequence[CurveSummary]) -> str:
    """How many replicates the curves have."""
    counts = sorted({summary.replication.replicates for summary in summaries})
    if len(counts) == 1:
        return f"{counts[0]} replicates"
    return f"{counts[0]} to {counts[-1]} replicates, as the slopes' intervals needed them"


def _truth_row(name: str, truth: Truth, design: Design) -> list[str]:
    """The row of a truth: eigenvalue, condition, sample size and null directions."""
    family = truth.family
    if family.n_features not in _NODES:
        return [name, *[_DASH] * 3, f"not computed for {family.n_features} inputs"]
    if truth.noise == 0.0:
        return [name, *[_DASH] * 3, "without noise the information is infinite"]
    spectrum = information_spectrum(
        family, truth.theta, design, n_nodes=_NODES[family.n_features], noise=truth.noise
    )
    nulls = "; ".join(str(direction) for direction in spectrum.null_directions)
    return [
        name,
        f"{spectrum.identified[0]:.1e}",
        f"{spectrum.condition:.1e}",
        f"{spectrum.sample_size(0.1):.1e}",
        nulls or "none",
    ]


def _is_regression(summary: CurveSummary) -> bool:
    """Whether a curve is of regression functions, whose error then has a column of its own."""
    return summary.errors.size > 0


_Columns: TypeAlias = dict[str, Callable[[CurveSummary], str]]
_COLUMNS: _Columns = {
    "curve": lambda summary: (
        summary.curve.name + ("" if summary.curve.require_certificate else f" {_DAGGER}")
    ),
    "published": lambda summary: _stated(summary.curve.published),
    "measured": lambda summary: "none" if summary.rate is None else measured(summary.rate),
    "theory": lambda summary: _stated(summary.curve.theory),
    _LOG_LOG: lambda summary: _log_log(summary.rate),
    "certified": lambda summary: share(summary.certified, summary.done),
    "on a bound": lambda summary: share(summary.on_bound, summary.done),
    "failed": lambda summary: str(summary.failed),
    "empty cells": lambda summary: share(summary.with_empty_cells, summary.done),
}
_REGRESSION_COLUMNS: _Columns = {
    "regression error": lambda summary: (
        "none" if summary.regression_error is None else measured(summary.regression_error)
    ),
    "starts agree": lambda summary: share(
        summary.evidence.unanimous, summary.evidence.with_several
    ),
}
_MAXIMUM_COLUMNS: _Columns = {
    "half agree": lambda summary: share(summary.evidence.agreeing, summary.evidence.with_several),
    "miss the maximum": lambda summary: (
        _DASH if summary.evidence.missed is None else f"{summary.evidence.missed:.0%}"
    ),
    "without doubt": lambda summary: _DASH if summary.sure is None else _cell(summary.sure),
}


def _main_columns(summaries: Sequence[CurveSummary]) -> _Columns:
    """The columns that some of the curves have something to say in."""
    regression = any(map(_is_regression, summaries))
    columns = _COLUMNS | _size_columns(summaries) | (_REGRESSION_COLUMNS if regression else {})
    if any(summary.evidence.missed is not None for summary in summaries):
        columns |= _MAXIMUM_COLUMNS
    return columns


def _main_rows(summaries: Sequence[CurveSummary], columns: _Columns) -> list[list[str]]:
    """The main table as plain text, its head first."""
    rows = [[cell(summary) for cell in columns.values()] for summary in summaries]
    return [list(columns), *rows]


def _size_columns(summaries: Sequence[CurveSummary]) -> _Columns:
    """One column for each number of fitted atoms that some curve has in a Voronoi cell."""

    def column(size: int) -> Callable[[CurveSummary], str]:
        return lambda summary: _cell(summary.atoms[size]) if size in summary.atoms else _DASH

    seen = {size for summary in summaries for size in summary.atoms}
    return {f"cells of {size}": column(size) for size in sorted(seen)}


def _main_table(summaries: Sequence[CurveSummary], needed: Mapping[str, str]) -> str:
    """The main table with the sample size that a curve's truth needs beside its slope."""
    head, *rows = _main_rows(summaries, _main_columns(summaries))
    after = head.index("measured") + 1
    sizes = [_NEEDED, *(needed[summary.curve.truth] for summary in summaries)]
    table = [
        [*row[:after], size, *row[after:]] for row, size in zip([head, *rows], sizes, strict=True)
    ]
    return markdown_table(table[0], table[1:])


def _curve_parts(store: Store, summary: CurveSummary) -> list[str]:
    """Heading, sentence, setting and evidence of one curve."""
    curve, spec = summary.curve, as_fits(store.spec)
    truth = spec.truths[curve.truth]
    setting = (
        f"{curve.n_experts} experts fitted to the {truth.family.n_experts} of truth"
        f" {markdown_code(curve.truth)} ({truth.family.gate.name} gate);"
        f" loss {loss_label(curve.loss)}; solver {_options(curve.solver)};"
        f" starts {_options(curve.starts)}."
    )
    if set(curve.starts) <= {"truth", "measure", "noise", "decay"}:
        setting += " Estimates are maxima near the truth, of local theory."
    setting += f" Box: {box_of(spec, curve)}."
    parts = [f"### {markdown_text(curve.name)}", f"**{verdict(summary)}**", setting]
    if curve.note:
        parts.append(f"> {markdown_text(curve.note)}")
    if summary.done:
        parts.append(markdown_table(("evidence", "value"), _evidence_rows(summary)))
        parts += _exponents(summary)
    return parts


def _evidence_rows(summary: CurveSummary) -> Iterable[tuple[str, str]]:
    evidence, done = summary.evidence, summary.done
    yield "fits", f"{done} of {summary.planned} cells, {summary.left_out} left out of the rate"
    if summary.replication.why:
        yield "replicates", f"{summary.replication.replicates}: {summary.replication.why}"
    if evidence.statuses:
        yield "solver ended with", _count_shares(evidence.statuses, done)
    if evidence.condition:
        yield "condition number", _spread(evidence.condition, ".1e", "infinite")
    yield (
        "parameters on a bound",
        _count_shares(evidence.active, done) if evidence.active else "none",
    )
    if evidence.agreement:
        yield "starts per fit", _count_shares(evidence.n_starts, done)
        yield "share of starts at the best fit", _spread(evidence.agreement, ".2f", "unknown")
    if evidence.missed is not None:
        yield "share of fits that miss their maximum, estimated", f"{evidence.missed:.0%}"
    if evidence.doubtful:
        yield "fits in doubt", share(evidence.doubtful, done)
        if summary.sure is not None:
            yield "slope without the fits in doubt", _exponent(summary.sure)
    if evidence.above_near_truth is not None:
        yield (
            "log-likelihood above the best run near the truth",
            f"{share(evidence.higher, evidence.above_near_truth.count)} of the fits;"
            f" {_spread(evidence.above_near_truth, '.2f', 'unknown')}",
        )
    if evidence.above_truth is not None:
        known = evidence.above_truth.count
        recorded = "" if known == done else " that recorded it"
        yield (
            "log-likelihood above that of the truth",
            f"{share(known - evidence.below_truth, known)} of the fits{recorded};"
            f" {_spread(evidence.above_truth, '.2f', 'unknown')}",
        )
    if evidence.confirmed:
        yield "second pass", f"{evidence.moved} of {evidence.confirmed} fits moved higher"
        if summary.first is not None:
            yield "slope before the second pass", measured(summary.first)
    if evidence.n_optima:
        yield "distinct certified optima", _count_shares(evidence.n_optima, done)
    if evidence.gains:
        yield "gain left in uncertified fits", _spread(evidence.gains, ".1e", "unknown")
    if summary.rate is not None:
        yield from _shape_rows(summary.rate, summary.verdict.pre_asymptotic)
        yield f"slope of the loss ({loss_label(summary.curve.loss)})", measured(summary.rate)
    for name, rate in summary.averages.items():
        yield f"slope of the {name} loss", measured(rate)
    if summary.hellinger is not None:
        yield "slope of the Hellinger distance", measured(summary.hellinger)
    if summary.regression_error is not None:
        yield "slope of the regression error", measured(summary.regression_error)
    if summary.coverage is not None and _is_regression(summary):
        yield (
            "slope of the coverage (true atoms to the nearest fitted)",
            measured(summary.coverage),
        )
    for label, exponent in summary.also.items():
        yield f"slope of {label}", _exponent(exponent)


def _shape_rows(rate: RateResult, pre_asymptotic: bool) -> Iterable[tuple[str, str]]:
    """Whether the log-log curve is straight, and its slope on the theorems' own scale."""
    if not math.isnan(rate.curvature_p_value):
        word = "pre-asymptotic" if pre_asymptotic else "none seen"
        curvature = f"{rounded(rate.curvature)} \N{PLUS-MINUS SIGN} {rounded(rate.curvature_error)}"
        yield "curvature of log loss", f"{curvature} ({p_value(rate.curvature_p_value)}): {word}"
        low, high = rate.last_interval
        yield (
            "slope over the last sizes",
            f"{rounded(rate.last_slope)} [{rounded(low)}, {rounded(high)}]",
        )
    if not math.isnan(rate.log_log_error):
        yield f"slope {_LOG_LOG}", _log_log(rate)


def _log_log(rate: RateResult | None) -> str:
    """The slope on the theorems' scale, where a parametric rate is +1/2, with its error."""
    if rate is None or math.isnan(rate.log_log_slope):
        return _DASH
    slope = rounded(rate.log_log_slope)
    if math.isnan(rate.log_log_error):
        return slope
    return f"{slope} \N{PLUS-MINUS SIGN} {rounded(rate.log_log_error)}"


def _exponents(summary: CurveSummary) -> list[str]:
    """The table of exponents within Voronoi cells, one column per kind of cell."""
    kinds = [kind for kind in CELL_KINDS if kind in summary.cell_errors]
    if not kinds:
        return []
    head = ["error in", *(_KIND_NAMES[kind] for kind in kinds)]
    columns = [summary.cell_errors[kind] for kind in kinds]
    rows = [["fits", *map(_fits, columns)]]
    absorbed = []
    for name in columns[0]:
        exponents = [column[name] for column in columns]
        if all(each.note == ABSORBED for each in exponents):
            absorbed.append(name)
            continue
        # Masses of two cells err alike, for they add up to one, and so does what all cells share.
        rows.append(
            [name, _cell(exponents[0])]
            + ["the same" if _equal(each, exponents[0]) else _cell(each) for each in exponents[1:]]
        )
    parts = ["Slopes of the errors within Voronoi cells:", markdown_table(head, rows)]
    notes = dict.fromkeys(each.note for column in columns for each in column.values() if each.note)
    left_out = f" ({', '.join(absorbed)}, not in the table)" if absorbed else ""
    return [
        *parts,
        *(f"0: {note}{left_out}." if note == ABSORBED else f"none: {note}." for note in notes),
    ]


def _equal(one: Exponent, other: Exponent) -> bool:
    if one.rate is None or other.rate is None:
        return False
    pairs = ((one.rate.slope, other.rate.slope), (one.rate.intercept, other.rate.intercept))
    return all(math.isclose(*pair, rel_tol=1e-9) for pair in pairs)


def _cell(exponent: Exponent) -> str:
    """A slope, ``0`` for an error that is 0, or ``none``."""
    if exponent.note == ABSORBED:
        return "0"
    return "none" if exponent.note else _exponent(exponent)


def _fits(exponents: Mapping[str, Exponent]) -> str:
    """Number of fits that have such cells."""
    counts = [each.rate.n_observations for each in exponents.values() if each.rate is not None]
    return str(max(counts)) if counts else _DASH


def _exponent(exponent: Exponent) -> str:
    return f"none: {exponent.note}" if exponent.rate is None else measured(exponent.rate)


def _stated(value: float | None) -> str:
    return _DASH if value is None else f"{value:g}"


def _count_shares(counts: Mapping[str, int] | Mapping[int, int], total: int) -> str:
    """Values with the share of fits that have them."""
    return ", ".join(f"{value} ({share(count, total)})" for value, count in counts.items())


def _spread(spread: Spread, form: str, missing: str) -> str:
    """Median, quartiles and range of a quantity."""
    values = (spread.median, spread.lower, spread.upper, spread.smallest, spread.largest)
    median, lower, upper, smallest, largest = (format(value, form) for value in values)
    text = f"median {median}, quartiles {lower} to {upper}, range {smallest} to {largest}"
    return text + (f", {missing} in {spread.missing} fits" if spread.missing else "")


def _options(options: Mapping[str, object]) -> str:
    """A table of a spec on one line, its name first."""
    settings = ", ".join(f"{key} = {value}" for key, value in options.items() if key != "name")
    name = str(options.get("name", ""))
    return f"{name} ({settings})" if name and settings else name or settings


_TEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "|": "\\textbar{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    _DAGGER: "$^\\dagger$",
    _DASH: "--",
    "\N{PLUS-MINUS SIGN}": "$\\pm$",
}


def _tex(text: str) -> str:
    """Plain text for LaTeX; the signs of numbers become minus signs."""
    escaped = "".join(_TEX.get(character, character) for character in text)
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", escaped)
