"""Diagnostics and pictures of a fit: what they show, and of which numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import moestat
from moestat.estimation.starts import GivenStarts


@pytest.fixture(scope="module")
def lines():
    """Two lines with known labels."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, 150)
    z = rng.random(150) < 1 / (1 + np.exp(-2 * x))
    y = np.where(z, 1 + 2 * x, -1 - 1.5 * x) + rng.normal(scale=0.4, size=150)
    return x, y, z, moestat.fit("gaussian", x, y, n_experts=2, rng=0)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(600, 2))
    y = np.where(rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    return X, y, moestat.fit("multinomial", X, y, n_experts=1, rng=0)


def test_influence_is_what_refits_find(lines):
    x, y, _, result = lines
    found = result.influence()
    by_size = np.argsort(found.displacement)
    for t in (*by_size[-3:], *by_size[70:72]):
        kept = np.arange(x.size) != t
        own = [GivenStarts(result.theta[None, :])]
        without = moestat.fit(result.family, x[kept], y[kept], starts=own)
        moved = without.theta - result.theta
        assert np.linalg.norm(found.moves[t] - moved) < 0.15 * np.linalg.norm(moved)
        there = moestat.log_likelihood(result.family, without.theta, x[:, None], y)
        assert found.displacement[t] == pytest.approx(2 * (result.llf - there), rel=0.3)


def test_influence_counts_a_row_with_its_weight(lines):
    x, y, _, _ = lines
    weight = np.ones(150)
    weight[7] = 3.0
    result = moestat.fit("gaussian", x, y, n_experts=2, rng=0, sample_weight=weight)
    kept = np.arange(150) != 7
    own = [GivenStarts(result.theta[None, :])]
    without = moestat.fit(result.family, x[kept], y[kept], starts=own, sample_weight=weight[kept])
    moved = without.theta - result.theta
    # A third of the move, that of a weight of 1, would be far outside.
    assert np.linalg.norm(result.influence().moves[7] - moved) < 0.3 * np.linalg.norm(moved)


def test_assignments_against_known_labels(lines):
    _, _, z, result = lines
    table = result.classification_table(np.where(z, "up", "down"))
    assert list(table.index) == ["down", "up"]
    counts = table.to_numpy()
    assert counts.sum() == 150
    assert max(counts.trace(), counts[::-1].trace()) > 130
    assert 0 < result.entropy < 0.3
    tau = moestat.responsibilities(result.family, result.theta, lines[0][:, None], lines[1])
    np.testing.assert_allclose(result.responsibilities, tau)
    with pytest.raises(ValueError, match=r"labels must hold one label per row, shape \(150,\)"):
        result.classification_table(["up"])


def test_entropy_of_a_blind_guess(lines):
    result = lines[3]
    model = result.family
    same = model.pack({"beta0": [0, 0], "beta1": [0, 0], "a": [1, 1], "b": [0, 0], "nu": [1, 1]})
    blind = replace(result, solution=replace(result.solution, theta=same))
    assert blind.entropy == pytest.approx(1.0)


def test_residuals_of_a_right_model_are_normal(lines):
    residual = lines[3].quantile_residuals()
    assert abs(residual.mean()) < 0.2
    assert abs(residual.std() - 1) < 0.15


def test_the_picture_of_a_fit_shows_its_mean_and_data(lines):
    x, y, _, result = lines
    axes = result.plot()
    (mean,) = axes.lines
    np.testing.assert_allclose(mean.get_ydata(), result.predict(mean.get_xdata()[:, None]))
    points = axes.collections[0].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([x, y]))
    colours = axes.collections[0].get_facecolors()[:, :3]
    first = np.argmax(result.responsibilities, axis=1) == 0
    assert np.ptp(colours[first], axis=0).max() == 0
    assert len(axes.collections) == 1 + 2


def test_the_picture_of_a_gate_is_the_gate(lines):
    result = lines[3]
    drawn = np.column_stack([line.get_ydata() for line in result.plot_gate().lines])
    at = result.plot_gate().lines[0].get_xdata()
    np.testing.assert_allclose(
        drawn, moestat.gate_probabilities(result.family, result.theta, at[:, None])
    )


def test_a_rootogram_counts_all_rows_above_its_limit(lines):
    result = lines[3]
    for i, axes in enumerate(result.plot_posterior(bins=7)):
        heights = np.array([bar.get_height() for bar in axes.patches])
        assert len(heights) == 7
        assert np.sum(heights**2) == pytest.approx(np.sum(result.responsibilities[:, i] > 1e-4))


