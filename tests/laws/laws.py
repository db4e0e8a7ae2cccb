"""The laws: each yields cells, a question of a case that holds, is refused, or fails."""

from __future__ import annotations

import copy
import io
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import roots_legendre

import moestat
from moestat.base.warnings import (
    AliasedWarning,
    IdentificationWarning,
    LimitWarning,
    MoEWarning,
    SeparationWarning,
)
from moestat.estimation.results.results import load
from tests import oracle
from tests.laws.cases import Case, RefusedError, is_plain
from tests.laws.questions import ABOUT_ROWS, OTHERS, OWN, SAME, numbers, response_of

HOLDS, REFUSED, FAILS = "holds", "refused", "fails"


@dataclass(frozen=True)
class Cell:
    """A question of a case, what came of it, and in which words."""

    question: str
    verdict: str
    words: str = ""


LAWS: dict[str, Callable[[Case], Iterator[Cell]]] = {}


def law(function: Callable[[Case], Iterator[Cell]]) -> Callable[[Case], Iterator[Cell]]:
    """Register a law under the name of its function."""
    LAWS[function.__name__.replace("_", " ")] = function
    return function


def judge(name: str, case: Case) -> list[Cell]:
    """The cells of one law for one case; one cell where the fit itself is refused."""
    try:
        _ = case.result
    except RefusedError as refusal:
        return [Cell("fit", REFUSED, str(refusal))]
    except Exception as error:  # what is no refusal is reported with its case
        return [Cell("fit", FAILS, repr(error))]
    return list(LAWS[name](case))


def asked(call: Callable[[], Any]) -> tuple[Any, str | None, str | None]:
    """An answer, or the sentence of a refusal, or what else came of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoEWarning)
            return call(), None, None
    except Exception as error:  # what is no refusal is reported with its case
        if is_plain(error):
            return None, str(error), None
        return None, None, f"{type(error).__name__}: {error}"


def compared(question: str, one: Any, other: Any, rtol: float = 1e-8, atol: float = 1e-9) -> Cell:
    """Whether two answers are the same."""
    one, other = numbers(one), numbers(other)
    if one.shape != other.shape:
        return Cell(question, FAILS, f"shapes {one.shape} and {other.shape}")
    if one.dtype.kind in "OUS":
        same = np.array_equal(one, other)
        return Cell(question, HOLDS if same else FAILS, "" if same else "labels differ")
    if np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
        return Cell(question, HOLDS)
    finite = np.isfinite(one) & np.isfinite(other)
    gap = np.max(np.abs(one - other)[finite], initial=0.0)
    return Cell(question, FAILS, f"differ by {gap:.3g}, first {one.flat[0]} and {other.flat[0]}")


_WELL_POSED = 1e6
"""Condition of the information up to which estimates agree where log-likelihoods do to 1e-6."""


def _within(question: str, gap: float, room: float) -> Cell:
    """Whether a difference is small."""
    return Cell(question, HOLDS) if abs(gap) <= room else Cell(question, FAILS, f"off by {gap:.3g}")


@law
def own_rows_asked_as_new(case: Case) -> Iterator[Cell]:
    """Rows of the fit, asked as new rows, have the answers that they have as own ones."""
    rows = case.rows
    y = response_of(case, rows)
    for question, call in ABOUT_ROWS.items():
        own, refusal, foreign = asked(lambda question=question: OWN[question](case.result))
        new, other, strange = asked(lambda call=call: call(case, case.result, rows, y))
        if foreign or strange or (refusal is None) != (other is None):
            words = foreign or strange or f"own: {refusal}; new: {other}"
            yield Cell(question, FAILS, str(words))
        elif refusal:
            yield Cell(question, REFUSED, refusal)
        else:
            yield compared(question, own, new)
            grouped = question == "score_samples" and "groups" in case.options
            if np.ndim(new) in (1, 2) and not grouped and question != "quantile_residuals":
                kept = hasattr(new, "index") and list(new.index) == list(rows.index)
                yield Cell(f"{question}, index", HOLDS if kept else FAILS)


@law
def permutations_of_rows_and_columns(case: Case) -> Iterator[Cell]:
    """Answers for rows in another order, from a table with columns in another order."""
    rows = case.rows
    order = np.random.default_rng(1).permutation(len(rows))
    mixed = rows.iloc[order][list(rows.columns[::-1])]
    for question, call in ABOUT_ROWS.items():
        if question in ("quantile_residuals", "simulate"):
            continue  # random, by the order of the rows
        one, refusal, foreign = asked(
            lambda call=call: call(case, case.result, rows, response_of(case, rows))
        )
        if refusal or foreign:
            continue  # said by the law of own rows
        other, refusal, foreign = asked(
            lambda call=call: call(case, case.result, mixed, response_of(case, mixed))
        )
        if refusal or foreign:
            yield Cell(question, FAILS, str(refusal or foreign))
            continue
        one = numbers(one)
        whole = one.ndim == 0 or len(one) != len(rows)  # a total, or one answer a group
        yield compared(question, one if whole else one[order], other)


def _has_key_of_points(axes: Any) -> bool:
    """Whether the legend has all colours of the points, if there are several."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_hex

    points = [each for each in axes.collections if isinstance(each, PathCollection)]
    seen = {to_hex(colour) for each in points for colour in each.get_facecolors()}
    legend = axes.get_legend()
    keys = [] if legend is None else legend.legend_handles
    return len(seen) < 2 or seen <= {to_hex(key.get_color()) for key in keys}


