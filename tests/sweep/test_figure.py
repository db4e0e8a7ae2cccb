import dataclasses

import pytest

from moestat.metrics.losses import LOSSES
from moestat.rates.style import WIDTHS, style
from moestat.sweep import create_store, open_cells, parse_spec, run_cells, summarise
from moestat.sweep.kinds.fit.figure import draw, loss_symbol
from moestat.sweep.spec.experiments import find_spec
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


def legend(axes):
    """The texts of a legend, each on one line."""
    return [text.get_text().replace("\n", " ") for text in axes.get_legend().get_texts()]


def test_curves_of_one_panel_share_axes_that_have_room(summaries):
    figure = draw("a title", summaries)
    figure.canvas.draw()
    assert len(figure.axes) == 2
    for axes, k in zip(figure.axes, (3, 4), strict=True):
        labels = legend(axes)
        assert len(labels) == 5  # the theorem's slope is one
        labels = labels[:4]
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
        labels = legend(axes)[:4]
        assert ["(2 uncertified)" in label for label in labels] == [False, False, True, True]


@pytest.mark.parametrize(("size", "grid"), [("single", (6, 1)), ("double", (3, 2))])
def test_figures_fit_the_columns_of_a_journal(summaries, size, grid):
    curves = [
        dataclasses.replace(
            summaries[0], curve=dataclasses.replace(summaries[0].curve, panel=panel)
        )
        for panel in "fdbeca"
    ]
    with style(size):
        figure = draw("a title that takes more than one line of a single column", curves, size)
        figure.canvas.draw()
    assert figure.get_size_inches()[0] == WIDTHS[size]
    axes = figure.axes
    assert {each.get_subplotspec().get_gridspec().get_geometry() for each in axes} == {grid}
    right = figure.get_window_extent().x1
    for each in axes:
        texts = each.get_legend().get_texts()
        assert all(text.get_window_extent().x1 <= right for text in texts)
        neighbours = [other for other in axes if other is not each]
        for text in texts:
            box = text.get_window_extent()
            assert not any(box.overlaps(other.get_window_extent()) for other in neighbours)
    with pytest.raises(ValueError, match="size must be one of screen, single, double, got 'wide'"):
        style("wide").__enter__()


def test_a_single_panel_is_as_wide_as_two_with_its_legend_beside_it(summaries):
    alone = [
        dataclasses.replace(each, curve=dataclasses.replace(each.curve, panel=""))
        for each in summaries
    ]
    figure, both = draw("a title", alone), draw("a title", summaries)
    figure.canvas.draw()
    assert figure.get_size_inches()[0] == both.get_size_inches()[0]
    (axes,) = figure.axes
    texts = axes.get_legend().get_texts()
    assert len(texts) == 9
    assert all(text.get_window_extent().x0 > axes.get_window_extent().x1 for text in texts)
    assert all(text.get_window_extent().x1 < figure.get_window_extent().x1 for text in texts)
    assert axes.get_position().width > 0.5


def test_axes_and_foot_say_what_is_drawn(summaries):
    figure = draw("a title", summaries)
    assert figure.axes[0].get_ylabel().endswith(r"$\mathcal{D}_{2r}$ (softmax-D2r, r = 2)")
    of_one_loss = [each for each in summaries if each.curve.loss == "D1"]
    label = draw("a title", of_one_loss).axes[0].get_ylabel()
    assert label == r"Voronoi loss $\mathcal{D}_{1}$ (D1)"
    foot = figure.get_supxlabel().replace("\n", " ")
    assert "geometric means, which the solid lines are fitted to; bars: their 95%" in foot
    assert ("crosses" in foot) == any(each.uncertified[0].size for each in summaries)
    assert ("dotted" in foot) == any(each.curve.published is not None for each in summaries)


def test_every_loss_has_a_symbol():
    of_papers = [name for name in LOSSES if name != "block-exponents"]
    assert all(loss_symbol(name).startswith(r"$\mathcal{") for name in of_papers)
    assert loss_symbol("test loss") == ""
