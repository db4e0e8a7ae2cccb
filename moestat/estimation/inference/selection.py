"""How many experts: information criteria, cross-validation, the dendrogram of one fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from moestat.base.figures import new_axes
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_generator, positive_int
from moestat.estimation.data import Data, check_options, read_data
from moestat.estimation.fitting import fit
from moestat.estimation.groups import Grouping, arranged
from moestat.estimation.inference.found import check_likelihood
from moestat.estimation.results import MoEResults
from moestat.model.family import Family
from moestat.solvers.problem import Problem

__all__ = ["CRITERIA", "Selection", "classification_entropy", "select"]

CRITERIA = ("aic", "bic", "hq", "icl", "cv")
"""Akaike, Schwarz, Hannan and Quinn, integrated completed likelihood, cross-validation."""

_SOLVING = (
    "solver",
    "starts",
    "n_starts",
    "time_limit",
    "threads",
    "target",
    "compress",
    "prior",
    "groups",
)
"""Arguments of `moestat.fit` that do not say what the model is."""


@dataclass(frozen=True, repr=False)
class Selection:
    """Fits with several numbers of experts, and what each criterion says of them.

    Parameters
    ----------
    results : mapping of int to MoEResults
        A fit for each number of experts.
    table : mapping of str to ndarray
        Columns by name, one entry per number of experts: ``k``, ``llf``, ``df``, ``aic``, ``bic``,
        ``hq``, ``icl``, ``cv`` (mean log-density of held-out samples, higher is better, NaN
        without folds), ``certified``.
    criterion : str
        The one that chooses.
    """

    results: dict[int, MoEResults] = field(repr=False)
    table: dict[str, FloatArray] = field(repr=False)
    criterion: str

    def chosen(self, criterion: str | None = None) -> int:
        """The number of experts that a criterion chooses."""
        name = criterion or self.criterion
        if name not in CRITERIA:
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {name!r}")
        column = self.table[name]
        if not np.any(np.isfinite(column)):
            raise ValueError(f"criterion {name!r} was not computed; pass folds=5 to select")
        at = np.nanargmax(column) if name == "cv" else np.nanargmin(column)
        return int(self.table["k"][at])

    @property
    def best(self) -> MoEResults:
        """The fit that the criterion chooses."""
        return self.results[self.chosen()]

    def __repr__(self) -> str:
        tried = ", ".join(str(int(k)) for k in self.table["k"])
        return f"<Selection: {self.criterion} chooses {self.chosen()} of k = {tried} experts>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p><pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        names = [name for name in self.table if np.any(np.isfinite(self.table[name]))]
        lines = ["  ".join(f"{name:>12s}" for name in names)]
        for i in range(len(self.table["k"])):
            lines.append("  ".join(_entry(name, self.table[name][i]) for name in names))
        chosen = ", ".join(
            f"{name} {self.chosen(name)}"
            for name in CRITERIA
            if np.any(np.isfinite(self.table[name]))
        )
        return "\n".join([*lines, f"chosen: {chosen}"])

    def plot(self, ax: Any = None) -> Any:
        """Each information criterion less its minimum against the number of experts.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        if ax is None:
            ax = new_axes()
        for marker, name in zip("os^D", ("aic", "bic", "hq", "icl"), strict=True):
            column = self.table[name]
            ax.plot(self.table["k"], column - np.nanmin(column), marker=marker, label=name.upper())
        ax.set_xticks(self.table["k"])
        ax.set_xlabel("number of experts")
        ax.set_ylabel("criterion less its minimum")
        ax.legend(frameon=False)
        return ax


def _entry(name: str, value: float) -> str:
    whole = name in ("k", "df", "certified")
    return f"{value:12.0f}" if whole else f"{value:12.3f}"


def classification_entropy(responsibilities: FloatArray, weight: FloatArray) -> float:
    """Entropy of the assignments to experts, ``-sum_t w_t sum_i tau_ti log tau_ti``, in nats.

    Examples
    --------
    >>> round(classification_entropy(np.array([[0.5], [0.5]]), np.ones(1)), 4)
    0.6931
    """
    tau = np.maximum(responsibilities, np.finfo(float).tiny)
    return float(-np.sum(responsibilities * np.log(tau) @ weight))


