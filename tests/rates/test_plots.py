import dataclasses
import itertools

import matplotlib as mpl
import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure

from moestat.rates.plots import plot_rates, save_figure
from moestat.rates.rate import RateCurve, fit_rate


@pytest.fixture
def curves():
    rng = np.random.default_rng(0)
    n = np.repeat([1e3, 1e4, 1e5], 10)
    steady = 2 * n**-0.5 * np.exp(0.1 * rng.standard_normal(n.size))
    wild = n**-0.25 * np.exp(1.5 * rng.standard_normal(n.size))
    return [
        RateCurve("sigmoid", n, steady, fit_rate(n, steady)),
        RateCurve("softmax", n, wild, fit_rate(n, wild), n_failed=2),
        RateCurve("bare", n[::10], wild[::10]),
    ]


def test_what_is_drawn(curves):
    ax = plot_rates(curves)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sample size $n$", "loss")
    bars = ax.containers
    assert len(bars) == 3
    n, loss, rate = curves[0].n, curves[0].loss, curves[0].rate
    sizes, means = bars[0].lines[0].get_data()
    assert sizes == pytest.approx([1e3, 1e4, 1e5], rel=0.1)
    logs = [np.log(loss[n == size]) for size in (1e3, 1e4, 1e5)]
    assert means == pytest.approx([np.exp(each.mean()) for each in logs])
    # The interval of each mean is that of a t test.
    segments = [segment[:, 1] for segment in bars[0].lines[2][0].get_segments()]
    for segment, each in zip(segments, logs, strict=True):
        interval = scipy.stats.ttest_1samp(each, 0.0).confidence_interval(0.95)
        assert np.log(segment) == pytest.approx([interval.low, interval.high])
    fitted = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert len(fitted) == 2
    expected = np.exp(rate.intercept) * np.array([1e3, 1e4, 1e5]) ** rate.slope
    assert fitted[0].get_ydata() == pytest.approx(expected)
    assert fitted[0].get_color() == bars[0].lines[0].get_color()
    assert len({bar.lines[0].get_color() for bar in bars}) == 3
    assert len({bar.lines[0].get_marker() for bar in bars}) == 3


def test_the_line_is_fitted_to_the_markers():
    n = np.repeat([1e3, 1e4, 1e5], 2)
    loss = n**-0.5 * np.tile([1.0, 1e-6], 3)
    ax = plot_rates([RateCurve("wild", n, loss, fit_rate(n, loss))])
    (line,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert ax.containers[0].lines[0].get_ydata() == pytest.approx(line.get_ydata())


def test_equal_curves_do_not_hide_each_other(curves):
    ax = plot_rates([curves[0], curves[0]])
    first, second = (bar.lines[0].get_xdata() for bar in ax.containers)
    assert np.all(second > 1.02 * first)


def test_theorems_and_papers_have_lines_of_their_own():
    n = np.repeat([1e3, 1e4, 1e5], 4)
    loss = n**-0.4 * np.tile([0.9, 1.0, 1.1, 1.2], 3)
    rate = fit_rate(n, loss, theory=-0.5)
    ax = plot_rates([RateCurve(name, n, loss, rate, published=-0.46) for name in "ab"])
    lines = {
        style: [line.get_ydata() for line in ax.lines if line.get_linestyle() == style]
        for style in ("--", ":")
    }
    assert [len(found) for found in lines.values()] == [2, 2]
    for slope, found in ((-0.5, lines["--"]), (-0.46, lines[":"])):
        assert np.log10(found[0][2] / found[0][0]) == pytest.approx(2 * slope)
    marks = ax.containers[0].lines[0].get_ydata()
    assert lines["--"][0][0] == pytest.approx(marks[0])
    assert lines[":"][0][1] == pytest.approx(marks[1])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [text.startswith("theorem: $n^{-0.5}$") for text in texts] == [False, False, True]
    assert "paper $n^{-0.46}$" in texts[0].replace("\n", " ")


def test_uncertified_fits_are_crosses_and_replays_have_open_markers(curves):
    doubtful = ([1e3, 1e4], [0.5, 0.25])
    curve = dataclasses.replace(curves[0], uncertified=doubtful, replay=True)
    ax = plot_rates([curves[0], curve])
    (crosses,) = (line for line in ax.lines if line.get_marker() == "x")
    assert crosses.get_ydata().tolist() == doubtful[1]
    faces = [bar.lines[0].get_markerfacecolor() for bar in ax.containers]
    assert faces[1] == "white"
    assert faces[0] != "white"


def test_legend(curves):
    texts = [text.get_text() for text in plot_rates(curves).get_legend().get_texts()]
    texts = [text.replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ") for text in texts]
    rate = curves[0].rate
    low, high = (f"{end:.2f}".replace("-", "\N{MINUS SIGN}") for end in rate.interval)
    assert texts[0] == f"sigmoid: $n^{{{rate.slope:.2f}}}$ [{low}, {high}]"
    assert texts[1].endswith("(2 failed)")
    assert texts[2] == "bare"


def test_legend_without_an_interval():
    rate = fit_rate([10, 100], [1, 0.1])
    ax = plot_rates([RateCurve("two", [10, 100], [1, 0.1], rate)])
    assert ax.get_legend().get_texts()[0].get_text() == "two: $n^{-1.00}$"


@pytest.mark.parametrize("n", [[1_000_000], [1_000_000] * 3])
@pytest.mark.parametrize("given", [True, False])
def test_a_single_size_has_room_on_both_sides(n, given, tmp_path):
    loss = [1e-9] * len(n)
    ax = plot_rates([RateCurve("one", n, loss)], ax=Figure().add_subplot() if given else None)
    assert ax.get_xlim() == (500_000, 2_000_000)
    assert ax.get_ylim() == pytest.approx((5e-10, 2e-9))
    assert save_figure(ax.figure, tmp_path / "one.png").stat().st_size > 0


@pytest.mark.parametrize("n", [(1e4, 2e4), (2e3, 3.2e4), (1e4, 1e6)])
def test_labels_of_the_sample_sizes_do_not_overlap(n):
    ax = plot_rates([RateCurve("x", n, [1.0, 0.5])], ax=Figure((4.5, 4)).add_subplot())
    ax.figure.canvas.draw()
    view = ax.get_window_extent()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels(which="both")]
    ends = sorted((box.x0, box.x1) for box in boxes if view.x0 <= box.x0 + box.width / 2 <= view.x1)
    assert len(ends) >= 2
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(ends))