@law
def an_answer_or_one_sentence(case: Case) -> Iterator[Cell]:
    """Every question has an answer or is refused in one sentence; data stay as they were.

    The answer of a plot is axes, or an array of axes, with a key of the colours of its points.
    """
    import matplotlib.pyplot as plt

    before = case.frame.copy()
    for question, call in OTHERS.items():
        answer, refusal, foreign = asked(lambda call=call: call(case, case.result))
        plt.close("all")
        if question.startswith("plot") and answer is not None:
            drawn = isinstance(answer, plt.Axes | np.ndarray) and np.size(answer) > 0
            drawn &= all(isinstance(axes, plt.Axes) for axes in np.ravel(answer))
            foreign = None if drawn else f"{type(answer).__name__} in place of axes"
            if drawn and not all(map(_has_key_of_points, np.ravel(answer))):
                foreign = "points of several colours without a key"
        yield Cell(
            question, FAILS if foreign else REFUSED if refusal else HOLDS, foreign or refusal or ""
        )
    yield Cell("data unchanged", HOLDS if case.frame.equals(before) else FAILS)


@law
def a_summary_says_what_its_notes_say(case: Case) -> Iterator[Cell]:
    """Estimates without a finite value are those of a fit that warns of it, and no other word."""
    result = case.result
    told = {LimitWarning.__name__, SeparationWarning.__name__} & {*result.kinds}
    summary = str(result.summary())
    wrong = "(no finite value)" in summary and not told
    yield Cell("no finite value", FAILS if wrong else HOLDS, f"warned of {result.kinds}")
    told = {kind.__name__ for kind in (AliasedWarning, IdentificationWarning)} & {*result.kinds}
    known = told or result.family.has_jumps or not result.certificate.certified
    wrong = "(not identified)" in summary and not known
    yield Cell("not identified", FAILS if wrong else HOLDS, f"warned of {result.kinds}")
    separated = SeparationWarning.__name__ in result.kinds
    words = " ".join(f"{summary} {result.explain()}".split())
    wrong = separated and re.search("(Certified|fit is) a local maximum", words)
    yield Cell("a local maximum", FAILS if wrong else HOLDS, "the likelihood has none")


def _again(case: Case, frame: pd.DataFrame, **changed: Any) -> Any:
    """A fit from the estimate of the case."""
    return case.fit(frame, starts=case.result.theta, **changed)


def _height(
    case: Case, question: str, call: Callable[[], Any], less: float = 0.0
) -> Iterator[Cell]:
    """Whether another fit has the log-likelihood of the case, less a known amount."""
    result = case.result
    if not result.certificate.certified or result.certificate.collapsed:
        return  # no maximum that two fits must share
    again, refusal, foreign = asked(call)
    if refusal or foreign:
        yield Cell(question, FAILS, str(refusal or foreign))
        return
    gap = again.llf - (result.llf - less)
    if not result.certificate.condition < _WELL_POSED:
        # On a flat ridge a fit may go on for many steps, each of which gains next to nothing.
        gap = min(gap, 0.0)
    room = 1e-3 if result.family.has_jumps else 2e-4
    yield _within(question, gap, room)
    if abs(gap) < 1e-6 and not result.family.has_jumps and again.certificate.certified:
        # Both fits begin at one estimate: where a variance goes to 0, a second climb still moves
        # the first one's estimate by a part of a standard error that some answers show.
        settled, _, _ = asked(lambda: _again(case, case.frame))
        yield from _same_answers(case, question, settled, again)


