"""The probability of a higher maximum: from what a search saw, where it is shown, and its fit."""

from __future__ import annotations

import re
import warnings
from itertools import combinations
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import moestat
from moestat.base.warnings import DisagreementWarning, MoEWarning
from moestat.estimation.rules import DOUBT, HIGHER, MODES
from moestat.estimation.search.agreement import Agreement, Moves
from moestat.estimation.search.higher import (
    SearchRecord,
    covariates,
    expected_distinct,
    probability_of_higher,
)
from moestat.estimation.search.modes import ModeRecord
from moestat.estimation.search.runs import RunEnd
from moestat.estimation.starts import RandomStarts

ROOT = Path(__file__).parents[2]
ignored = pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")


def two_lines(n=300, seed=0):
    """Two crossing lines: x (n,), y (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n)
    return x, np.where(rng.random(n) < 0.5, 2.0 * x, -x) + 0.3 * rng.normal(size=n)


def classes(seed, n=300):
    """Four experts for three classes, a likelihood with many maxima: X (n, 2), y (n,)."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_features=2, n_classes=3)
    rng = np.random.default_rng(seed)
    theta = family.pin(rng.standard_normal(family.n_params))
    return moestat.sample(family, theta, n, rng, design=moestat.Uniform(-2.0, 2.0))


def test_heights_of_a_smaller_pool_are_those_of_all_its_choices():
    counts = (3, 2, 1, 1)
    heights = np.repeat(range(4), counts)
    for size in (1, 3, 6):
        each = [len({heights[j] for j in chosen}) for chosen in combinations(range(7), size)]
        assert expected_distinct(counts, size) == pytest.approx(np.mean(each))
    assert expected_distinct(counts, 20) == pytest.approx(4.0)
    assert expected_distinct((), 8) == 1.0


def test_covariates_count_heights_and_repeats_and_leave_out_collapsed_runs():
    one, heights, again = covariates(SearchRecord([-10.0, -10.001, -np.inf, -12.0]), 2, 3, 7)
    assert (one, again) == (1.0, 0.25)
    assert heights == pytest.approx(np.log(2.0))
    assert covariates(SearchRecord([-1.0] * 4), 1, 1, 1)[2] == 0.0


def test_more_heights_and_less_agreement_make_a_higher_maximum_more_probable():
    found = []
    for heights in ([0.0] * 8, [0.0] * 5 + [-1.0, -1.0, -2.0], [-float(j) for j in range(8)]):
        found.append(probability_of_higher(SearchRecord(heights), 2, heights.count(0.0), 8))
    assert 0.0 < found[0] < found[1] < found[2] < 1.0
    few, many = (probability_of_higher(SearchRecord([0.0, -1.0]), 2, m, m) for m in (2, 5))
    assert many < few


def test_searches_that_find_nothing_higher_do_not_make_it_more_probable():
    pool = [0.0] * 10 + [-1.0, -2.0]
    alone = probability_of_higher(SearchRecord(pool), 3, 10, 12)
    searched = SearchRecord(pool, [0.0, 0.0], agreeing=(10, 12))
    assert probability_of_higher(searched, 3, 2, 2) == alone
    higher = SearchRecord(pool, [0.0, 1.0])
    assert probability_of_higher(higher, 3, 1, 2) > alone


def test_neighbours_that_come_back_make_a_higher_mode_less_probable():
    """And those that end elsewhere more probable; of a new best mode none has been run."""

    def ends(*heights):
        return [RunEnd(np.zeros(1), height) for height in heights]

    back, away = ModeRecord(), ModeRecord()
    for record, height in ((back, 0.0), (away, -1.0)):
        assert record.probability == 1.0
        record.add(ends(*[0.0] * 12))
        record.add(ends(*[height] * 4), are_starts=False)
    assert back.probability <= MODES.risk < away.probability
    assert (back.best.starts, back.best.runs, back.neighbours) == (12, 16, 4)
    more = [away.probability]
    for _ in range(3):
        away.add(ends(-1.0, -2.0), are_starts=False)
        more.append(away.probability)
    assert more == sorted(more)
    away.add(ends(1.0, 0.0), are_starts=False)
    assert (away.best.starts, away.best.runs, away.neighbours) == (0, 1, 0)
    assert away.probability > more[-1]


@ignored
def test_a_search_stops_by_the_risk_that_is_accepted(monkeypatch):
    """It makes no search more than the first that leaves the probability accepted, and no less."""
    made = list[int]()
    improve = Moves.improve
    monkeypatch.setattr(Moves, "improve", lambda *given: made.append(1) or improve(*given))
    X, y = classes(0)
    counts, said = [], []
    for risk in (0.0, 0.5, 1.0):
        made.clear()
        how = {"n_experts": 4, "rng": 0, "risk": risk, "maximum": "highest"}
        result = moestat.fit("multinomial", X, y, **how)
        counts.append(len(made))
        said.append(result.certificate.p_higher)
        warned = any("higher one" in note for note in result.notes)
        assert (result.certificate.p_higher > max(risk, DOUBT.higher)) == warned
    assert counts[0] == Agreement.searches
    assert counts[0] >= counts[1] >= counts[2] == 1
    highest, without = {"n_experts": 2, "maximum": "highest"}, 0
    for seed in range(5):  # where most starts of the pool agree, it makes none
        made.clear()
        moestat.fit("gaussian", *two_lines(), **highest, rng=seed)
        without += made == []
    assert without > 2
    made.clear()
    moestat.fit("gaussian", *two_lines(), **highest, rng=0, risk=0.0)
    assert len(made) == Agreement.searches
    with pytest.raises(ValueError, match="risk must be a number"):
        moestat.fit("gaussian", *two_lines(), n_experts=2, risk=2.0)