def select(
    family: Family | str,
    X: Any,
    y: Any,
    k: Iterable[int] = range(1, 6),
    *,
    criterion: str = "bic",
    folds: int | None = None,
    sample_weight: Any = None,
    rng: Any = None,
    **options: Any,
) -> Selection:
    """Fit several numbers of experts and compare them.

    Parameters
    ----------
    family : Family or str
        The model, or the name of a likelihood as in `moestat.fit`; a model's own number of experts
        does not matter.
    X : array_like or data frame of shape (n, d)
        Inputs.
    y : array_like or series of shape (n,)
        Responses, as in `moestat.fit`.
    k : iterable of int
        Numbers of experts.
    criterion : {"bic", "aic", "hq", "icl", "cv"}
        Which one chooses `Selection.best`.
    folds : int, optional
        Folds of a cross-validation of the log-density; none by default, and 5 for "cv".
    sample_weight : array_like of shape (n,), optional
        Counts of equal rows.
    rng : numpy.random.Generator, int or None
        Source of starts and folds.
    **options
        Further arguments of `moestat.fit`.

    Returns
    -------
    Selection
        A table, a plot, and the chosen fit.

    Raises
    ------
    ValueError
        If an argument is not what it should be, or the family has no density.

    Notes
    -----
    ``AIC = 2 p - 2 l`` (Akaike 1974), ``BIC = p log n - 2 l`` (Schwarz 1978), ``HQ = 2 p log log n
    - 2 l`` (Hannan and Quinn 1979), ``ICL = BIC + 2 H`` with the entropy H of the assignments
    (Biernacki, Celeux and Govaert 2000).  With too many experts a maximum has flat directions,
    and the theory behind AIC does not hold; that of BIC does (Keribin 2000).

    Examples
    --------
    >>> from moestat import Uniform, family, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> truth = F.pack(
    ...     {"beta0": [0, 0], "beta1": [4, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.1]}
    ... )
    >>> X, y = sample(F, truth, n=500, rng=0, design=Uniform(-1, 1))
    >>> select(F, X, y, k=(1, 2, 3), rng=0).chosen("bic")
    2

    By name, with further arguments of `moestat.family`:

    >>> select("gaussian", X, y, k=(1, 2), equal=("nu",), rng=0).chosen("bic")
    2
    """
    check_options(options, select, fit)
    solving = {name: options.pop(name) for name in list(options) if name in _SOLVING}
    if "n_experts" in options:
        raise ValueError("n_experts: select has k, the numbers of experts to compare")
    given = options if isinstance(family, Family) else {**options, "n_experts": 1}
    model, data = read_data(family, X, y, sample_weight, given)
    check_likelihood("select", model)
    sizes = sorted({positive_int("k", size) for size in k})
    if not sizes:
        raise ValueError("k must hold at least one number of experts")
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}")
    parts = 5 if folds is None and criterion == "cv" else folds
    generator = as_generator(rng)
    results: dict[int, MoEResults] = {}
    columns: dict[str, list[float]] = {
        name: [] for name in ("k", "llf", "df", "aic", "bic", "hq", "icl", "cv", "certified")
    }
    groups = solving.get("groups")
    owner = np.arange(data.y.size) if groups is None else Grouping(groups).index
    labels = None if parts is None else _folds(int(owner.max()) + 1, parts, generator)[owner]
    for size in sizes:
        model = model.with_experts(size)
        own = generator.spawn(1)[0]
        result = fit(model, X, y, sample_weight=sample_weight, rng=own, **solving)
        results[size] = result
        n, p, top = result.n_independent, result.identified.rank, result.log_likelihood
        entropy = classification_entropy(*result.assignments)
        entries = {
            "k": size,
            "llf": top,
            "df": p,
            "aic": 2 * p - 2 * top,
            "bic": np.log(n) * p - 2 * top,
            "hq": 2 * np.log(np.log(n)) * p - 2 * top,
            "icl": np.log(n) * p - 2 * top + 2 * entropy,
            "cv": np.nan if labels is None else _held_out(model, data, labels, own, solving),
            "certified": result.certificate.certified,
        }
        for name, value in entries.items():
            columns[name].append(float(value))
    table = {name: np.array(values) for name, values in columns.items()}
    return Selection(results, table, criterion)


def _folds(n: int, count: int, rng: np.random.Generator) -> IntArray:
    positive_int("folds", count, 2)
    if count > n:
        raise ValueError(f"folds must be at most the number of rows {n}, got {count}")
    return rng.permutation(np.arange(n) % count)


def _held_out(
    model: Family,
    data: Data,
    labels: IntArray,
    rng: np.random.Generator,
    solving: dict[str, Any],
) -> float:
    """Mean log-density of samples that the fit has not seen."""
    total = count = 0.0
    groups = None if solving.get("groups") is None else np.asarray(solving["groups"])
    for fold in np.unique(labels):
        held = labels == fold
        if groups is not None:
            solving = {**solving, "groups": groups[~held]}
        fitted = fit(
            model,
            data.X[~held],
            data.y[~held],
            sample_weight=data.weight[~held],
            rng=rng,
            **solving,
        )
        X, own = np.ascontiguousarray(data.X[held].T), None if groups is None else groups[held]
        response = model.likelihood.encode(data.y[held], model.n_classes)
        rows = arranged(X, response, data.weight[held], own)
        total += float(Problem(model, rows).rowwise(fitted.theta)[2] @ rows.weight)
        count += float(data.weight[held].sum())
    return total / count