def _same_answers(case: Case, question: str, result: Any, again: Any) -> Iterator[Cell]:
    """Whether two fits with one maximum give the same answers, or the same refusal."""
    if not result.certificate.condition < _WELL_POSED:
        return  # what the data do not tell differs between estimates of one height
    for name, call in SAME.items():
        one, refusal, foreign = asked(lambda call=call: call(case, result))
        other, refused, strange = asked(lambda call=call: call(case, again))
        if foreign or strange or (refusal is None) != (refused is None):
            yield Cell(f"{question}, {name}", FAILS, f"{foreign or refusal}; {strange or refused}")
        elif refusal:
            yield Cell(f"{question}, {name}", REFUSED, refusal)
        else:
            yield compared(f"{question}, {name}", one, other, rtol=2e-3, atol=1e-4)


@law
def weights_are_copies(case: Case) -> Iterator[Cell]:
    """A row, or group, of weight w is w of them; one of weight 0 is none."""
    if "weights" not in case.options:
        return
    frame = case.rows
    copies = []
    for j in range(int(frame["w"].max())):
        part = frame[frame["w"] > j].copy()
        part["id"] = part["id"] + f", copy {j}"
        copies.append(part)
    whole = pd.concat(copies, ignore_index=True)
    whole["w"] = 1
    yield from _height(case, "copies", lambda: _again(case, whole))
    kept = frame[frame["w"] > 0]
    want, refusal, _ = asked(lambda: case.result.log_likelihood(frame, response_of(case, frame)))
    if refusal is None:
        # Of any parameters, whether or not they are a maximum.
        for question, other in (("copies, at the estimate", whole), ("weight 0, at it", kept)):
            height, refusal, foreign = asked(
                lambda other=other: case.result.log_likelihood(other, response_of(case, other))
            )
            if refusal or foreign:
                yield Cell(question, FAILS, str(refusal or foreign))
            else:
                yield compared(question, height, want)
    yield from _height(case, "weight 0", lambda: _again(case, kept))


@law
def groups_of_one_row_are_none(case: Case) -> Iterator[Cell]:
    """Where every row is a group of its own there are no groups."""
    if case.options != ("groups",):
        return
    single = case.rows.assign(id=np.arange(len(case.rows)))
    plain, refusal, foreign = asked(lambda: case.fit(single))
    if refusal or foreign:
        yield Cell("fit", FAILS, str(refusal or foreign))
        return
    theta = plain.theta
    other, refusal, foreign = asked(lambda: case.fit(single, starts=theta, groups=None))
    if refusal or foreign:
        yield Cell("fit", FAILS, str(refusal or foreign))
        return
    if plain.certificate.certified and other.certificate.certified:
        yield compared("log-likelihood", plain.llf, other.llf, rtol=0.0, atol=2e-4)
        if plain.certificate.certified and other.certificate.certified:
            yield from _same_answers(case, "answers", plain, other)


@law
def a_constraint_holds(case: Case) -> Iterator[Cell]:
    """Coefficients that are equal or known are so in the estimate, and counted so."""
    if not {"equal", "fixed"} & {*case.options}:
        return
    family, theta = case.result.family, case.result.theta
    yield Cell("estimate", *obeyed(case.result))
    lost = case.result.identified.rank < theta.size - len(family.ties)
    yield Cell("degrees of freedom", HOLDS if lost or family.ties else FAILS)


def obeyed(result: Any) -> tuple[str, str]:
    """Whether an estimate obeys the constraints of its family, and by how much it does not."""
    family, theta, gap = result.family, result.theta, 0.0
    for one in family.constraints:
        at = family.blocks[one.block]
        at = at if one.experts is None else at[list(one.experts)]
        at = at if one.inputs is None else at[..., list(one.inputs)]
        off = np.ptp(theta[at], axis=0) if one.value is None else np.abs(theta[at] - one.value)
        gap = max(gap, float(np.max(off)))
    return (HOLDS, "") if gap <= 1e-9 else (FAILS, f"off by {gap:.3g}")


