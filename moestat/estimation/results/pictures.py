"""Pictures of a fit: data and experts, gate, assignments, residuals, calibration, influence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.figures import HEIGHT, REFERENCE, WIDTH, new_axes, spread_out
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import positive_int
from moestat.estimation.data.variables import Along, Variables, plain
from moestat.estimation.fit.delta import (
    Quantity,
    gate_weights,
    means_of_experts,
    normal_reach,
    predictions,
)
from moestat.estimation.inference.diagnostics import calibration
from moestat.estimation.inference.effects import averages, errors_of
from moestat.estimation.results.criteria import Criteria
from moestat.estimation.results.summary import Estimate, estimates, short_label
from moestat.estimation.rules import PICTURES
from moestat.model.censoring import bounds_of
from moestat.solvers.rules import HALF_OF_DIGITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["Pictures"]

_SHOWN = 1e-4
"""Smallest posterior probability of a row that a rootogram shows, as in flexmix (Leisch 2004)."""

_AVERAGED = 200
"""Rows over which a line is averaged."""

_SMALL: dict[str, Any] = {"frameon": False, "fontsize": "small"}
"""Style of legends."""


def _add_legend(axes: Axes, **content: Any) -> None:
    """Add a legend beside axes that make room for it, where it hides no data, else inside."""
    beside: dict[str, Any] = {}
    if axes.figure.get_layout_engine() is not None:
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    axes.legend(**content, **_SMALL, **beside)


class Pictures(Criteria):
    """Plot methods of `moestat.estimation.results.results.MoEResults`.

    Each method draws on matplotlib axes that you give, or on new ones, and returns them.
    """

    @door(ax="Axes | None")
    def plot(
        self,
        ax: Any = None,
        *,
        feature: int | str = 0,
        at: Mapping[str, object] | ArrayLike | None = None,
    ) -> Any:
        """Plot data, experts and conditional mean along one variable; for classes, probabilities.

        The line of an expert is the more opaque, the larger its gate probability is.  Data have the
        colour of their most probable expert.  Each of several responses has its own axes.
        All terms of a formula that contain the variable change with it, such as the columns of a
        spline; a categorical variable has a short line at each of its levels.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.
        feature : int or str
            The variable on the x-axis: an input, or a column of the data that the formula of the
            experts or of the gate contains, by number (in the order of the formula) or name.
        at : mapping of str to value, or array_like of shape (d,), optional
            Values of other variables along the lines, by name; without a formula also those of all
            inputs.  By default variables that only the gate reads keep the values of the rows, over
            which the gate is averaged; others are at their means, and categorical ones at their
            most frequent level.  The axis says which.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ValueError
            If there is no such variable or level, `at` has another length, or the data were not
            stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot().lines)
        1
        """
        if self._responses:
            return self._by_response("plot", ax, feature=feature, at=at)
        line = self._along(feature, at)
        line = self._over_rows(line) if at is None else line
        axes = new_axes() if ax is None else ax
        family = self.family
        if family.likelihood.support is not None:
            chances = _mean(self._chances, line).T
            for label, column in zip(self._class_names(), chances, strict=True):
                axes.plot(line.x, column, label=label)
            axes.set(ylabel="probability", ylim=(0, 1))
            _add_legend(axes)
        else:
            colours: Any = "0.5"  # rows of a regression function belong to no expert
            if not family.is_regression:
                colours = [f"C{i % 10}" for i in self._most_probable()]
            axes.scatter(line.rows, self._heights(), s=6, c=colours, alpha=0.4)
            self._mark_bounds(axes, line.rows)
            mean = _mean(lambda X: family.mean(self.theta, X), line)
            keys = axes.plot(line.x, mean, color="black", label="conditional mean")
            if family.likelihood.spread is not None and not family.is_regression:
                keys += self._add_experts(axes, line)
            axes.set_ylabel(self._response_name())
            _add_legend(axes, handles=keys)
        line.label(axes)
        return axes

    def _over_rows(self, line: Along) -> Along:
        """The line, averaged over the rows for the variables that the gate alone reads."""
        if self.family.n_experts == 1 or self.family.is_regression:
            return line
        names = [
            name
            for name in line.held
            if self._moves(gate_weights, name) and not self._moves(means_of_experts, name)
        ]
        if not names:
            return line
        n = len(self.rows.X)
        some = np.unique(np.linspace(0, n - 1, min(n, _AVERAGED)).astype(int))
        variables = Variables.of(self.rows)
        return variables.averaged(line, names, some[self.weight[some] > 0.0], self.weight)

    def _moves(self, quantity: Quantity, name: str) -> bool:
        """Whether a quantity changes with a variable where the others are typical."""
        variables = Variables.of(self.rows)
        levels, values = variables.levels[name], variables.values[name]
        ends = [values.min(), values.max()] if levels is None else list(levels)
        rows = variables.one_row(variables.typical(self.weight))
        X = np.vstack([rows.changed(name, end) for end in ends])
        return bool(np.ptp(quantity(self.family, self.theta, X), axis=1).any())

    def _heights(self) -> FloatArray:
        """Responses (n,) as numbers: a share of trials, a known bound of a censored one."""
        y, likelihood = self.rows.y, self.family.likelihood
        if likelihood.support is not None:
            return np.asarray(y, dtype=np.float64)
        return likelihood.level(likelihood.encode(y, 1))

    def _mark_bounds(self, axes: Axes, x: FloatArray) -> None:
        """Mark censored responses by arrows from the known bound, or lines between both."""
        if "censored" not in self.family.likelihood.options:
            return
        low, high = bounds_of(self.rows.y)
        style = {"color": "0.4", "s": 14, **REFERENCE}
        for marker, at, side in (("^", np.isinf(high), low), ("v", np.isinf(low), high)):
            axes.scatter(x[at], side[at], marker=marker, facecolors="none", **style)
        between = np.isfinite(low) & np.isfinite(high) & (low < high)
        axes.vlines(x[between], low[between], high[between], color="0.4", **REFERENCE)

    def _add_experts(self, axes: Axes, along: Along) -> list[Line2D]:
        """Draw the experts and return opaque entries for the legend."""
        from matplotlib.collections import LineCollection

        X, spread = along.inputs, self.family.likelihood.spread
        assert spread is not None  # `plot` draws probabilities of classes
        mean, _ = spread(self.family.predictors(self.theta, np.ascontiguousarray(X.T)))
        gate = _mean(lambda X: self.family.gate_probabilities(self.theta, X), along).T
        for i, (line, opaque) in enumerate(zip(mean, gate, strict=True)):
            points = np.column_stack([along.x, line])
            pieces = np.stack([points[:-1], points[1:]], axis=1)
            curve = LineCollection(
                list(pieces),
                colors=f"C{i % 10}",
                alpha=np.clip(opaque[:-1], PICTURES.faint, 1.0),
                linewidths=2,
            )
            # Parts of a curve where the gate is near 0 must not set the limits of the axis.
            axes.add_collection(curve, autolim=False)
        return self._keys()

    @door(ax="Axes | None")
    def plot_gate(
        self,
        ax: Axes | None = None,
        *,
        feature: int | str | None = None,
        at: Mapping[str, object] | ArrayLike | None = None,
    ) -> Axes:
        """Plot the gate probability of each expert along one variable.

        Parameters
        ----------
        ax, at
            As in `plot`; the axes are returned.
        feature : int or str, optional
            The variable, as in `plot`; by default the first one along which the gate changes.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot_gate().lines)
        2
        """
        line = self._along_gate(at) if feature is None else self._along(feature, at)
        held = {name: v for name, v in line.held.items() if self._moves(gate_weights, name)}
        line = replace(line, held=held)
        axes = new_axes() if ax is None else ax
        for i, column in enumerate(self.family.gate_probabilities(self.theta, line.inputs).T):
            axes.plot(line.x, column, color=f"C{i % 10}", label=self.experts.called(i))
        axes.set(ylim=(0, 1), ylabel="gate probability")
        line.label(axes)
        _add_legend(axes)
        return axes

    def _along_gate(self, at: Mapping[str, object] | ArrayLike | None) -> Along:
        """The first variable along which gate probabilities change; the first one if none does."""
        variables = Variables.of(self.rows)
        first = self._along(0, at)
        for name in variables.levels:
            if name in variables.bound:
                continue
            line = self._along(name, at)
            gate = self.family.gate_probabilities(self.theta, line.inputs)
            if np.ptp(gate, axis=0).max() > HALF_OF_DIGITS:
                return line
        return first

    @door(ax="Axes | None")
    def plot_posterior(
        self, ax: Axes | Sequence[Axes] | np.ndarray | None = None, *, bins: int = 10
    ) -> np.ndarray:
        """Plot a rootogram of the posterior probabilities of each expert.

        Well separated experts have probabilities near 0 and 1.  Square roots of counts are drawn,
        without probabilities below 1e-4, as flexmix does.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            One per expert, which are returned; a new figure by default.
        bins : int
            Bins between 0 and 1.

        Notes
        -----
        Leisch (2004), after Tukey.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.plot_posterior().shape
        (2,)
        """
        count, weight = positive_int("bins", bins), self.rows.weight
        axes = self._panels(ax, self.family.n_experts, 2.8, 2.6, sharey=True)
        for i, (one, tau) in enumerate(zip(axes, self.responsibilities.T, strict=True)):
            large = tau > _SHOWN
            height, edges = np.histogram(tau[large], count, (0.0, 1.0), weights=weight[large])
            one.bar(edges[:-1], np.sqrt(height), np.diff(edges), align="edge", color=f"C{i % 10}")
            one.set_title(self.experts.called(i), fontsize="medium")
            one.set_xlabel("posterior probability")
        axes[0].set_ylabel("square root of counts")
        return axes

    @door(ax="Axes | None")
    def plot_coefficients(
        self, ax: Axes | Sequence[Axes] | np.ndarray | None = None, *, alpha: float = 0.05
    ) -> np.ndarray:
        """Plot the slopes of the gate and of the experts with their intervals.

        A slope is drawn for a change of its input by one standard deviation, so that inputs in
        any units share an axis.  Slopes without a standard error, such as those of the reference,
        are left out.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            One for the gate, where it has slopes, and one for the experts, or for each class,
            which are returned; a new figure by default.
        alpha : float
            Intervals have the level ``1 - alpha``.

        Raises
        ------
        ValueError
            If no slope has a standard error, `ax` has another length, or the data were not stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, 2 * x + np.sin(40 * x), n_experts=1, rng=0)
        >>> [axes.get_title() for axes in result.plot_coefficients()]
        ['experts']
        """
        X, weight = self.rows.X, self.weight / self.weight.sum()
        deviations = np.sqrt(weight @ (X - weight @ X) ** 2)
        spread = dict(zip(self._feature_names(), deviations, strict=True))
        panels: dict[str, list[Estimate]] = {}
        for each in estimates(self, alpha):
            if each.term.label in spread and each.status == "estimated":
                title = "gate" if each.term.part == "gate" else "experts"
                title += "" if each.term.equation is None else f": {each.term.equation}"
                panels.setdefault(title, []).append(each)
        if not panels:
            raise ValueError("no slope of the fit has a standard error")
        axes = self._panels(ax, len(panels), 1.2 + 0.25 * len(spread) * self.family.n_experts)
        for one, (title, members) in zip(axes, panels.items(), strict=True):
            labels = list(dict.fromkeys(each.term.label for each in members))
            for each in members:
                unit, i = spread[each.term.label], (each.term.expert or 1) - 1
                lane = (i + 0.5) / self.family.n_experts - 0.5
                at = labels.index(each.term.label) + 0.7 * lane
                ends = [unit * each.lower, unit * each.upper]
                one.plot(ends, [at, at], color=f"C{i % 10}")
                one.plot(unit * each.estimate, at, "o", color=f"C{i % 10}", markersize=4)
            one.axvline(0.0, color="0.7", zorder=0, **REFERENCE)
            one.set_yticks(range(len(labels)), [short_label(label) for label in labels])
            one.set_ylim(len(labels) - 0.5, -0.5)
            # An interval without end must not hide the others.
            units = np.array([[spread[each.term.label]] for each in members])
            ends = units * [[each.lower, each.upper] for each in members]
            length = np.ptp(ends, axis=1)
            known = length <= PICTURES.long * np.median(length)
            low, high = min(ends[known].min(), 0.0), max(ends[known].max(), 0.0)
            one.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
            one.set_title(title, fontsize="medium")
            one.set_xlabel("per standard deviation of the input", fontsize="small")
        _add_legend(axes[-1], handles=self._keys())
        return axes

    @door(ax="Axes | None")
    def plot_uncertainty(self, ax: Any = None, *, feature: int | str = 0) -> Any:
        """Plot the data; the larger a point, the less certain is its expert.

        Parameters
        ----------
        ax, feature
            As in `plot`; the axes are returned.

        Raises
        ------
        ValueError
            If there is no such variable, the family has no density, or the data were not stored.

        Notes
        -----
        The uncertainty is 1 minus the largest posterior probability, as in Fraley and Raftery
        (2002).

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot_uncertainty().collections)
        1
        """
        if self._responses:
            return self._by_response("plot_uncertainty", ax, feature=feature)
        line = replace(self._along(feature, None), held={})  # rows have their own values
        doubt = 1.0 - self.responsibilities.max(axis=1)
        colours = np.array([f"C{i % 10}" for i in range(self.family.n_experts)])
        y = self._heights()
        if self.family.likelihood.support is not None:
            y = y + 0.3 * spread_out(y.size)  # around the position of the class
        axes = new_axes() if ax is None else ax
        size = 4.0 + 90.0 * doubt
        axes.scatter(line.rows, y, s=size, c=colours[self._most_probable()], alpha=0.5)
        if self.family.likelihood.support is not None:
            names = self._class_names()
            axes.set_yticks(range(1, len(names) + 1), names)
        axes.set_ylabel(self._response_name())
        line.label(axes)
        axes.set_title(f"mean uncertainty {np.average(doubt, weights=self.weight):.3f}", size=10)
        _add_legend(axes, handles=self._keys(marker="o", linestyle="none", alpha=0.5))
        return axes

    @door(ax="Axes | None")
    def plot_effects(
        self,
        ax: Axes | Sequence[Axes] | np.ndarray | None = None,
        *,
        feature: int | str = 0,
        alpha: float = 0.05,
    ) -> np.ndarray:
        """Plot partial effects of one variable on the mean, or the probabilities, and on the gate.

        The method sets the variable to a value in every row, keeps the other variables, and
        averages the predictions over the rows; it uses at most 500 rows at equal distances.  Bands
        are intervals of these averages by the delta method, at the inputs of these rows.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            Two axes, which are returned; a new figure by default.
        feature : int or str
            The variable on the x-axis, as in `plot`.
        alpha : float
            The bands have the level ``1 - alpha`` at each value by itself.

        Notes
        -----
        Partial dependence, Friedman (2001), Sec. 8.2.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> [len(axes.lines) for axes in result.plot_effects()]
        [1, 2]
        """
        if self._responses:
            raise ValueError("plot_effects is for one response: use result.response(name)")
        family, n = self.family, len(self.rows.X)
        rows = np.unique(np.linspace(0, n - 1, min(n, PICTURES.rows)).astype(int))
        weight = self.weight[rows] / self.weight[rows].sum()
        classes = family.likelihood.support is not None
        line = Variables.of(self.rows).effects(feature, rows)
        left, right = axes = self._panels(ax, 2, HEIGHT)
        labels = self._class_names() if classes else ["mean"]
        colours = [f"C{i % 10}" for i in range(len(labels))] if classes else ["black"]
        X = line.inputs.reshape(-1, rows.size, family.n_features)
        half = normal_reach(alpha)
        curves = (
            (left, predictions, labels, colours),
            (
                *(right, gate_weights, self.experts.each),
                [f"C{i % 10}" for i in range(family.n_experts)],
            ),
        )
        for panel, quantity, names, own in curves:
            found = [averages(self, one, weight[:, None], quantity) for one in X]
            values = np.array([value[:, 0] for value, _ in found]).T
            errors = np.array([errors_of(self, slope[..., 0]) for _, slope in found]).T
            low, high = values - half * errors, values + half * errors
            if classes or panel is right:
                low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
            for j, (name, colour) in enumerate(zip(names, own, strict=True)):
                panel.plot(line.x, values[j], label=name, color=colour)
                panel.fill_between(line.x, low[j], high[j], color=colour, alpha=0.15, linewidth=0)
        left.set_ylabel("probability" if classes else self._response_name())
        right.set(ylabel="gate probability", ylim=(0, 1))
        _add_legend(right, handles=self._keys())
        if classes:
            _add_legend(left)
        for one in axes:
            line.label(one)
        return axes

    def _panels(
        self,
        ax: Axes | Sequence[Axes] | np.ndarray | None,
        count: int,
        height: float,
        width: float = 4.0,
        **options: Any,
    ) -> np.ndarray:
        """The axes `ax` as an array (count,), or new ones."""
        if ax is None:
            ax = new_axes(width * count, min(height, 9.0), count, **options)
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        if axes.shape != (count,):
            raise ValueError(f"ax must hold {count} axes, got shape {axes.shape}")
        return axes

    def _keys(self, **style: Any) -> list[Line2D]:
        """One entry of a legend for each expert, a line or in another style."""
        from matplotlib.lines import Line2D

        names = enumerate(self.experts.each)
        return [Line2D([], [], color=f"C{i % 10}", label=name, **style) for i, name in names]

    def picture(self) -> bytes:
        """The picture of `plot` as PNG, drawn without pyplot.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.picture()[1:4]
        b'PNG'
        """
        from io import BytesIO

        from matplotlib.figure import Figure

        width = WIDTH * max(1, len(self._responses))
        figure, file = Figure(figsize=(width, HEIGHT), layout="constrained"), BytesIO()
        count = len(self._responses)
        self.plot(figure.subplots(1, count) if count > 1 else figure.subplots())
        figure.savefig(file, format="png", dpi=100)
        return file.getvalue()

    @door(ax="Axes | None")
    def plot_qq(self, ax: Any = None, *, rng: Seed = None) -> Any:
        """Plot quantile residuals against normal quantiles: a line if the model is correct.

        Parameters
        ----------
        ax
            As in `plot`; the axes are returned.
        rng : numpy.random.Generator, int or None
            Source of the uniform numbers of classes.

        Notes
        -----
        Dunn and Smyth (1996).  Under a correct model, the band contains each ordered
        residual with probability 95%.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.plot_qq().get_ylabel()
        'quantile residual'
        """
        from scipy.special import ndtri
        from scipy.stats import beta

        if self._responses:
            return self._by_response("plot_qq", ax, rng=rng)
        residual, weight = np.asarray(self.quantile_residuals(rng)), self.rows.weight
        order = np.argsort(residual)
        order = order[weight[order] > 0.0]
        residual, weight = residual[order], weight[order]
        axes = new_axes() if ax is None else ax
        # A row of weight w is drawn at the middle of its w copies; places of Blom (1958).
        n = weight.sum()
        rank = np.cumsum(weight) - 0.5 * weight + 0.5
        normal = ndtri((rank - 3 / 8) / (n + 1 / 4))
        low, high = (ndtri(beta.ppf(side, rank, n + 1 - rank)) for side in (0.025, 0.975))
        axes.fill_between(normal, low, high, color="0.9")
        axes.plot(normal, normal, color="0.5", **REFERENCE)
        axes.plot(normal, residual, "o", markersize=3)
        axes.set(xlabel="normal quantile", ylabel="quantile residual")
        return axes

    @door(ax="Axes | None")
    def plot_calibration(self, ax: Axes | None = None, *, bins: int = 10) -> Axes:
        """Plot the observed frequency of each class against its predicted probability.

        Parameters
        ----------
        ax
            As in `plot`; the axes are returned.
        bins : int
            Bins of equal counts, or of equal weights.

        Raises
        ------
        ValueError
            If the response is not a class.

        Examples
        --------
        >>> from moestat import family, fit, sample
        >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
        >>> result = fit(F, *sample(F, [0, 0, 1, -2], n=300, rng=0), rng=0)
        >>> len(result.plot_calibration(bins=5).containers)
        2
        """
        if self.family.likelihood.support is None:
            raise ValueError("plot_calibration is only for classes; see plot_qq for numbers")
        chances, y = self._chances(self.rows.X), self.rows.y
        axes = new_axes() if ax is None else ax
        axes.plot([0, 1], [0, 1], color="0.5", **REFERENCE)
        label = self.family.likelihood.encode(y, self.family.n_classes)
        for s, name in enumerate(self._class_names()):
            curve = calibration(
                chances[:, s], label == s, self.rows.weight, positive_int("bins", bins)
            )
            error = np.sqrt(curve["predicted"] * (1 - curve["predicted"]) / curve["count"])
            axes.errorbar(
                curve["predicted"], curve["observed"], 2 * error, marker="o", capsize=2, label=name
            )
        axes.set(xlabel="predicted probability", ylabel="observed frequency")
        _add_legend(axes)
        return axes

    @door(ax="Axes | None")
    def plot_influence(self, ax: Axes | None = None, *, named: int = 3) -> Axes:
        """Plot the likelihood displacement of each row, or group, if it is left out.

        Parameters
        ----------
        ax
            As in `plot`; the axes are returned.
        named : int
            Number of the most influential rows that are labelled by their numbers.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot_influence(named=2).texts)
        2
        """
        height = self.influence().displacement
        axes = new_axes() if ax is None else ax
        axes.vlines(np.arange(height.size), 0, height, linewidth=1)
        for t in np.argsort(height)[::-1][:named]:
            axes.annotate(str(t), (t, height[t]), fontsize="small")
        axes.set_ylim(bottom=0)
        what = "row" if self.rows.groups is None else "group"
        axes.set(xlabel=what, ylabel="likelihood displacement")
        return axes

    def _by_response(
        self, picture: str, ax: Axes | Sequence[Axes] | np.ndarray | None, **options: Any
    ) -> np.ndarray:
        """A picture of each of several responses, beside each other."""
        axes = self._panels(ax, len(self._responses), HEIGHT)
        for panel, response in zip(axes, self._responses, strict=True):
            getattr(response, picture)(panel, **options)
            held = panel.get_title()
            panel.set_title(response.name + f"\n{held}" * bool(held), size=10)
        return axes

    def _chances(self, X: FloatArray) -> FloatArray:
        return self.family.probabilities(self.theta, X)

    def _most_probable(self) -> IntArray:
        return np.argmax(self.responsibilities, axis=1)

    def _class_names(self) -> list[str]:
        known = self.rows.class_labels
        return [str(c) for c in (range(1, self.family.n_classes + 1) if known is None else known)]

    def _feature_names(self) -> list[str]:
        known = self.rows.features
        return list(known) if known else [f"x[{j}]" for j in range(self.family.n_features)]

    def _response_name(self) -> str:
        return plain(getattr(self.rows, "response", None) or "y")

    def _along(self, feature: int | str, at: object) -> Along:
        """Inputs along one variable, with others at values or where they are typical."""
        return Variables.of(self.rows).along(feature, at, self.weight)


def _mean(function: Callable[[FloatArray], FloatArray], line: Along) -> FloatArray:
    """Values (m,) or (m, c) of a function of inputs along a line, averaged over its rows."""
    r, m, d = line.cloud.shape
    values = function(line.cloud.reshape(r * m, d))
    return np.einsum("r,rm...->m...", line.share, values.reshape(r, m, *values.shape[1:]))
