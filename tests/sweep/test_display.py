import dataclasses
import io
import re

import pytest
from rich.console import Console

from moestat.sweep import create_store, open_cells, parse_spec, run_cells, summarise
from moestat.sweep.kinds.fit.display import rates_table
from tests.sweep.cells import exact_rate


@pytest.fixture
def summaries(tmp_path, text):
    text = text.replace('name = "newton"', 'name = "sigmoid-euclidean, k = 3"', 1)
    spec = parse_spec(text.replace("theory = -0.5", "theory = -0.5\npublished = -0.49"))
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
        return summarise(store)


@pytest.mark.parametrize("details", [False, True])
def test_tables_fit_a_terminal_of_80_columns(summaries, details):
    file = io.StringIO()
    Console(width=80, file=file).print(rates_table("", summaries, details=details))
    text = file.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    (head,) = [line for line in text.splitlines() if re.search("slope +95%", line)]
    (row,) = [line for line in text.splitlines() if "-0.49" in line]
    assert head.split()[-1] == ("d_H" if details else "failed")
    assert row.split()[-1].startswith("-0.50(" if details else "0")
    assert "4/6" in row


def test_curves_that_lack_a_rate_for_one_reason_share_a_line(summaries):
    first, second = (dataclasses.replace(each, rate=None, note="too few") for each in summaries)
    caption = rates_table("", [first, second]).caption
    assert caption.count("no rate: too few") == 1
    assert "2 of 2 curves: no rate: too few" in caption
    caption = rates_table("", [first, dataclasses.replace(second, note="another")]).caption
    assert [caption.count(f"{each.curve.name}: no rate: ") for each in (first, second)] == [1, 1]