@law
def names_are_arrays(case: Case) -> Iterator[Cell]:
    """A formula is the fit to its columns as arrays."""
    if case.option not in ("plain", "weights", "groups"):
        return
    rows, data = case.rows, case.result.data
    given = dict(case.arguments)
    model = given.pop("family")
    for name in ("weights", "groups"):
        given.pop(name, None)
    given |= {} if "weights" not in case.options else {"sample_weight": rows["w"].to_numpy()}
    given |= {} if "groups" not in case.options else {"groups": rows["id"].to_numpy()}
    family = case.result.family
    for name in ("gate_inputs", "expert_inputs"):
        if getattr(family, name) is not None:
            given[name] = list(getattr(family, name))
    y = np.asarray(response_of(case, rows))
    if case.member.kind == "trials":
        y = np.column_stack([y[:, 0], y[:, 1] - y[:, 0]])
    elif case.member.kind == "several":
        y = response_of(case, rows)
    starts = [moestat.estimation.starts.GivenStarts(case.result.theta[None])]
    yield from _height(
        case,
        "fit",
        lambda: moestat.fit(model, data.X, y, starts=starts, rng=0, threads=1, **given),
    )


@law
def units_of_the_data(case: Case) -> Iterator[Cell]:
    """Inputs in other units, and shifted; responses in other units where they have one."""
    if case.option not in ("plain", "prior") or case.member.kind == "several":
        return
    family, frame = case.result.family, case.rows
    axes = (family.gate.units, family.expert.units, family.likelihood.units)
    alike = any(axis.common_scale for axis in axes)
    scale = {"x": 1e3, "z": 1e3 if alike else 1e-4}
    for name, factor in scale.items():
        frame = frame.assign(**{name: frame[name] * factor})
    if all(axis.shift_inputs for axis in axes):
        frame = frame.assign(x=frame["x"] + 5e3)
    found = case.fit(frame)
    yield from _same_optimum(case, "inputs", frame, found)
    if (
        case.member.kind == "one"
        and family.likelihood.support is None
        and not family.likelihood.counts
    ):
        if family.likelihood.ends == (0.0, 1.0) or not _scales(family):
            return
        unit = 1e6
        moved = case.rows.assign(y=case.rows["y"] * unit)
        less = float(case.result.nobs * np.log(unit))
        yield from _same_optimum(case, "responses", moved, case.fit(moved), less)


def _scales(family: Any) -> bool:
    """Whether the density in another unit of the response is one of the family."""
    if family.likelihood.link is not None:
        return family.expert.name == "linear"
    return all(u.scale_response for u in (family.gate.units, family.expert.units))


def _same_optimum(
    case: Case, question: str, frame: pd.DataFrame, found: Any, less: float = 0.0
) -> Iterator[Cell]:
    """Whether the maximum found in other units is one in those of the case."""
    base, end = case.result, found.certificate
    if not (base.certificate.certified and end.certified) or end.collapsed:
        return
    if base.certificate.active or end.active or base.certificate.collapsed:
        return
    gap = found.llf - (base.llf - less)
    if abs(gap) > 1e-3:
        # Searches may end elsewhere: each must then be a maximum in the units of the other.
        theta = _in_units_of(case, found, frame)
        if theta is None:
            return
        again = case.fit(case.rows, starts=theta)
        gap = again.llf - (found.llf + less)
    yield _within(question, gap, 1e-3)


def _in_units_of(case: Case, found: Any, frame: pd.DataFrame) -> np.ndarray | None:
    """The estimate of data in other units in the units of the case, None where it has no such."""
    from moestat.model.units import Coordinates, DataUnits

    rows = case.rows
    pairs = [np.polyfit(rows[n].to_numpy(), frame[n].to_numpy(), 1) for n in found.data.features]
    scale, centre = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    unit, likelihood = 1.0, found.family.likelihood
    if likelihood.support is None and likelihood.link is None:
        unit = float(np.polyfit(rows["y"].to_numpy(), frame["y"].to_numpy(), 1)[0])
    elif likelihood.support is None and "y" in rows and not np.allclose(rows["y"], frame["y"]):
        return None
    return Coordinates(found.family, DataUnits(centre, scale, 0.0, unit)).inward(found.theta)


