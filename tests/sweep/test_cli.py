import csv
import dataclasses
import json
import shlex
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat.rates.rate import fit_rate
from moestat.sweep import create_store, load_spec, open_cells, open_store, parse_spec, run_cells
from moestat.sweep.cli import app
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.run.expectation import expect
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.store.lock import exclusive
from tests.chaos.damage import change_row, flip_field
from tests.sweep.cells import always_fails, exact_rate


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def rows(text):
    """First word -> the others, for each line of a table of curves."""
    for joined in ("95% interval", "on bound", "in flight", "em †"):
        text = text.replace(joined, joined.replace(" ", "_"))
    lines = [line.replace(", ", ",").split() for line in text.splitlines() if line.strip()]
    return {line[0]: line[1:] for line in lines}


@pytest.fixture
def fill(tmp_path, spec_file):
    """A store filled by a stand-in for the cell function."""

    def make(cell_function=exact_rate, limit=None):
        path, spec = tmp_path / "filled.sqlite", load_spec(spec_file)
        with create_store(path, spec) as store:
            cells = open_cells(spec, store)[:limit]
            list(run_cells(spec, store, cells, executor="serial", cell_function=cell_function))
        return path

    return make


def test_run_ends_with_table_figures_and_progress(tmp_path, spec_file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("run", spec_file, "--executor", "serial")
    assert result.exit_code == 0
    assert "A small sweep: 12 of 12 cells to run, store small.sqlite" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    table = rows(result.stdout)
    assert table["curve"][:3] == ["slope", "95%_interval", "theory"]
    assert table["newton"][2] == "-0.5"
    assert table["newton"][-1] == "0"
    assert "em_†" in table
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "small.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(p.name for p in tmp_path.glob("*.sqlite*")) == ["small.sqlite"]
    again = invoke("run", spec_file, "--executor", "serial")
    assert "0 of 12 cells to run" in again.stderr
    assert "complete already; the rates: python -m moestat.sweep rates small.sqlite" in again.stdout
    assert "figures: small.png, small.pdf" in again.stdout
    (tmp_path / "small.png").unlink()
    assert invoke("run", spec_file, "--executor", "serial").stdout == result.stdout


@pytest.mark.thorough
def test_nothing_to_compute_needs_nothing_that_computes(tmp_path, spec_file):
    """First answers come at once: no statistics, no figures, no optimiser is imported."""
    out = tmp_path / "small.sqlite"
    invoke("run", spec_file, "--out", out, "--executor", "serial")
    commands = (
        ["list"],
        ["--help"],
        ["status", str(out)],
        ["run", str(spec_file), "--out", str(out)],
    )
    # One process for all: what a command imports stays.
    code = f"""
import sys
from moestat.sweep.__main__ import main
heavy = ['scipy.optimize', 'scipy.stats', 'statsmodels', 'matplotlib', 'pandas', 'dask']
for arguments in {commands}:
    sys.argv = ['x', *arguments]
    try: main()
    except SystemExit as end: code = end.code
    print('loaded:', code, [name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    assert loaded == ["loaded: 0 []"] * len(commands), (done.stdout, done.stderr)


@pytest.mark.thorough
def test_limit_cells(tmp_path, spec_file):
    out = tmp_path / "b.sqlite"
    arguments = ("run", spec_file, "--out", out, "--executor", "serial", "--limit-cells", 5)
    assert invoke(*arguments).exit_code == 0
    with open_store(out) as store:
        assert len(store.statuses()) == 5
    assert "7 of 12 cells to run" in invoke(*arguments).stderr


def test_failed_cells_are_shown_and_set_the_exit_code(spec_file, fill):
    path = fill(always_fails)
    result = invoke("run", spec_file, "--out", path, "--executor", "serial")
    assert result.exit_code == 1
    assert result.stdout.count("failed: newton | n=") + result.stdout.count("failed: em | n=") == 5
    assert "ValueError: as asked" in result.stdout
    assert f"7 more; see them all: python -m moestat.sweep failures {path}" in result.stdout
    assert "2 of 2 curves: no rate: estimates at 0 of the 2 or more sample sizes" in result.stdout
    assert "figures" not in result.stdout
    retried = invoke("run", spec_file, "--out", path, "--executor", "serial", "--retry-failed")
    assert retried.exit_code == 0
    assert "12 of 12 cells to run" in retried.stderr


def test_status_counts(fill):
    table = rows(invoke("status", fill(limit=7)).stdout)
    names = ["cells", "done", "failed", "in_flight", "open", "certified", "on_bound"]
    assert table["curve"] == names
    counts = {name: [int(value) for value in table[name]] for name in ("newton", "em")}
    assert [a + b for a, b in zip(*counts.values(), strict=True)] == [12, 7, 0, 0, 5, 5, 3]
    assert table["no"] == ["runner", "is", "at", "work"]


def test_rates_use_certified_fits_unless_told_otherwise(fill):
    result = invoke("rates", fill())
    table = rows(result.stdout)
    low, high = fit_rate(
        [200, 200, 400, 400], [200**-0.5, 1.1 * 200**-0.5, 400**-0.5, 1.1 * 400**-0.5]
    ).interval
    error = round(100 * (high - low) / 2 / 4.302653)  # t quantile with 2 degrees of freedom
    slope = f"-0.50({error})"
    assert table["newton"][:3] == [slope, f"{low:+.2f},{high:+.2f}", "-0.5"]
    assert table["em_†"][0].startswith("-0.50(")
    assert table["curve"][4:] == ["on_bound", "failed", "d_H"]
    assert table["newton"][3:] == ["4/6", "2", "0", slope]
    assert "standard error of the last digits of the slope" in result.stdout
    assert "faster than the bound: 0 of 1 (Holm, 5%)" in result.stdout


def test_rates_as_json(fill):
    newton, em = json.loads(invoke("rates", fill(), "--json").stdout)
    assert (newton["cells"], newton["certified"], newton["left_out"]) == (6, 4, 2)
    assert (em["left_out"], em["require_certificate"]) == (0, False)
    assert newton["rate"]["slope"] == pytest.approx(-0.5)
    assert newton["rate"]["n_observations"] == 4
    assert em["rate"]["n_observations"] == 6
    assert newton["hellinger"]["slope"] == pytest.approx(-0.5)
    slopes = {name: block["slope"] for name, block in newton["blocks"].items()}
    assert slopes == {"mass": pytest.approx(-0.5), "a": pytest.approx(-0.5)}
    assert all(block["standard_error"] > 0 for block in newton["blocks"].values())
    assert newton["verdict"]["theory"] == "this exponent"
    assert newton["cell_errors"]["over"]["a"]["rate"]["slope"] == pytest.approx(-0.25)
    assert newton["evidence"]["active"] == {"a[1]": 2}


def test_tables_show_published_slopes_where_there_are_some(tmp_path, text):
    spec = parse_spec(text.replace("theory = -0.5", "theory = -0.5\npublished = -0.49"))
    path = tmp_path / "a.sqlite"
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
    result = invoke("rates", path)
    table = rows(result.stdout)
    assert table["curve"][:4] == ["slope", "95%_interval", "paper", "theory"]
    assert table["newton"][2:4] == ["-0.49", "-0.5"]
    assert table["em_†"][2] == "4/6"


def test_no_rate_from_one_size(fill):
    path = fill(limit=6)
    newton, _ = json.loads(invoke("rates", path, "--json").stdout)
    assert newton["rate"] is None
    assert newton["note"] == "estimates at 1 of the 2 or more sample sizes it takes"


@pytest.mark.thorough
def test_plot(fill, tmp_path):
    out = tmp_path / "figure.pdf"
    assert invoke("plot", fill(), "--out", out).exit_code == 0
    assert out.read_bytes().startswith(b"%PDF")
    for options in (["--size", "double", "--latex-fonts"], ["--size", "single"]):
        assert invoke("plot", fill(), "--out", tmp_path / "a.svg", *options).exit_code == 0
        assert (tmp_path / "a.svg").stat().st_size > 10_000
    wide = invoke("plot", fill(), "--size", "wide")
    assert (
        wide.stderr == "error: --size: unknown size 'wide'; known: 'screen', 'single', 'double'\n"
    )
    refused = invoke("plot", fill(), "--out", tmp_path / "figure.gif")
    assert refused.exit_code == 2
    assert "must end in .png, .pdf or .svg, got 'figure.gif'" in refused.stderr


@pytest.mark.parametrize("limit", [1, 6])
def test_plot_of_one_size(tmp_path, text, limit):
    spec = parse_spec(text.replace("[200, 400]", "[1000, 1000000]"))
    path, out = tmp_path / "one.sqlite", tmp_path / "one.png"
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)[:limit]
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
    assert {cell.n for cell in cells} == {1000000}
    assert invoke("plot", path, "--out", out).exit_code == 0
    assert out.stat().st_size > 0


def test_plot_of_nothing(fill):
    result = invoke("plot", fill(always_fails))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: there is nothing to plot: no estimate enters a rate yet\n"


def test_export_csv_keeps_every_digit(fill, tmp_path):
    out = tmp_path / "cells.csv"
    result = invoke("export", fill(), "--out", out)
    dictionary = tmp_path / "cells.dictionary.csv"
    assert result.stdout == f"12 rows: {out}, columns explained in {dictionary}\n"
    with out.open() as file:
        rows = list(csv.DictReader(file))
    with open_store(tmp_path / "filled.sqlite") as store:
        records = list(store.records())
    assert [float(row["loss"]) for row in rows] == [record.loss for record in records]
    assert [json.loads(row["params"]) for row in rows] == [list(r.params) for r in records]
    assert rows[0]["certificate.active"] == '["a[0]"]'
    assert rows[0]["losses.block_errors.a"].startswith("[")
    assert {row["versions.moestat"] for row in rows} == {"test"}
    with dictionary.open() as file:
        explained = {row["column"]: row["description"] for row in csv.DictReader(file)}
    assert list(explained) == list(rows[0])
    assert all(explained.values())


def test_export_has_the_seeds_of_each_cell(fill, tmp_path):
    out = tmp_path / "cells.csv"
    path = fill()
    assert invoke("export", path, "--out", out).exit_code == 0
    with open_store(path) as store:
        cells = {cell.key: cell for cell in plan_cells(store.spec)}
    with out.open(newline="") as file:
        for row in csv.DictReader(file):
            cell = cells[row["key"]]
            seeds = str(cell.data_seed), str(cell.fit_seed)
            assert (row["data_seed"], row["fit_seed"]) == seeds


def test_export_of_the_data_of_one_cell(fill, tmp_path):
    path, out = fill(), tmp_path / "data.csv"
    with open_store(path) as store:
        spec = store.spec
    cell = plan_cells(spec)[0]
    assert invoke("export", path, "--out", out, "--data", cell.key).exit_code == 0
    X, y, weight = data_of(as_fits(spec), cell)
    written = np.loadtxt(out, delimiter=",", skiprows=1)
    assert np.array_equal(written, np.column_stack([X, y, weight]))
    wrong = invoke("export", path, "--out", tmp_path / "data.parquet", "--data", cell.key)
    assert wrong.exit_code == 2
    assert "--out must end in .csv, got" in wrong.stderr


def test_export_parquet(fill, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "cells.parquet"
    assert invoke("export", fill(), "--out", out).exit_code == 0
    read = parquet.read_table(out)
    assert read.schema.field("loss").metadata[b"description"].startswith(b"Voronoi loss")
    table = read.to_pydict()
    with open_store(tmp_path / "filled.sqlite") as store:
        assert table["loss"] == [record.loss for record in store.records()]
    assert set(table["status"]) == {"done"}


def test_export_parquet_without_pyarrow(fill, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = invoke("export", fill(), "--out", tmp_path / "cells.parquet")
    assert result.exit_code == 2
    assert "needs pyarrow: pip install 'moestat[parquet]'" in result.stderr


def test_export_to_something_else(fill, tmp_path):
    result = invoke("export", fill(), "--out", tmp_path / "cells.xlsx")
    assert result.exit_code == 2
    assert "--out must end in .csv or .parquet, got 'cells.xlsx'" in result.stderr


def test_list_shows_the_shipped_experiments():
    listed = " ".join(invoke("list").stdout.split())
    assert "quickstart Quickstart: exact- and over-specified fits" in listed
    assert " 4 200 10,000 to 1,000,000" in listed
    assert "mlmoe_sigmoid_vs_softmax mlmoe Fig. 1 (a), (d)" in listed
    assert " 8 3200 10,000 to 100,000" in listed


ERRORS = [
    (
        ("run", "nowhere"),
        "there is neither a spec file 'nowhere' nor a shipped experiment of this name (python",
    ),
    (("run", "quickstart", "--executor", "slurm"), "--executor: unknown executor 'slurm'; known"),
    (("status", "nowhere.sqlite"), "there is no store nowhere.sqlite"),
    (("rates", "pyproject.toml"), "it is not an SQLite file"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_errors_are_one_line_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_busy_store_is_refused(spec_file, tmp_path):
    out = tmp_path / "a.sqlite"
    with exclusive(out):
        result = invoke("run", spec_file, "--out", out, "--executor", "serial")
    assert result.exit_code == 2
    assert "another runner" in result.stderr
    assert not out.exists()


def test_help_documents_exit_codes_and_completion():
    text = " ".join(invoke("--help").stdout.split())
    assert "Exit codes: 0, the command succeeded; 1, some cells failed; 2, the command" in text
    assert "3, a store is damaged" in text
    assert "130, interrupted; 143, terminated. Results are kept in every case." in text
    assert "--install-completion" in text


COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_json(name):
    text = " ".join(invoke(name, "--help").stdout.split())
    assert f"Example: python -m moestat.sweep {name}" in text
    assert "--json" in text


@pytest.mark.thorough
def test_json_everywhere(fill, tmp_path):
    fill(always_fails, limit=2)
    store = fill()  # goes on
    out = tmp_path / "out"

    def data(*arguments):
        return json.loads(invoke(*arguments, "--json").stdout)

    assert "mlmoe_figure1" in [each["name"] for each in data("list")]
    status = data("status", store)
    assert status["curves"][0]["open"] == 0
    assert (status["runner"], status["work"], status["left"]) == (None, 0.0, None)
    assert len(data("failures", store)) == 2
    assert data("verify-store", store) == {"store": str(store), "rows": 12, "findings": []}
    assert data("plot", store, "--out", tmp_path / "a.png") == {
        "figures": [str(tmp_path / "a.png")]
    }
    assert len(data("report", store, "--out", out)["report"]) == 4
    assert data("export", store, "--out", tmp_path / "c.csv") == {
        "rows": 12,
        "table": str(tmp_path / "c.csv"),
        "dictionary": str(tmp_path / "c.dictionary.csv"),
    }
    merged = tmp_path / "m.sqlite"
    assert data("merge", merged, store) == {"store": str(merged), "new_rows": 12}
    comparison = data("compare", store, "newton", "em")
    assert (comparison["first"], comparison["paired"]) == ("newton", True)


def test_run_as_json(spec_file, tmp_path):
    result = invoke(
        "run", spec_file, "--out", tmp_path / "a.sqlite", "--executor", "serial", "--json"
    )
    data = json.loads(result.stdout)
    assert data["failed"] == 0
    assert [curve["done"] for curve in data["curves"]] == [6, 6]
    assert data["figures"] == [str(tmp_path / "a.png"), str(tmp_path / "a.pdf")]


def test_a_failure_comes_with_the_command_that_runs_the_cell(fill, monkeypatch):
    path = fill(always_fails, limit=2)
    lines = invoke("failures", path).stdout.splitlines()
    assert lines[0] == "A small sweep: 2 failed cells"
    assert "ValueError: as asked" in lines[1]
    program, *arguments = shlex.split(lines[2])
    assert [program, *arguments[:3]] == ["python", "-m", "moestat.sweep", "cell"]
    result = invoke(*arguments[2:])
    assert result.exit_code == 0
    key = arguments[-1]
    assert f"key: {key}" in result.stdout.splitlines()
    assert "the store has OTHER numbers" in result.stdout  # it failed there, and not here
    with open_store(path) as store:
        assert store.statuses()[key] == "failed"  # nothing is written


def test_a_cell_by_itself_has_the_numbers_of_the_sweep(spec_file, tmp_path):
    out, key = tmp_path / "a.sqlite", "em | n=200 | replicate=1"
    invoke("run", spec_file, "--out", out, "--executor", "serial")
    assert "the store has the same numbers" in invoke("cell", out, key).stdout
    record = json.loads(invoke("cell", spec_file, key, "--json").stdout)
    with open_store(out) as store:
        (stored,) = [record for record in store.records() if record.key == key]
    assert record["loss"] == stored.loss
    assert record["same_as_stored"] is None
    refused = invoke("cell", out, "em | n=200 | replicate=3")
    assert refused.exit_code == 2
    assert "there is no cell 'em | n=200 | replicate=3'; names of cells look like 'em | n=" in (
        refused.stderr
    )


def test_a_cell_that_fails_sets_the_exit_code_and_shows_where(spec_file, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("as asked")

    monkeypatch.setattr("moestat.sweep.kinds.fit.cell._shared", broken)
    result = invoke("cell", spec_file, "em | n=200 | replicate=1")
    assert result.exit_code == 1
    assert "message: RuntimeError: as asked" in result.stdout
    assert "in broken" in caplog.text  # the traceback


@pytest.mark.thorough
def test_shares_are_disjoint_and_merge_to_the_whole(spec_file, tmp_path, monkeypatch):
    monkeypatch.setattr("moestat.sweep.run.cell.run_cell", exact_rate)
    stores = []
    for share in ("1/2", "2/2"):
        out = tmp_path / f"{share[0]}.sqlite"
        result = invoke("run", spec_file, "--out", out, "--executor", "serial", "--share", share)
        assert "6 of 12 cells to run" in result.stderr
        stores.append(out)
    joined = tmp_path / "all.sqlite"
    assert invoke("merge", joined, *stores).stdout == f"12 rows new in {joined}\n"
    assert "0 of 12 cells" in invoke("run", spec_file, "--out", joined).stderr
    refused = invoke("run", spec_file, "--out", tmp_path / "b.sqlite", "--share", "3/2")
    assert refused.exit_code == 2
    assert "--share must be I/N with 1 <= I <= N, such as 1/3, got '3/2'" in refused.stderr


@pytest.mark.thorough
def test_an_edited_spec_is_refused_and_extended_on_request(spec_file, fill):
    path = fill()
    spec_file.write_text(spec_file.read_text().replace("replicates = 3", "replicates = 4"))
    arguments = ("run", spec_file, "--out", path, "--executor", "serial")
    refused = invoke(*arguments)
    assert refused.exit_code == 2
    assert "it only adds cells: allow that with --extend" in refused.stderr
    assert "4 of 16 cells to run" in invoke(*arguments, "--extend").stderr


def test_added_replicates_are_announced_and_explained(spec_file, tmp_path, monkeypatch):
    monkeypatch.setattr("moestat.sweep.run.cell.run_cell", exact_rate)
    adaptive = "replicates = 3\ntarget_slope_halfwidth = 0.01\nmax_replicates = 8"
    spec_file.write_text(spec_file.read_text().replace("replicates = 3", adaptive))
    out = tmp_path / "a.sqlite"
    result = invoke("run", spec_file, "--out", out, "--executor", "serial")
    assert "12 cells added: newton to 6 replicates (half-width was " in result.stderr
    assert "8 cells added: newton to 8 replicates" in result.stderr
    said = "newton: 8 replicates: max_replicates; half-width "
    assert said in result.stdout
    assert said in invoke("status", out).stdout


def test_compare(fill, tmp_path):
    path = fill()
    result = invoke("compare", path, "newton", "em")
    assert "compared                  in pairs" in result.stdout
    assert "difference                0.0000 ± 0.0000" in result.stdout
    assert invoke("compare", path, "newton", "em", "--other", path).stdout == result.stdout
    refused = invoke("compare", path, "newton", "gd")
    assert refused.exit_code == 2
    assert "unknown curve 'gd'; known: 'newton', 'em'" in refused.stderr


def test_a_store_that_is_not_sound_sets_the_exit_code(fill):
    path = fill()
    assert invoke("verify-store", path).stdout == f"{path}: 12 rows, sound\n"
    for name in ("newton", "em"):
        for replicate in range(3):
            change_row(path, f"{name} | n=200 | replicate={replicate}", flip_field("loss"))
    result = invoke("verify-store", path)
    assert result.exit_code == 3
    assert result.stdout.endswith(f"{path}: 12 rows, 6 findings\n")


def test_a_scheduler_needs_the_dask_executor(spec_file):
    result = invoke("run", spec_file, "--scheduler", "tcp://localhost:8786")
    assert result.exit_code == 2
    assert "--scheduler is for --executor dask, got --executor process" in result.stderr


@pytest.mark.parametrize("module", ["moestat.sweep", "moestat.sweep.cli"])
def test_imports_stay_light(module):
    heavy = "{'numpy', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)"
    code = f"import sys, {module}; print(*{heavy})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_the_list_needs_no_family_and_tells_what_the_specs_say():
    from moestat.sweep.report.listing import entries
    from moestat.sweep.spec.experiments import shipped

    chosen = {name: shipped()[name] for name in ("quickstart", "microscope_gaussian")}
    for entry in entries(chosen):
        spec = load_spec(chosen[entry.name])
        assert (entry.title, entry.cells, entry.n) == (spec.title, spec.n_cells, spec.sizes)
        assert list(entry.curves) == [curve.name for curve in spec.curves]
    heavy = "{'numba', 'scipy', 'matplotlib', 'pandas'} & set(sys.modules)"
    code = (
        "import sys; from typer.testing import CliRunner; from moestat.sweep.cli import app;"
        f"print(CliRunner().invoke(app, ['list']).exit_code, *{heavy})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0"]


def test_help_begins_with_list_and_run():
    shown = invoke("--help").stdout
    places = [
        shown.index(f"│ {name} ") for name in ("list", "run", "new", "backup", "verify-store")
    ]
    assert places == sorted(places)


def test_version():
    import moestat

    assert invoke("--version").stdout == f"moestat {moestat.__version__}\n"


def test_check_of_a_store_that_is_whole(spec_file, fill):
    result = invoke("run", spec_file, "--out", fill(), "--check", "--json")
    curves = json.loads(result.stdout)["curves"]
    assert [(each["cells"], each["seconds"]) for each in curves] == [(0, 0.0), (0, 0.0)]
    assert all(each["memory"] == 8 * 400 * 3 * 6 for each in curves)


def test_check_takes_the_sizes_of_a_curve(tmp_path, spec_file):
    text = spec_file.read_text().replace('name = "em"\n', 'name = "em"\nn = [150, 250, 300]\n', 1)
    spec_file.write_text(text)
    out = tmp_path / "own.sqlite"
    result = invoke("run", spec_file, "--out", out, "--check", "--json")
    newton, em = json.loads(result.stdout)["curves"]
    assert (newton["memory"], em["memory"]) == (8 * 400 * 3 * 6, 8 * 300 * 3 * 6)
    assert em["note"].startswith("from cells of n = 150, 250")


def test_check_of_a_lattice_does_not_take_time_to_grow_with_n(text, tmp_path, monkeypatch):
    def timed(text, cell):
        return dataclasses.replace(exact_rate(text, cell), seconds=1.0 + (cell.n > 10**4))

    monkeypatch.setattr("moestat.sweep.run.expectation.run_cell", timed)
    text = text.replace("n = [200, 400]", "n = [10_000, 1_000_000_000, 100_000_000_000_000]")
    text = text.replace("[design]", '[design]\nlaw = "lattice"\nnodes = 32')
    newton, _ = expect(parse_spec(text), tmp_path / "none.sqlite")
    assert newton.seconds == pytest.approx(3 * (1.0 + 2.0 + 3.0))


def test_check_learns_times_from_the_store(spec_file, fill):
    result = invoke("run", spec_file, "--out", fill(limit=7), "--dry-run", "--workers", "1")
    assert "5 cells to run" in result.stdout
    assert "from the store's cells" in result.stdout


def test_check_measures_cells_and_writes_nothing(tmp_path, spec_file):
    out = tmp_path / "new.sqlite"
    curves = json.loads(invoke("run", spec_file, "--out", out, "--check", "--json").stdout)[
        "curves"
    ]
    assert [each["cells"] for each in curves] == [6, 6]
    assert all(each["seconds"] > 0 for each in curves)
    assert curves[0]["note"] == "from cells of n = 200, 400"
    assert not out.exists()


def test_em_that_must_be_certified_is_doubted_before_it_runs(spec_file, fill):
    quiet = invoke("run", spec_file, "--out", fill(), "--check")
    assert "note" not in quiet.stderr
    text = spec_file.read_text().replace("require_certificate = false", "")
    spec_file.write_text(text)
    doubted = invoke("run", spec_file, "--out", spec_file.with_name("b.sqlite"), "--check")
    assert doubted.stderr.startswith("note: EM seldom ends at a certified maximum")
    assert "without require_certificate = false: em\n" in doubted.stderr


def test_a_missing_or_wrong_loss_names_those_that_fit(spec_file):
    text = spec_file.read_text()
    spec_file.write_text(text.replace('loss = "softmax-D1"\n', "", 1))
    missing = invoke("run", spec_file, "--check").stderr
    fit = "losses that fit gate 'softmax' with this likelihood: 'softmax-D1', 'softmax-D2r'"
    assert f"curve 'newton': loss: is missing; {fit}" in missing
    spec_file.write_text(text.replace('"softmax-D1"', '"D1"', 1))
    wrong = invoke("run", spec_file, "--check").stderr
    assert wrong.rstrip().endswith(fit)


def test_data_of_a_cell_is_what_it_is_fitted_to(tmp_path, spec_file):
    key, out = "newton | n=200 | replicate=1", tmp_path / "data.csv"
    assert invoke("cell", spec_file, key, "--data", out).exit_code == 0
    head, *lines = list(csv.reader(out.read_text().splitlines()))
    assert head == ["x0", "y", "weight"]
    assert len(lines) == 200
    assert all(-4 <= float(x) <= 4 and y in "12" and float(w) == 1 for x, y, w in lines)
    # A fit of the written rows, from the cell's own starts, has the cell's own likelihood.
    from moestat.model.axes import family

    record = json.loads(invoke("cell", spec_file, key, "--json").stdout)
    model = family("multinomial", gate="softmax", n_experts=2)
    rows = [(float(x), int(y)) for x, y, _ in lines]
    value = model.log_density(record["params"], [x for x, _ in rows], [y for _, y in rows]).sum()
    assert value == pytest.approx(record["log_likelihood"], rel=1e-12)


def test_data_of_a_cell_goes_to_csv(spec_file, tmp_path):
    key = "newton | n=200 | replicate=1"
    refused = invoke("cell", spec_file, key, "--data", tmp_path / "data.txt")
    assert refused.exit_code == 2
    assert "--data must end in .csv, got 'data.txt'" in refused.stderr


def test_watching_ends_when_no_runner_is_at_work(fill):
    assert invoke("status", fill(), "--watch").exit_code == 0
    assert "without --json" in invoke("status", fill(), "--watch", "--json").stderr


def test_watching_goes_on_while_a_runner_is_at_work(fill, monkeypatch):
    from moestat.sweep.cli import _cells
    from moestat.sweep.run import status as module

    runners = iter([{"process": 1, "host": "a"}] * 2 + [None] * 2)
    monkeypatch.setattr(module, "holder_of", lambda path: next(runners))
    pauses = []
    monkeypatch.setattr(_cells.time, "sleep", pauses.append)
    assert invoke("status", fill(), "--watch").exit_code == 0
    assert len(pauses) == 2
