"""What four kinds of people type in their first hour, and what they get."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typed import RESULT, ROLES, answer, row_of

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("role", ROLES)
def test_what_people_type_gives_what_they_need(role, monkeypatch):
    if role == "engineer":
        pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for line in ROLES[role]:
        told = answer(names, line.code)
        assert line.expected in told, f"{line.code}\n{told}"
        assert line.expected or not told, f"{line.code}\n{told}"


def test_every_line_is_in_the_table():
    table = RESULT.read_text(encoding="utf-8")
    for lines in ROLES.values():
        for line in lines:
            assert not line.topic or row_of(line) in table, "run python -m tests.typed"


def commands(text: str) -> list[str]:
    return [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]


@pytest.mark.thorough  # collects the tests in a process of its own
def test_the_loop_of_a_contributor_takes_every_cell_of_a_member():
    """The second command of the page, with the name of a member."""
    typed = commands(CONTRIBUTING)[1]
    assert typed.startswith(".venv/bin/python -m pytest tests/test_contracts.py")
    _, *words = shlex.split(typed.replace("NAME", "poisson"))
    done = subprocess.run(
        [sys.executable, *words, "--collect-only", "-q"], cwd=ROOT, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(found) >= 20, done.stdout + done.stderr
    assert all("poisson" in line for line in found)


def test_ci_runs_what_the_readme_and_the_page_say():
    script = (ROOT / ".ci" / "run").read_text()
    second = commands((ROOT / "README.md").read_text())[1]
    for part in (*second.split("&&"), "-m thorough"):
        assert part.strip() in script