@law
def one_distribution(case: Case) -> Iterator[Cell]:
    """Mean, variance, quantile, distribution function and density belong together."""
    result, family = case.result, case.result.family
    if case.option != "plain" or family.likelihood.support is not None or case.member.kind != "one":
        return
    row = case.rows.iloc[[0]]
    ask = lambda which, **more: float(np.ravel(np.asarray(result.predict(row, which, **more)))[0])  # noqa: E731
    if family.likelihood.counts:
        grid = np.arange(
            float(family.likelihood.inside) if family.likelihood.inside else 0.0, 4000.0
        )
        if "trials" in family.likelihood.options:
            grid = np.arange(family.likelihood.options["trials"] + 1.0)
        mass = _density(result, row, grid)
        step = 1.0
    else:
        low, high = ask("quantile", q=1e-7), ask("quantile", q=1.0 - 1e-7)
        nodes, weights = roots_legendre(4000)
        inside = family.likelihood.ends
        low, high = max(low, inside[0]), min(high, inside[1])
        # Nodes close to either end: densities may have poles there.
        u = 0.5 * (1.0 + nodes)
        bent = u * u * (3.0 - 2.0 * u)
        grid = low + (high - low) * bent
        step = 0.5 * weights * (high - low) * 6.0 * u * (1.0 - u)
        mass = _density(result, row, grid)
    total = float(np.sum(mass * step))
    yield compared("density", total, 1.0, atol=1e-4)
    mean = float(np.sum(grid * mass * step))
    yield compared("mean", ask("mean"), mean, rtol=2e-3, atol=1e-4)
    heavy = "dof" in family.blocks and np.exp(result.theta[family.blocks["dof"]]).min() < 4.5
    if not heavy:
        variance = float(np.sum((grid - mean) ** 2 * mass * step))
        yield compared("variance", ask("variance"), variance, rtol=1e-2, atol=1e-4)
    middle = ask("quantile", q=0.3)
    below = float(np.sum((mass * step)[grid <= middle]))
    cdf = ask("cdf", y=middle)
    if family.likelihood.counts:
        yield Cell("quantile", HOLDS if cdf >= 0.3 - 1e-9 else FAILS, f"{cdf}")
        yield compared("cdf", cdf, below, atol=1e-6)
    else:
        yield compared("quantile", cdf, 0.3, atol=1e-6)
        yield compared("cdf", cdf, below, atol=5e-3)
    drawn = np.asarray(result.simulate(pd.concat([row] * 4000), rng=0), dtype=float)
    share = float(np.mean(drawn <= middle))
    yield compared("simulate", share, cdf, atol=5.0 * 0.5 / np.sqrt(4000))


def _density(result: Any, row: pd.DataFrame, grid: np.ndarray) -> np.ndarray:
    many = pd.concat([row] * grid.size)
    with np.errstate(all="ignore"):
        return np.asarray(result.predict(many, "density", y=grid))


@law
def a_plain_density(case: Case) -> Iterator[Cell]:
    """The log-likelihood is that of plain NumPy, and its gradient is 0 where nothing is bound."""
    result, family = case.result, case.result.family
    if family.is_regression or case.member.kind == "several" or "groups" in case.options:
        return
    rows = result.rows
    plain = moestat.log_likelihood(family, result.theta, rows.X, rows.y, rows.weight)
    if case.member.kind == "one":
        response = np.asarray(rows.y)
        blocks = oracle.blocks_of(family, result.theta)
        with np.errstate(all="ignore"):
            plain = float(
                rows.weight @ np.real(oracle.log_density(family, blocks, rows.X, response))
            )
        if not np.isfinite(plain):
            return  # the plain formula overflows where the compiled one does not
    if "prior" not in case.options:
        yield compared("log-likelihood", result.llf, plain, rtol=1e-9, atol=1e-8)
    if "prior" in case.options or not result.certificate.certified or family.has_jumps:
        return
    if family.gate.kink or result.certificate.active or "equal" in case.options:
        return
    if not result.certificate.condition < _WELL_POSED:
        return  # the inverse of the information is of rounding
    slope = moestat.score(family, result.theta, rows.X, rows.y, rows.weight)
    told = np.flatnonzero(np.isfinite(result.theta_bse))
    spread = result._covariance[np.ix_(told, told)]
    # What a Newton step would gain, in units of log-likelihood.
    gap = 0.5 * float(slope[told] @ np.nan_to_num(spread) @ slope[told])
    yield _within("score", gap, 1e-3)