def test_a_qq_plot_holds_the_ordered_residuals(lines):
    result = lines[3]
    drawn = result.plot_qq().lines[-1]
    np.testing.assert_allclose(drawn.get_ydata(), np.sort(result.quantile_residuals()))
    assert np.all(np.diff(drawn.get_xdata()) > 0)


def test_calibration_of_a_right_model_is_on_the_diagonal(classes):
    _, y, result = classes
    axes = result.plot_calibration(bins=4)
    line = axes.containers[0].lines[0]
    assert len(line.get_xdata()) == 4
    assert np.all(np.abs(line.get_xdata() - line.get_ydata()) < 0.1)
    # Classes have their names, and the diagonal none.
    assert axes.get_legend_handles_labels()[1] == ["no", "yes"]
    assert result.plot(feature=1).get_ylabel() == "probability"
    np.testing.assert_allclose(np.mean(y == "no"), line.get_ydata().mean(), atol=0.02)


def test_influence_is_drawn_with_the_numbers_of_the_largest(lines):
    result = lines[3]
    axes = result.plot_influence(named=2)
    top = np.argsort(result.influence().displacement)[::-1][:2]
    assert [text.get_text() for text in axes.texts] == [str(t) for t in top]


@pytest.mark.parametrize(
    "name", ["plot", "plot_gate", "plot_qq", "plot_influence", "plot_posterior", "plot_uncertainty"]
)
def test_pictures_draw_on_the_axes_that_are_given(lines, name):
    grid = Figure().subplots(1, 2)
    given = grid if name == "plot_posterior" else grid[0]
    assert np.all(getattr(lines[3], name)(given) == given)
    assert grid[0].has_data()


def test_coefficients_are_drawn_per_standard_deviation(lines, classes):
    x, _, _, result = lines
    gate, experts = result.plot_coefficients(alpha=0.1)
    assert [one.get_title() for one in (gate, experts)] == ["gate", "experts"]
    drawn = [line.get_xdata() for line in experts.lines if len(line.get_xdata()) == 1]
    slopes = result.blocks["a"].ravel() * x.std()
    np.testing.assert_allclose(np.ravel(drawn), slopes)
    ends = np.array([line.get_xdata() for line in experts.lines[0:4:2]])
    at = [result.param_names.index(name) for name in ("a[1,0]", "a[2,0]")]
    np.testing.assert_allclose(ends, np.asarray(result.conf_int(0.1))[at] * x.std())
    titles = [one.get_title() for one in classes[2].plot_coefficients()]
    assert titles[-1] == "experts: no"


def test_uncertain_rows_are_large(lines):
    result = lines[3]
    size = result.plot_uncertainty().collections[0].get_sizes()
    doubt = 1.0 - result.responsibilities.max(axis=1)
    assert np.array_equal(np.argsort(size, kind="stable"), np.argsort(doubt, kind="stable"))


def test_partial_effects_are_averages_over_the_rows(classes):
    X, _, result = classes
    left, right = result.plot_effects(feature=1)
    at = left.lines[0].get_xdata()[7]
    moved = X.copy()
    moved[:, 1] = at
    chances = result.predict_proba(
        moved[np.unique(np.linspace(0, len(X) - 1, min(len(X), 500)).astype(int))]
    )
    assert left.lines[0].get_ydata()[7] == pytest.approx(chances[:, 0].mean())
    assert left.lines[0].get_xdata()[-1] == X[:, 1].max()
    assert len(right.lines) == result.family.n_experts


def test_a_notebook_shows_the_fit_and_its_picture(lines):
    result = lines[3]
    page = result._repr_html_()
    assert "data:image/png;base64,iVBORw0KGgo" in page
    assert result.summary().as_html() in page
    assert "<img" not in result.without_data()._repr_html_()


def test_answers_are_said_in_one_line(lines):
    x, y, _, result = lines
    chosen = moestat.select(result.family, x, y, k=(1, 2), rng=0)
    assert repr(chosen).startswith("<Selection: bic chooses 2 of k = 1, 2 experts")
    assert "chosen: aic" in chosen._repr_html_()
    test = moestat.bootstrap_lrt(chosen.results[1], chosen.results[2], 19, rng=0)
    assert f"p = {test.pvalue:.4g}" in repr(test)
    restricted = result.fit_constrained("b[1] = 0")
    assert f"p = {restricted.lr_test.pvalue:.4g}" in repr(restricted)
    assert all("\n" not in repr(each) for each in (chosen, test, restricted, restricted.lr_test))


