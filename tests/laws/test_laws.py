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
"""Cases of each run, one case of each fourth member."""

COSTLY = [
    "an answer or one sentence",
    "own rows asked as new",
    "weights are copies",
    "kept and read again",
    "permutations of rows and columns",
    "names are arrays",
]
"""Laws that nearly every case has, and that take nine tenths of the time of all."""

TURNS = 3
"""In each run so many cases share the costly laws, and each has all others."""

FIRST_ENTRIES = SOME_ENTRIES[:2]


def parts_of(cases, first):
    """Cases as parameters: those of each run, and the others, which are thorough."""
    marks = [[] if case in first else [pytest.mark.thorough] for case in cases]
    return [pytest.param(c, id=str(c), marks=m) for c, m in zip(cases, marks, strict=True)]


def in_turn(cases, first):
    """Cases with their laws: those of each run, and the rest, which is thorough."""
    found = []
    for case in cases:
        now = []
        if case in first:
            later = {*COSTLY} - {*COSTLY[first.index(case) % TURNS :: TURNS]}
            now = [name for name in FITS if name not in later]
            found.append(pytest.param(case, now, id=str(case)))
        rest = [name for name in FITS if name not in now]
        found.append(pytest.param(case, rest, id=f"{case} (rest)", marks=pytest.mark.thorough))
    return found


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


def test_the_parts_have_all_laws_of_each_case_and_each_run_some_cases_of_each_law():
    given = [(*each.values, bool(each.marks)) for each in in_turn(EACH_RUN, FIRST)]
    pairs = sorted((str(case), name) for case, laws, _ in given for name in laws)
    assert pairs == sorted((str(case), name) for case in EACH_RUN for name in FITS)
    now = [name for _, laws, later in given if not later for name in laws]
    assert {*COSTLY} <= {*FITS}
    for name in FITS:
        assert now.count(name) >= (len(FIRST) // TURNS if name in COSTLY else len(FIRST))


@pytest.mark.parametrize(("case", "laws"), in_turn(EACH_RUN, FIRST))
def test_laws_hold_or_are_refused_in_a_sentence(case, laws):
    check(case, laws)


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
