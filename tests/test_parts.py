"""The part of each run and the thorough part are all tests, and each value is in the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import covering, values_of

ROOT = Path(__file__).parents[1]

PROGRAM = """
import pytest

@pytest.mark.parametrize("kind", [(a, b) for a in "uvwxyz" for b in ("one", "two")], ids="".join)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_cells(kind, seed):
    pass

def test_alone():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_slow(n):
    pass

@pytest.mark.thorough
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), *range(2, 30)])
def test_one_of_these_is_slow(n):
    pass
"""


def test_values_are_those_of_short_lists():
    found = values_of("kind", ("gaussian", "softmax", {"name": "ffn"}))
    assert [name for name, _ in found] == ["kind.0", "kind.1", "kind.2"]
    assert values_of("x", tuple(range(10))) == [("x", repr(tuple(range(10))))]


def test_a_cover_has_every_value_and_no_cell_without_a_new_one():
    cells = [(f"{a}{b}", values_of("k", (a, b))) for a in range(9) for b in range(4)]
    chosen = covering(cells)
    seen = {value for name, values in cells if name in chosen for value in values}
    assert seen == {value for _, values in cells for value in values}
    assert 9 <= len(chosen) < 9 + 4


@pytest.mark.parametrize(("marks", "least", "most"), [("", 7, 10), ("thorough", 55, 58)])
def test_two_parts_are_all_tests_that_are_not_slow(tmp_path, marks, least, most):
    (tmp_path / "test_one.py").write_text(PROGRAM)
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom tests.parts import mark_the_rest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n    mark_the_rest(items)\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    slow\n    thorough\naddopts = -m 'not slow and not thorough'\n"
    )
    chosen = ["-m", marks] if marks else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *chosen, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert least <= len(found) <= most, done.stdout + done.stderr
    assert ("test_one.py::test_alone" in found) == (not marks)