def test_inputs_of_pictures_are_checked(lines, classes):
    result = lines[3]
    with pytest.raises(ValueError, match=r"feature must be in 0\.\.0, got 1"):
        result.plot(feature=1)
    with pytest.raises(ValueError, match=r"feature must be one of x\[0\], got 'z'"):
        result.plot_gate(feature="z")
    with pytest.raises(ValueError, match="ax must hold 2 axes"):
        result.plot_posterior(Figure().subplots(1, 3))
    with pytest.raises(ValueError, match="only for classes"):
        result.plot_calibration()
    with pytest.raises(ValueError, match="without the data"):
        result.without_data().plot()


def test_the_other_inputs_of_a_picture_stay_where_they_are(classes):
    X, _, result = classes
    at = [0.7, -1.0]
    drawn = result.plot(feature=0, at=at).lines[0]
    there = np.column_stack([drawn.get_xdata(), np.full(drawn.get_xdata().size, -1.0)])
    np.testing.assert_allclose(drawn.get_ydata(), result.predict_proba(there)[:, 0])
    middle = result.plot(feature=0).lines[0]
    there[:, 1] = X[:, 1].mean()
    np.testing.assert_allclose(middle.get_ydata(), result.predict_proba(there)[:, 0])


@pytest.fixture(scope="module")
def by_formula():
    rng = np.random.default_rng(2)
    n = 200
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, n), "t": rng.uniform(0, 3, n)})
    frame["f"] = rng.choice(["low", "high"], n, p=[0.7, 0.3])
    frame["y"] = 1 + frame.x * frame.t + (frame.f == "low") + 0.3 * rng.normal(size=n)
    return frame, moestat.fit_formula(
        "y ~ bs(t, df=4) + x + x:t + f | x", frame, n_experts=1, rng=0
    )


@pytest.mark.parametrize("feature", ["t", "x"])
def test_the_line_of_a_picture_is_the_prediction_where_one_column_changes(by_formula, feature):
    """The columns of a spline, and products, were held at their means."""
    frame, result = by_formula
    drawn = result.plot(feature=feature).lines[0]
    there = frame.assign(f="low", x=frame.x.mean(), t=frame.t.mean()).head(200)
    there[feature] = drawn.get_xdata()
    np.testing.assert_allclose(drawn.get_ydata(), result.predict(there))
    points = result.plot(feature=feature).collections[0].get_offsets()
    np.testing.assert_allclose(points, frame[[feature, "y"]])


def test_a_picture_along_a_category_has_a_line_for_each_level(by_formula):
    frame, result = by_formula
    axes = result.plot(feature="f", at={"x": 0.5, "t": 2.0})
    there = pd.DataFrame({"f": ["high", "low"], "x": 0.5, "t": 2.0})
    drawn = axes.lines[0]
    np.testing.assert_allclose(drawn.get_ydata()[::3], result.predict(there))
    assert np.isnan(drawn.get_xdata()[2::3]).all()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["high", "low"]
    places = np.asarray(axes.collections[0].get_offsets())[:, 0]
    assert np.array_equal(np.rint(places), (frame.f == "low").astype(float))


def test_effects_change_a_column_in_every_row(by_formula):
    frame, result = by_formula
    left, _ = result.plot_effects(feature="t")
    x, height = left.lines[0].get_xdata(), left.lines[0].get_ydata()
    assert height[3] == pytest.approx(result.predict(frame.assign(t=x[3])).mean())


def test_values_of_pictures_by_formula_have_names(by_formula):
    _, result = by_formula
    with pytest.raises(ValueError, match="feature must be one of t, x, f, got 'z'"):
        result.plot(feature="z")
    with pytest.raises(ValueError, match="at must hold values of columns by name"):
        result.plot(at=[1.0, 2.0])
    with pytest.raises(ValueError, match="at: no variable 'z'; there are f, t, x"):
        result.plot(at={"z": 1.0})
    with pytest.raises(ValueError, match="at: f has the levels high, low, got 'none'"):
        result.plot(at={"f": "none"})
    with pytest.raises(ValueError, match="at: x"):
        result.plot(at={"x": "none"})


def test_a_legend_is_beside_our_axes_and_inside_given_ones():
    """Beside them it hides no data; axes of a user may have no room there."""
    from matplotlib import pyplot

    x = np.linspace(-1.0, 1.0, 60)
    result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9.0 * x), rng=0)
    for name in ("plot", "plot_gate", "plot_uncertainty"):
        ours = getattr(result, name)()
        given = getattr(result, name)(pyplot.subplots()[1])
        for axes, beside in ((ours, True), (given, False)):
            axes.figure.canvas.draw()
            legend, data = axes.get_legend().get_window_extent(), axes.get_window_extent()
            assert (legend.x0 >= data.x1) == beside
            assert legend.x1 <= axes.figure.bbox.x1
