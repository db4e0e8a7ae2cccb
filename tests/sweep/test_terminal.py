"""Tables keep every cell whole, however narrow the terminal is."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from moestat.sweep.kinds.network.kind import METRICS as NETWORKS
from moestat.sweep.kinds.runs.places import Place
from moestat.sweep.kinds.training.analysis import METRICS
from moestat.sweep.report.listing import entries, entries_table
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.terminal import WideTable


def printed(table, width):
    console = Console(width=width)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_value_is_lost_cut_or_broken(width):
    heads = ["choice", "runs", *METRICS.values(), "failed"]
    rows = {name: [f"{name}{i:02d}.4 ± 0.0056" for i in range(len(heads))] for name in ("v1", "v2")}
    table = WideTable("Methods", ["method"], heads)
    for name, values in rows.items():
        table.add_row(name, *values)
    table.caption = "mean and interval"
    text = printed(table, width)
    assert all(value in text for values in rows.values() for value in values)
    assert (text.count("Methods"), text.count("mean and interval")) == (1, 1)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_the_list_keeps_names_whole(width):
    text = printed(entries_table(entries(shipped())), width)
    assert all(name in text for name in shipped())
    assert "…" not in text


def test_every_part_of_a_table_has_the_place_of_its_rows():
    """Networks have several rows of one curve, told apart by their place."""
    places = {x: Place(3, 0.5, 0.1, (0.0,) * 5) for x in (4.0, 8.0)}
    summary = SimpleNamespace(
        axis="n_experts",
        curve=SimpleNamespace(name="gate"),
        metrics=dict.fromkeys(NETWORKS.words, places),
        failed=0,
    )
    shown = printed(NETWORKS.table("", [summary], details=True), 60)
    rows = [line.split() for line in shown.splitlines() if "gate" in line]
    assert len(rows) > 2
    assert [row[1] for row in rows] == ["4", "8"] * (len(rows) // 2)
