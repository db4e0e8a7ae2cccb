import dataclasses

import pytest

from moestat.sweep import create_store, open_cells, parse_spec, run_cells, summarise
from moestat.sweep.experiments import find_spec
from moestat.sweep.figure import draw
from tests.sweep.cells import exact_rate


@pytest.fixture
def summaries(tmp_path):
    text = find_spec("mlmoe_sigmoid_vs_softmax").read_text()
    text = text.replace("num = 20", "num = 2").replace("replicates = 20", "replicates = 3")
    spec = parse_spec(text)
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
        return summarise(store)


def test_curves_of_one_panel_share_axes_that_have_room(summaries):
    figure = draw("a title", summaries)
    figure.canvas.draw()
    assert len(figure.axes) == 2
    for axes, k in zip(figure.axes, (3, 4), strict=True):
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(labels) == 4
        assert all(f"k = {k}" in label and "n^{-0.50}" in label for label in labels)
        assert axes.get_position().width > 0.35


@pytest.mark.parametrize(
    ("panels", "grid"),
    [("ba", (1, 2)), ("bca", (1, 3)), ("dbca", (2, 2)), ("fdbeca", (2, 3))],
)
def test_panels_stand_in_order_on_one_or_two_rows(summaries, panels, grid):
    curves = [
        dataclasses.replace(
            summaries[0], curve=dataclasses.replace(summaries[0].curve, panel=panel)
        )
        for panel in panels
    ]
    figure = draw("a title", curves)
    axes = figure.axes
    titles = [each.get_legend().get_title() for each in axes]
    assert [title.get_text() for title in titles] == [f"({p})" for p in sorted(panels)]
    figure.canvas.draw()
    for each, title in zip(axes, titles, strict=True):
        assert title.get_window_extent().y0 >= each.get_window_extent().y1
    assert {each.get_subplotspec().get_gridspec().get_geometry() for each in axes} == {grid}
    columns = [each.get_subplotspec().colspan.start for each in axes]
    assert columns == [i % grid[1] for i in range(len(panels))]


def test_uncertified_fits_that_are_left_out_are_shown(summaries):
    first, second = draw("a title", summaries).axes
    for axes in (first, second):
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert ["(2 uncertified)" in label for label in labels] == [False, False, True, True]