STORED: dict[str, Callable[[Any], Any]] = {
    "family": lambda result: result.family,
    "summary": lambda result: str(result.summary()),
    "explanation": lambda result: str(result.explain()),
    "certificate": lambda result: repr(result.certificate),
    "prior": lambda result: result.prior,
    "log posterior": lambda result: result.log_posterior,
    "responsibilities": lambda result: asked(lambda: np.asarray(result.responsibilities).tobytes()),
    "effects": lambda result: repr(asked(result.random_effects)),
}
"""What a stored result has again, equal in every bit."""


@law
def kept_and_read_again(case: Case) -> Iterator[Cell]:
    """Results are the same after files, pickles, copies and other numbers of threads."""
    result, rows = case.result, case.rows
    want, refusal, _ = asked(lambda: numbers(result.predict(rows)))
    ways: dict[str, Callable[[], Any]] = {
        "save": lambda: _through_file(result),
        "pickle": lambda: pickle.loads(pickle.dumps(result)),
        "deepcopy": lambda: copy.deepcopy(result),
    }
    for question, call in ways.items():
        other, refused, foreign = asked(call)
        if refused or foreign:
            yield Cell(question, REFUSED if refused else FAILS, refused or foreign or "")
            continue
        if refusal is None:
            again, refused, foreign = asked(lambda other=other: other.predict(rows))
            if refused or foreign:
                yield Cell(question, FAILS, refused or foreign or "")
                continue
            yield compared(question, want, again, rtol=1e-12)
        for what, ask in STORED.items():
            same = ask(result) == ask(other)
            yield Cell(f"{question}, {what}", HOLDS if same else FAILS, "they differ")
    yield from _height(case, "threads", lambda: case.fit(starts=result.theta, threads=2))


def _through_file(result: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        result.save(path)
        return load(path)


@law
def censoring_of_no_width(case: Case) -> Iterator[Cell]:
    """Bounds that are equal are known responses."""
    if case.member.kind != "censored" or case.option != "plain":
        return
    known = case.rows.assign(high=case.rows["low"])
    one, refusal, foreign = asked(lambda: case.fit(known))
    if refusal or foreign:
        yield Cell("fit", FAILS, str(refusal or foreign))
        return
    plain = Case(type(case.member)(case.member.likelihood, case.member.gate), "plain", case.seed)
    other, refusal, foreign = asked(
        lambda: plain.fit(known.assign(y=known["low"]), starts=one.theta)
    )
    if refusal or foreign:
        yield Cell("fit", FAILS, str(refusal or foreign))
    elif one.certificate.certified and other.certificate.certified:
        yield compared("log-likelihood", one.llf, other.llf, rtol=0.0, atol=2e-4)


@law
def equal_experts_are_one(case: Case) -> Iterator[Cell]:
    """The density of experts that are equal is that of one expert, whatever the gate."""
    family, theta = case.truth
    if case.option != "plain" or family.is_regression or not family.gate.normalised:
        return
    if family.gate.constraints(2):
        return
    atoms, shared = family.split(theta)
    both = family.join(np.repeat(atoms[:1], 2, axis=0), shared)
    single = family.with_experts(1)
    one = single.join(atoms[:1], shared)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    _, y = moestat.sample(family, theta, 40, rng=rng, design=moestat.Uniform(-1, 1))
    pair = [moestat.log_likelihood(f, t, X, y) for f, t in ((family, both), (single, one))]
    yield compared("log-likelihood", *pair, rtol=1e-10)


def page(cells: dict[str, list[tuple[Case, Cell]]]) -> str:
    """Counts by law, and the sentences of refusals."""
    out = io.StringIO()
    print(f"{'law':42s}{'holds':>8s}{'refused':>9s}{'fails':>7s}", file=out)
    for name, found in cells.items():
        counts = [sum(c.verdict == v for _, c in found) for v in (HOLDS, REFUSED, FAILS)]
        print(f"{name:42s}{counts[0]:8d}{counts[1]:9d}{counts[2]:7d}", file=out)
    return out.getvalue()