@pytest.mark.parametrize("maximum", ["regular", "highest"])
def test_a_summary_and_a_certificate_say_it(maximum):
    result = moestat.fit("gaussian", *two_lines(), n_experts=2, maximum=maximum, rng=0)
    p = result.certificate.p_higher
    assert p is not None
    assert 0.0 < p < 0.1
    assert f"about {p:.0%}" in str(result.summary())
    assert f"estimated as {p:.0%}" in " ".join(str(result.explain()).split())
    assert result.certificate.as_dict()["p_higher"] == p


@ignored
def test_it_is_not_said_where_nothing_was_calibrated():
    x, y = two_lines()
    expert = {"name": "activation", "activation": "tanh"}
    squares = moestat.family("least-squares", gate="softmax", n_experts=2, expert=expert)
    others = [
        moestat.fit("gaussian", x, y, n_experts=1, rng=0),
        moestat.fit("gaussian", x, y, n_experts=2, starts=[RandomStarts(4)], rng=0),
        moestat.fit("gaussian", x, y, n_experts=2, starts=[Agreement(), RandomStarts(4)], rng=0),
        moestat.fit("gaussian", x, y, n_experts=2, prior=moestat.Prior(gate=9.0), rng=0),
        moestat.fit(squares, x[:, None], y, rng=0, risk=1.0),
    ]
    for result in others:
        assert result.certificate.p_higher is None
        assert "Higher m" not in str(result.summary())
        assert "p_higher" not in result.certificate.as_dict()


def test_modes_have_a_probability_of_their_own():
    """Where classes are separated, calls with the weak prior agree after fewer searches."""
    family = moestat.family("multinomial", gate="softmax", n_experts=3, n_features=1, n_classes=3)
    agreeing = 0
    for seed in range(4):
        theta = 1.5 * np.random.default_rng(seed).standard_normal(family.n_params)
        X, y = moestat.sample(family, theta, 500, rng=seed, design=moestat.Uniform(-2.0, 2.0))
        modes = [moestat.fit(family, X, y, prior="weak", rng=rng) for rng in range(2)]
        agreeing += abs(modes[0].log_posterior - modes[1].log_posterior) < 0.01
        for mode in modes:
            p = mode.certificate.p_higher
            assert f"about {p:.0%}" in str(mode.summary())
            assert p <= 0.05 or mode.certificate.n_starts >= 48
    assert agreeing >= 3


@pytest.mark.thorough
def test_a_fit_warns_by_its_probability():
    """Over seeds: calls on a likelihood with many maxima warn, and those with one do not."""
    told = []
    for seed in range(4):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            how = {"n_experts": 4, "rng": seed, "maximum": "highest"}
            result = moestat.fit("multinomial", *classes(seed), **how)
        told.append(any(w.category is DisagreementWarning for w in seen))
        assert told[-1] == (result.certificate.p_higher > DOUBT.higher)
        if told[-1]:
            assert any("there is a higher one with a probability of" in n for n in result.notes)
    assert sum(told) >= 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        warnings.simplefilter("error", DisagreementWarning)
        for seed in range(4):
            moestat.fit("gaussian", *two_lines(seed=seed), n_experts=2, rng=seed)


@pytest.mark.parametrize(("chance", "warns"), [(0.049, False), (0.051, True)])
def test_a_default_call_warns_where_a_higher_mode_is_more_probable_than_the_guide_says(
    chance, warns
):
    guide = (ROOT / "docs" / "guide" / "certificates.md").read_text()
    assert "If the probability is larger than 5%" in guide
    with mock.patch.object(ModeRecord, "probability", chance):
        result = moestat.fit("gaussian", *two_lines(seed=1), n_experts=2, rng=0)
    assert result.certificate.p_higher == pytest.approx(chance)
    assert (DisagreementWarning.__name__ in result.kinds) is warns


def test_coefficients_are_those_of_the_benchmark():
    page = (ROOT / "benchmarks" / "results" / "modes.md").read_text()
    (line,) = re.findall(r"^Coefficients of .*?: (.*?)\. Brier", page, re.MULTILINE)
    assert MODES.coefficients == tuple(float(b) for b in line.split(", "))
    page = (ROOT / "benchmarks" / "results" / "calibration.md").read_text()
    lines = re.findall(r"^Coefficients \(.*?\): (.*?)\. Brier", page, re.MULTILINE)
    for used, line in zip((HIGHER.coefficients, HIGHER.modes), lines, strict=True):
        assert used == pytest.approx([float(b) for b in line.split(", ")], abs=1e-9)
