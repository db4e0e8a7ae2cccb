"""Pictures of a fit: data and experts, gate, assignments, residuals, calibration, influence."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int
from moestat.estimation.inference.diagnostics import calibration

__all__ = ["Pictures"]

_POINTS = 200
"""Points of a curve."""


def _axes(ax: Any, width: float = 5.0) -> Any:
    """The axes that were given, or new ones."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(width, 3.5), layout="constrained").subplots()


class Pictures:
    """Methods of `moestat.estimation.results.MoEResults` that draw.

    All take matplotlib axes to draw on, new ones by default, and return them.
    """

    family: Any
    theta: FloatArray
    rows: Any
    weight: FloatArray
    responsibilities: Any
    quantile_residuals: Any
    influence: Any

    def plot(self, ax: Any = None, *, feature: int | str = 0, at: Any = None) -> Any:
        """Data, experts and conditional mean along one input; for classes their probabilities.

        The line of an expert is as opaque as its gate is open; data have the colour of their most
        probable expert.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.
        feature : int or str
            The input on the x-axis, by number or name.
        at : array_like of shape (d,), optional
            Values of the other inputs along the lines; their means by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ValueError
            If there is no such input, `at` has another length, or the data were not stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot().lines)
        1
        """
        axes, (j, name, X) = _axes(ax), self._along(feature, at)
        family, x = self.family, X[:, j]
        if family.likelihood.support is not None:
            for label, column in zip(self._class_names(), self._chances(X).T, strict=True):
                axes.plot(x, column, label=label)
            axes.set_ylabel("probability")
            axes.set_ylim(0, 1)
            axes.legend(frameon=False, fontsize="small")
        else:
            own = self._most_probable() if not family.is_regression else 0
            colours = np.array([f"C{i % 10}" for i in range(family.n_experts)])
            axes.scatter(self.rows.X[:, j], self.rows.y, s=6, c=colours[own], alpha=0.4)
            keys = axes.plot(x, family.mean(self.theta, X), color="black", label="conditional mean")
            if family.likelihood.spread is not None and not family.is_regression:
                keys += self._add_experts(axes, X, j)
            axes.set_ylabel(self._response_name())
            axes.legend(handles=keys, frameon=False, fontsize="small")
        axes.set_xlabel(name)
        return axes

    def _add_experts(self, axes: Any, X: FloatArray, j: int) -> list[Any]:
        """Draw the experts; what a legend has for them is opaque."""
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        mean, _ = self.family.likelihood.spread(
            self.family.predictors(self.theta, np.ascontiguousarray(X.T))
        )
        gate = self.family.gate_probabilities(self.theta, X).T
        for i, (line, opaque) in enumerate(zip(mean, gate, strict=True)):
            points = np.column_stack([X[:, j], line])
            pieces = np.stack([points[:-1], points[1:]], axis=1)
            drawn = LineCollection(
                list(pieces),
                colors=f"C{i % 10}",
                alpha=np.clip(opaque[:-1], 0.05, 1.0),
                linewidths=2,
            )
            # Far away where its gate is shut, an expert does not set the scale.
            axes.add_collection(drawn, autolim=False)
        every = range(self.family.n_experts)
        return [Line2D([], [], color=f"C{i % 10}", label=f"expert {i}") for i in every]

    def plot_gate(self, ax: Any = None, *, feature: int | str = 0, at: Any = None) -> Any:
        """Probability of each expert along one input.

        Parameters
        ----------
        ax, feature, at
            As in `plot`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot_gate().lines)
        2
        """
        axes, (j, name, X) = _axes(ax), self._along(feature, at)
        for i, column in enumerate(self.family.gate_probabilities(self.theta, X).T):
            axes.plot(X[:, j], column, color=f"C{i % 10}", label=f"expert {i}")
        axes.set_ylim(0, 1)
        axes.set_xlabel(name)
        axes.set_ylabel("gate probability")
        axes.legend(frameon=False, fontsize="small")
        return axes

    def plot_posterior(self, ax: Any = None, *, bins: int = 10) -> Any:
        """Rootogram of the posterior probabilities of each expert.

        Well separated experts have probabilities near 0 and 1.  Square roots of counts are drawn,
        without probabilities below 1e-4, as flexmix does.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            One per expert; a new figure by default.
        bins : int
            Bins between 0 and 1.

        Returns
        -------
        ndarray of matplotlib.axes.Axes
            The axes, one per expert.

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
        k, count = self.family.n_experts, positive_int("bins", bins)
        if ax is None:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(2.6 * k, 2.8), layout="constrained")
            ax = figure.subplots(1, k, squeeze=False, sharey=True)[0]
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        if axes.shape != (k,):
            raise ValueError(f"ax must hold one axes per expert, {k}, got shape {axes.shape}")
        for i, (one, tau) in enumerate(zip(axes, self.responsibilities.T, strict=True)):
            shown = tau > 1e-4
            height, edges = np.histogram(tau[shown], count, (0.0, 1.0), weights=self.weight[shown])
            one.bar(edges[:-1], np.sqrt(height), np.diff(edges), align="edge", color=f"C{i % 10}")
            one.set_title(f"expert {i}", fontsize="medium")
            one.set_xlabel("posterior probability")
        axes[0].set_ylabel("square root of counts")
        return axes

    def plot_qq(self, ax: Any = None, *, rng: Any = None) -> Any:
        """Quantile residuals against normal quantiles: a straight line if the model is right.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.
        rng : numpy.random.Generator, int or None
            Source of the uniform numbers of classes.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Notes
        -----
        Dunn and Smyth (1996).  The band holds 95% of each ordered residual of a right model.

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

        axes = _axes(ax)
        residual = np.sort(self.quantile_residuals(rng))
        n = residual.size
        rank = np.arange(1, n + 1)
        normal = ndtri((rank - 0.375) / (n + 0.25))
        low, high = (ndtri(beta.ppf(side, rank, n + 1 - rank)) for side in (0.025, 0.975))
        axes.fill_between(normal, low, high, color="0.9")
        axes.plot(normal, normal, color="0.5", linewidth=0.8)
        axes.plot(normal, residual, "o", markersize=3)
        axes.set_xlabel("normal quantile")
        axes.set_ylabel("quantile residual")
        return axes

    def plot_calibration(self, ax: Any = None, *, bins: int = 10) -> Any:
        """How often each class occurred against its predicted probability.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.
        bins : int
            Bins of equal counts.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

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
            raise ValueError("calibration is of classes; plot_qq is for a continuous response")
        axes, chances, y = _axes(ax), self._chances(self.rows.X), self.rows.y
        axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
        label = self.family.likelihood.encode(y, self.family.n_classes)
        for s, name in enumerate(self._class_names()):
            found = calibration(chances[:, s], label == s, positive_int("bins", bins))
            error = np.sqrt(found["predicted"] * (1 - found["predicted"]) / found["count"])
            axes.errorbar(
                found["predicted"], found["observed"], 2 * error, marker="o", capsize=2, label=name
            )
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("observed frequency")
        axes.legend(frameon=False, fontsize="small")
        return axes

    def plot_influence(self, ax: Any = None, *, named: int = 3) -> Any:
        """Likelihood displacement of each row if it is left out.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.
        named : int
            How many of the most influential rows have their number beside them.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> len(result.plot_influence(named=2).texts)
        2
        """
        axes = _axes(ax)
        height = self.influence().displacement
        axes.vlines(np.arange(height.size), 0, height, linewidth=1)
        for t in np.argsort(height)[::-1][:named]:
            axes.annotate(str(t), (t, height[t]), fontsize="small")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("row")
        axes.set_ylabel("likelihood displacement")
        return axes

    def _chances(self, X: FloatArray) -> FloatArray:
        return self.family.probabilities(self.theta, X)

    def _most_probable(self) -> Any:
        return np.argmax(self.responsibilities, axis=1)

    def _class_names(self) -> list[str]:
        known = self.rows.classes
        return [str(c) for c in (range(1, self.family.n_classes + 1) if known is None else known)]

    def _feature_names(self) -> list[str]:
        known = self.rows.features
        return list(known) if known else [f"x[{j}]" for j in range(self.family.n_features)]

    def _response_name(self) -> str:
        return getattr(self.rows, "response", None) or "y"

    def _along(self, feature: int | str, at: Any) -> tuple[int, str, FloatArray]:
        """Number and name of an input, and inputs (m, d) along it."""
        names = self._feature_names()
        if isinstance(feature, str) and feature in names:
            feature = names.index(feature)
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
            raise ValueError(f"feature must be one of {', '.join(names)}, got {feature!r}")
        if not 0 <= feature < len(names):
            raise ValueError(f"feature must be in 0..{len(names) - 1}, got {feature}")
        X = self.rows.X
        middle = np.average(X, axis=0, weights=self.weight)
        point = middle if at is None else as_floats("at", at, (len(names),))
        line = np.tile(point, (_POINTS, 1))
        line[:, feature] = np.linspace(X[:, feature].min(), X[:, feature].max(), _POINTS)
        return int(feature), names[feature], line
