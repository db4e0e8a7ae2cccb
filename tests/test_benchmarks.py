"""The list of benchmarks and what is on the disk are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import listed, main, ratios
from benchmarks.results import CONFIG, FOLDER

HERE = Path(__file__).parents[1] / "benchmarks"


def test_every_script_is_listed_and_its_results_are_there():
    scripts = {path.stem for path in HERE.glob("*.py") if "__main__" in path.read_text()}
    assert scripts - {"__main__", "avx2"} == set(CONFIG)  # avx2.py runs one of the others
    assert all((FOLDER / one["page"]).exists() for n, one in CONFIG.items() if _ran(n, "page"))
    sections = (FOLDER / "cpu.md").read_text()
    assert all(f"## {one['title']}" in sections for n, one in CONFIG.items() if _ran(n, "title"))


def _ran(name: str, where: str) -> bool:
    """Whether results of a benchmark are kept there; none has run on a device yet."""
    return where in CONFIG[name] and name != "cuda"


@pytest.mark.thorough
def test_the_list_fits_a_terminal():
    assert max(map(len, listed().splitlines())) <= 80


def test_ratios_are_of_numbers_alone():
    old, new = {"n": 10, "seconds": 2.0, "who": "a"}, {"n": 10, "seconds": 1.0, "who": "a"}
    assert ratios(old, new) == {"n": 10, "seconds": 0.5, "who": "a"}


def test_names_and_kinds_are_checked(monkeypatch, capsys):
    for words, said in (
        (["run", "kernel"], "invalid choice: 'kernel'"),
        (["against", "HEAD", "alarms"], "alarms: only benchmarks with a title can be compared"),
    ):
        monkeypatch.setattr("sys.argv", ["benchmarks", *words])
        with pytest.raises(SystemExit):
            main()
        assert said in capsys.readouterr().err
