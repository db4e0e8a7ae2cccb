"""Names are text: no medium takes them for markup."""

import csv

import pytest
from typer.testing import CliRunner

from moestat.sweep import create_store, load_spec, open_cells, run_cells
from moestat.sweep.cli import app
from tests.sweep.cells import exact_rate

NAMES = ("[/]", "D1 [exact]", "$\\\\frac{$", "<script>x</script>", "=cmd|' /C calc'!A0", ":smile:")


TITLE = " ".join(NAMES)


@pytest.fixture
def store(tmp_path, text):
    """A curve for every name, under a title that holds what could be markup."""
    head, curve = text.split("[[curve]]")[:2]
    curves = ["[[curve]]" + curve.replace('name = "newton"', f'name = "{n}"') for n in NAMES]
    spec_file, path = tmp_path / "a.toml", tmp_path / "a.sqlite"
    spec_file.write_text(head.replace("A small sweep", TITLE) + "".join(curves))
    spec = load_spec(spec_file)
    with create_store(path, spec) as made:
        cells = open_cells(spec, made)
        list(run_cells(spec, made, cells, executor="serial", cell_function=exact_rate))
    return path, spec


def test_every_medium_shows_names_as_they_are(store, tmp_path):
    path, spec = store
    names = [curve.name for curve in spec.curves]
    for command in ("rates", "status", "plot", "failures"):
        result = CliRunner().invoke(app, [command, str(path)])
        assert result.exit_code == 0, result.output
        assert command == "plot" or spec.title in result.stdout
        assert (
            command not in ("rates", "status") or [n for n in names if n not in result.stdout] == []
        )
    assert CliRunner().invoke(app, ["report", str(path)]).exit_code == 0
    page = path.with_suffix(".md").read_text()
    assert "<script" not in page
    CliRunner().invoke(app, ["export", str(path), "--out", str(tmp_path / "a.csv")])
    with (tmp_path / "a.csv").open() as file:
        curves = {row["curve"] for row in csv.DictReader(file)}
    assert curves == {f"'{name}" if name.startswith("=") else name for name in names}
