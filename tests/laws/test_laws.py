"""Every law for every case: a case of each member in each run, more with ``pytest -m thorough``.

``pytest -m slow tests/laws`` has all cases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from moestat.estimation.results.results import MoEResults
from tests.laws.cases import CASES, EACH_RUN, SOME, one_of_each, part
from tests.laws.every import LAWS, comparisons, doubts, entries, restricted, tables
from tests.laws.laws import FAILS, judge
from tests.laws.questions import OTHERS

REST = [case for case in CASES if case not in EACH_RUN]
SEEDS = (1, 2)
_HEAVY = [module.__name__ for module in (comparisons, doubts, entries, restricted, tables)]
ENTRIES = [n for n, law in LAWS.items() if law.__module__ in _HEAVY]
"""Laws of other entry points, tables and restrictions, which fit each case several times."""

FITS = [n for n in LAWS if n not in ENTRIES]
SOME_ENTRIES = part(SOME, 60)
FIRST = one_of_each(CASES)[::4]
"""Cases of each run: every law for one case of each fourth member."""
FIRST_ENTRIES = SOME_ENTRIES[:2]


def parts_of(cases, first):
    """Cases as parameters: those of each run, and the others, which are thorough."""
    marks = [[] if case in first else [pytest.mark.thorough] for case in cases]
    return [pytest.param(c, id=str(c), marks=m) for c, m in zip(cases, marks, strict=True)]


def check(case, laws=(*LAWS,)):
    found = {name: judge(name, case) for name in laws}
    failed = [
        f"{name}: {cell.question}: {cell.words}"
        for name, cells in found.items()
        for cell in cells
        if cell.verdict == FAILS
    ]
    assert not failed, f"{case}\n" + "\n".join(dict.fromkeys(failed))


def test_every_plot_of_a_result_is_a_question():
    assert {name for name in dir(MoEResults) if name.startswith("plot")} <= {*OTHERS}


@pytest.mark.parametrize("case", parts_of(EACH_RUN, FIRST))
def test_laws_hold_or_are_refused_in_a_sentence(case):
    check(case, FITS)


@pytest.mark.parametrize("case", parts_of(SOME_ENTRIES, FIRST_ENTRIES))
def test_laws_hold_for_other_entry_points(case):
    check(case, ENTRIES)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in EACH_RUN if case not in SOME_ENTRIES], ids=str)
def test_laws_hold_for_the_other_entry_points_of_all_other_cases(case):
    check(case, ENTRIES)


@pytest.mark.slow
@pytest.mark.parametrize("case", REST, ids=str)
def test_laws_hold_for_all_other_cases(case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_laws_hold_for_other_data(case, seed):
    check(replace(case, seed=seed))