def test_axes_that_hold_something_keep_their_limits(curves):
    ax = plot_rates(curves)
    before = ax.get_xlim()
    plot_rates([RateCurve("one", [1e4], [1.0])], ax=ax)
    assert ax.get_xlim() == before


def test_the_legend_is_one_column_above_the_axes(curves):
    ax = plot_rates(curves)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_legend().get_texts()]
    assert len({round(box.x0) for box in boxes}) == 1
    assert min(box.y0 for box in boxes) >= ax.get_window_extent().y1


def test_draws_into_given_axes(curves):
    figure = Figure()
    axes = figure.subplots(1, 2)
    assert plot_rates(curves, ax=axes[1]) is axes[1]
    assert len(axes[0].lines) == 0


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")]
)
def test_save(curves, tmp_path, suffix, magic):
    path = save_figure(plot_rates(curves).figure, tmp_path / f"rates{suffix}")
    first = path.read_bytes()
    assert first.startswith(magic)
    assert save_figure(plot_rates(curves).figure, str(path)).read_bytes() == first
    assert mpl.rcParams["pdf.fonttype"] == mpl.rcParamsDefault["pdf.fonttype"]


def test_new_axes_are_of_pyplot_so_that_notebooks_show_them(curves):
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    axes = plot_rates(curves)
    assert {axes.figure.number} == set(pyplot.get_fignums()) - before


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([], "curves must hold at least one"),
        ([RateCurve("x", [1, 2], [1, 0])], "curve 'x' must have positive n and loss"),
        ([RateCurve("x", [1, 2], [1])], "loss must have shape"),
        ([RateCurve("x", [], [])], "at least one"),
    ],
)
def test_wrong_curves(curves, message):
    with pytest.raises(ValueError, match=message):
        plot_rates(curves)


def test_wrong_suffix(tmp_path):
    with pytest.raises(
        ValueError, match=r"path must end in \.png, \.pdf or \.svg, got 'rates\.gif'"
    ):
        save_figure(Figure(), tmp_path / "rates.gif")


@pytest.mark.parametrize(("n", "loss"), [([0, 10], [1, 1]), ([10, 20], [1, 0]), ([], [])])
def test_what_has_no_logarithm_is_refused(n, loss):
    with pytest.raises(ValueError, match="curve 'own' must have positive n and loss"):
        plot_rates([RateCurve("own", n, loss)])
