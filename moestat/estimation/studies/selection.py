"""How many experts: information criteria, cross-validation, the dendrogram of one fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import cycle, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from moestat.base import warnings as kinds_of_warning
from moestat.base.door import door, doors
from moestat.base.figures import new_axes
from moestat.base.types import FloatArray, IntArray, Seed, TableLike
from moestat.base.validate import as_generator, is_sequence, positive_int, short
from moestat.base.warnings import (
    DataWarning,
    EdgeWarning,
    InterruptedWarning,
    warn_caller,
    warn_of_old_name,
)
from moestat.estimation.data.data import Data
from moestat.estimation.data.priors import has_prior
from moestat.estimation.data.read import check_options, read_data
from moestat.estimation.fit.batches import fit_data
from moestat.estimation.fitting.fit import closed, fit
from moestat.estimation.fitting.fit_formula import fit_formula, shared_source
from moestat.estimation.inference.dependence import dependence_in_selection
from moestat.estimation.inference.inner_fit import check_likelihood
from moestat.estimation.progress import reported
from moestat.estimation.results.results import MoEResults
from moestat.estimation.search.agreement import GrownStarts, search_of
from moestat.estimation.studies.cross_validation import held_out, held_out_on_source, labels_of
from moestat.model.family import Family

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "CRITERIA",
    "SOLVING",
    "Selection",
    "as_criterion",
    "best_place",
    "select",
]

CRITERIA = ("aic", "bic", "hqic", "icl", "cv")
"""Akaike, Schwarz, Hannan and Quinn, integrated completed likelihood, cross-validation."""

_GROWN, _SEARCHES = 6, 2
"""Number of starts that are grown from the fit with fewer experts for each pool, and largest number
of searches."""

_READING = ("groups", "classes", "missing", "resolution", "random")
"""Arguments of `moestat.fit` that say how data are read."""

_SEARCHING = ("starts", "n_starts", "time_limit", "risk", "maximum")
"""Arguments of `moestat.fit` that say how starts are searched."""

SOLVING = ("solver", *_SEARCHING, "threads", "target", "compress", "prior")
"""Arguments of `moestat.fit` that do not say what the model is."""


_COLUMNS = ("k", "llf", "df", *CRITERIA, "certified")

Key: TypeAlias = int | tuple[object, ...]
"""A number of experts; with several formulas or priors, these and the number."""


class _Columns(dict[str, FloatArray]):
    """Columns of the table by name; the old name of one of them is known for one release."""

    def __missing__(self, name: str) -> FloatArray:
        if name != "hq":
            raise KeyError(name)
        warn_of_old_name("hq", "hqic")
        return self["hqic"]


@doors
@dataclass(frozen=True, repr=False)
class Selection:
    """Fits with several numbers of experts, with the values of the selection criteria.

    Parameters
    ----------
    results : mapping to MoEResults
        A fit for each number of experts, or for each pair of a formula and a number of experts.
    table : mapping of str to ndarray
        Columns by name, one entry per fit: ``k``, ``llf``, ``df``, ``aic``, ``bic``,
        ``hqic``, ``icl``, ``cv`` (mean log-density of held-out samples, higher is better, NaN
        without folds), ``certified``.
    criterion : str
        The criterion that chooses a fit.
    left : tuple
        Keys of the fits that are missing because the selection was interrupted.
    """

    results: dict[Key, MoEResults] = field(repr=False)
    table: dict[str, FloatArray] = field(repr=False)
    criterion: str
    left: tuple[Key, ...] = ()

    def chosen(self, criterion: str | None = None) -> Any:
        """The number of experts that a criterion chooses; with formulas, also the formula.

        Fits that are not certified or have a collapsed expert are not chosen, unless all fits are
        like this: the log-likelihood is then not that of a maximum, or is large only because one
        expert describes a few rows almost exactly.
        """
        name = as_criterion(criterion or self.criterion)
        return list(self.results)[best_place(name, self.table[name], self._sound, "select")]

    @property
    def _sound(self) -> np.ndarray:
        """Which fits are maxima without a collapsed expert, shape (m,)."""
        ends = [result.certificate for result in self.results.values()]
        return np.array([end.certified and not end.collapsed for end in ends])

    @property
    def edge(self) -> str | None:
        """A message if the chosen number of experts is the smallest or largest tried; else None."""
        sizes = np.unique(self.table["k"])
        place = list(self.results).index(self.chosen())
        k = int(self.table["k"][place])
        if sizes.size == 1 or sizes[0] < k < sizes[-1] or k == sizes[0] == 1:
            return None
        end, more = ("largest", "more") if k == sizes[-1] else ("smallest", "fewer")
        return (
            f"{self.criterion} chooses {k} experts, the {end} number that was tried: {more} may be"
            " better"
        )

    @property
    def best(self) -> MoEResults:
        """The fit that the criterion chooses."""
        return self.results[self.chosen()]

    def __repr__(self) -> str:
        keys = ", ".join(map(str, self.results))
        cut = ", interrupted" * bool(self.left)
        return f"<Selection: {self.criterion} chooses {self.chosen()} of k = {keys} experts{cut}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p><pre>{escape(str(self))}</pre>"

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas frame, with one row for each fit.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> found = moestat.select("gaussian", x, x + np.sin(9 * x), k=(1,), rng=0)
        >>> list(found.to_frame().columns[:4])
        ['k', 'llf', 'df', 'aic']
        """
        import pandas as pd

        return pd.DataFrame({**self._compared, **self.table})

    @property
    def _compared(self) -> dict[str, list[str]]:
        """Formulas and priors of the fits, by what they are, where there are several."""
        keys = [key for key in self.results if isinstance(key, tuple)]
        heads = [
            "formula" if isinstance(part, str) and "~" in part else "prior"
            for part in (keys[0][:-1] if keys else ())
        ]
        return {head: [str(key[j]) for key in keys] for j, head in enumerate(heads)}

    def __str__(self) -> str:
        names = [name for name in self.table if np.any(np.isfinite(self.table[name]))]
        columns = [[name, *(_entry(name, v) for v in self.table[name])] for name in names]
        rows = [
            "  ".join(
                cell.rjust(max(map(len, column))) for cell, column in zip(row, columns, strict=True)
            )
            for row in zip(*columns, strict=True)
        ]
        for head, texts in self._compared.items():
            width = max(map(len, (head, *texts)))
            rows = [
                f"{text:<{width}}  {row}" for text, row in zip((head, *texts), rows, strict=True)
            ]
        lines = rows
        priors = dict.fromkeys(result.prior for result in self.results.values())
        # Criteria of the likelihood cannot compare modes with maxima.
        comparable = ("cv",) if len(priors) > 1 and None in priors else CRITERIA
        chosen = ", ".join(
            f"{name} {self.chosen(name)}"
            for name in comparable
            if np.any(np.isfinite(self.table[name]))
        )
        if any(prior is not None for prior in priors):
            each = "the prior of each row" if len(priors) > 1 else str(next(iter(priors)))
            lines.append(
                f"penalised: modes of the posterior density under {each}; llf and criteria are at"
                " the modes, with effective degrees of freedom"
            )
        open_ends = [key for key, fit_of in self.results.items() if fit_of._is_separated]
        if open_ends:
            keys = ", ".join(map(str, open_ends))
            lines.append(f"the likelihood has no finite maximum (prior='weak' gives one): {keys}")
        left_out = [key for key, sound in zip(self.results, self._sound, strict=True) if not sound]
        if left_out:
            keys = ", ".join(map(str, left_out))
            lines.append(f"not chosen from, no certified maximum or a collapsed expert: {keys}")
        if self.left:
            lines.append(f"interrupted before: {', '.join(map(str, self.left))}")
        lines.append(f"chosen: {chosen}")
        edge = self.edge
        return "\n".join(lines if edge is None else [*lines, edge])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot each information criterion minus its minimum against the number of experts.

        With several formulas, plot only the criterion that chooses, with a line for each formula.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, which are also returned; by default those of a new figure.
        """
        axes: Axes = new_axes() if ax is None else ax
        k = self.table["k"]
        formula_of = [key[0] for key in self.results if isinstance(key, tuple)]
        formulas = list(dict.fromkeys(formula_of))
        if formulas:
            formula_index = np.array([formulas.index(formula) for formula in formula_of])
            sign = -1.0 if self.criterion == "cv" else 1.0
            value = sign * self.table[self.criterion]
            lines = [(text, formula_index == j, value) for j, text in enumerate(formulas)]
            what = f"{self.criterion.upper()} less its minimum"
            if sign < 0.0:
                what = "mean log-density of held-out rows below the best"
        else:
            everywhere = np.ones(k.size, dtype=bool)
            lines = [
                (name.upper(), everywhere, self.table[name])
                for name in ("aic", "bic", "hqic", "icl")
            ]
            what = "criterion less its minimum"
        for marker, (label, at, column) in zip(cycle("os^Dv"), lines, strict=False):
            axes.plot(k[at], column[at] - np.nanmin(column), marker=marker, label=label)
        axes.set_xticks(np.unique(k))
        axes.set(xlabel="number of experts", ylabel=what)
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)} if formulas else {}
        axes.legend(frameon=False, **above)
        return axes


def as_criterion(name: str, known: Sequence[str] = CRITERIA) -> str:
    """The name of a criterion, checked."""
    if name == "hq" and "hqic" in known:
        warn_of_old_name("hq", "hqic")
        return "hqic"
    if name not in known:
        raise ValueError(f"criterion must be one of {', '.join(known)}, got {short(name)}")
    return name


def best_place(name: str, column: FloatArray, sound: np.ndarray, function: str) -> int:
    """Position of the best value of a criterion (m,).

    Fits that are not `sound` are left out, unless no fit is sound.
    """
    if not np.any(np.isfinite(column)):
        raise ValueError(f"criterion {name!r} was not computed; pass folds=5 to {function}")
    sound = sound & np.isfinite(column)
    column = np.where(sound, column, np.nan) if sound.any() else column
    return int(np.nanargmax(column) if name == "cv" else np.nanargmin(column))


def _entry(name: str, value: float) -> str:
    is_count = name in ("k", "certified") or (name == "df" and value == round(value))
    if name == "certified":
        return "yes" if value else "no"
    return f"{value:.0f}" if is_count else f"{value:.3f}"


@door()
def select(
    family: Family | str | Mapping[str, object] | Sequence[object],
    X: str | Sequence[str] | ArrayLike | TableLike,
    y: ArrayLike | TableLike | None = None,
    k: Iterable[int] = range(1, 6),
    *,
    criterion: str = "bic",
    folds: int | None = None,
    sample_weight: str | ArrayLike | TableLike | None = None,
    data: object = None,
    rng: Seed = None,
    verbose: bool = False,
    **options: Any,
) -> Selection:
    """Fit models with several numbers of experts and compare them.

    Parameters
    ----------
    family : Family, str or mapping
        The model, or the name of a likelihood as in `moestat.fit`; a model's own number of experts
        does not matter.
    X : array_like or table of shape (n, d), str, or list of str
        Inputs; or a formula with the names of columns of `data`, or a list of such formulas.
    y : array_like or series of shape (n,), optional
        Responses, as in `moestat.fit`; leave them out if X is a formula.
    k : iterable of int
        Numbers of experts.
    criterion : {"bic", "aic", "hqic", "icl", "cv"}
        The criterion that chooses `Selection.best`.
    folds : int, optional
        Number of folds of a cross-validation of the log-density; by default none, or 5 for "cv".
    sample_weight : array_like of shape (n,), or str, optional
        Counts of equal rows.  With a formula, the name of a column; ``weights=`` is an alias.
    data : table or source of rows, optional
        The data of formulas, as in `moestat.fit_formula`.  Fits to a source share the passes that
        do not depend on the model; fits to their folds begin at the estimate of all rows, while
        those in memory search for starts again.
    rng : numpy.random.Generator, int or None
        Source of starts and folds.
    verbose : bool
        Whether to show the progress on standard error.
    **options
        Further arguments of `moestat.fit`, or of `moestat.fit_formula`.  `prior` may be a list,
        such as ``[Prior(experts=s) for s in (0.1, 1.0, 10.0)]``, which is a path of ridge
        penalties; `select` then fits each prior with each number of experts.

    Returns
    -------
    Selection
        A table, a plot, and the chosen fit.

    Raises
    ------
    ValueError
        If an argument is not valid, or the family has no density.

    Notes
    -----
    Each fit is that of `moestat.fit`.  For sums of squares and likelihoods with jumps, which have
    no weak prior, the search for starts also uses the fit with fewer experts: it splits one of its
    experts, or adds a new one, in at most two searches.

    ``AIC = 2 p - 2 l`` (Akaike 1974), ``BIC = p log n - 2 l`` (Schwarz 1978), ``HQ = 2 p log log n
    - 2 l`` (Hannan and Quinn 1979), ``ICL = BIC + 2 H`` with the entropy H of the assignments
    (Biernacki, Celeux and Govaert 2000).  With too many experts a maximum has flat directions,
    and the theory behind AIC does not hold; that of BIC does (Keribin 2000).

    If the chosen number of experts is the largest that was tried, or the smallest and not 1, the
    function issues an `EdgeWarning`.  Warnings that the data do not suit the model are notes of
    each fit, and are issued for the chosen one.  With groups, the function tests whether rows of a
    group are more similar than the chosen fit explains, and compares the fit with normal experts
    that have random intercepts; the warning is a `DependentRowsWarning`.

    With ``missing="drop"`` all formulas are fitted to the rows that are complete for all of them;
    if one alone could use more, a `DroppedRowsWarning` has the number of rows left out.

    After an interrupt (Ctrl-C), the function issues an `InterruptedWarning` and returns the fits so
    far.

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

    Gates by formula:

    >>> table = {"x": X[:, 0], "y": y}
    >>> select("gaussian", ["y ~ x | 1", "y ~ x | x"], data=table, k=(2,), rng=0).chosen()
    ('y ~ x | x', 2)
    """
    check_options(options, select, fit, fit_formula)
    if "n_experts" in options:
        raise ValueError("n_experts: select has k, the numbers of experts to compare")
    if {"cov_type", "cov_kwds"} & {*options}:
        raise ValueError(
            "cov_type: criteria do not depend on it; ask the chosen fit for standard errors,"
            " select(...).best.get_robustcov_results(...)"
        )
    sizes = sorted({positive_int("k", size) for size in k})
    if not sizes:
        raise ValueError("k must hold at least one number of experts")
    as_criterion(criterion)
    parts = 5 if folds is None and criterion == "cv" else folds
    generator = as_generator(rng)
    solving = {name: options.pop(name) for name in list(options) if name in SOLVING}
    formulas = _formulas_of(X)
    prior = solving.get("prior")
    priors = list(prior) if isinstance(prior, list | tuple) else [prior]
    priors = [one for place, one in enumerate(priors) if one not in priors[:place]]
    if not priors:
        raise ValueError("prior: the list must hold at least one prior, got []")
    if len(priors) > 1 and None in priors and criterion != "cv":
        raise ValueError(
            f"prior: {criterion} cannot compare fits with a prior and without one; leave None out"
            " of the list, or give criterion='cv'"
        )
    settings = [{**solving, "prior": one} for one in priors] if "prior" in solving else [solving]
    if formulas is not None:
        given = {**options, "weights": _weights_of(options, sample_weight)}
        data = shared_source(formulas, data, family, given)
        fits = [partial(_fit_formula, formula, data, family, given) for formula in formulas]
    elif data is not None:
        raise ValueError(
            "data: allowed only with a formula, such as select('gaussian', 'y ~ x', data=data)"
        )
    else:
        refuse_names_of_columns(options)
        reading = {name: options.pop(name) for name in list(options) if name in _READING}
        given = options if isinstance(family, Family) else {**options, "n_experts": 1}
        model, fitted_data = read_data(family, X, y, sample_weight, given, **reading)
        check_likelihood("select", model)
        if sizes[-1] > len(fitted_data.weight):
            raise ValueError(
                f"k must be at most the number of rows {len(fitted_data.weight)}, got {sizes[-1]}"
            )
        by_name = not isinstance(family, Family) and "starts" not in solving
        fits = [partial(_fit_data, model, fitted_data, by_name)]
    steps = list(product(fits, settings, sizes))
    compared = [list(formulas)] if formulas is not None and len(fits) > 1 else []
    compared += [priors] if len(settings) > 1 else []
    heads = list(product(*compared))
    keys: list[Key] = [(*head, size) if head else size for head, size in product(heads, sizes)]
    results: dict[Key, MoEResults] = {}
    entries: list[dict[str, float]] = []
    labels: IntArray | int | None = None
    with reported("select", verbose, len(keys), "fits") as report:
        try:
            for key, (fit_one, setting, size) in zip(keys, steps, strict=True):
                child_rng = generator.spawn(1)[0]
                # Fits of one model also start from the fit with fewer experts.
                before = None if size == sizes[0] else list(results.values())[-1]
                result = fit_one(setting, before, size, child_rng)
                check_likelihood("select", result.family)
                if parts is not None and labels is None:
                    labels = labels_of(result, parts, generator)
                cv = np.nan
                if isinstance(labels, int):
                    cv = held_out_on_source(result, int(parts or 0), labels)
                elif labels is not None:
                    what = f"k = {key}" if isinstance(key, int) else str(key)
                    cv = held_out(result, labels, child_rng, setting, what)
                entries.append(_entries(result, size, cv))
                results[key] = result
                report.count(len(results))
        except KeyboardInterrupt:
            if not results:
                raise
            warn_caller(f"interrupted: {len(results)} of {len(keys)} fits", InterruptedWarning)
    table = _Columns({name: np.array([row[name] for row in entries]) for name in _COLUMNS})
    selection = Selection(results, table, criterion, tuple(keys[len(results) :]))
    _warn_of_choice(selection)
    return selection


def _warn_of_choice(selection: Selection) -> None:
    """Warn if the choice is at the end of the range, or if its data do not suit the model."""
    edge, best = selection.edge, selection.best
    if edge is not None:
        warn_caller(f"{edge}; give a wider range k=", EdgeWarning)
    for name, message in zip(best.kinds, best.notes, strict=True):
        kind = getattr(kinds_of_warning, name)
        if issubclass(kind, DataWarning):
            warn_caller(message, kind)
    if best.data is None or best.data.groups is None or not best.has_rows:
        return
    results, key = selection.results, selection.chosen()
    same = [
        result
        for other, result in results.items()
        if not (isinstance(key, tuple) and isinstance(other, tuple)) or other[:-1] == key[:-1]
    ]
    for kind, message in dependence_in_selection(same, best):
        if message not in best.notes:
            warn_caller(message, kind)


def _weights_of(options: Mapping[str, object], sample_weight: object) -> object:
    """The column of weights of a formula, which may be given by either of two names."""
    if sample_weight is not None and options.get("weights") is not None:
        raise ValueError("weights and sample_weight both name a column of weights; give one")
    return options.get("weights") if sample_weight is None else sample_weight


def refuse_names_of_columns(options: Mapping[str, object]) -> None:
    """Raise for arguments that are for formulas alone, where the data are arrays."""
    others = {"weights": "sample_weight=", "scope": "a formula"}
    for name, other in others.items():
        if name in options:
            raise ValueError(
                f"{name}: allowed only with a formula and data=; for arrays use {other}"
            )


def _entries(result: MoEResults, size: int, cv: float) -> dict[str, float]:
    """A row of the table."""
    return {
        "k": float(size),
        "llf": result.llf,
        "df": float(result.edf),
        "aic": result.aic,
        "bic": result.bic,
        "hqic": result.hqic,
        "icl": result.icl,
        "cv": cv,
        "certified": float(result.certificate.certified),
    }


def _formulas_of(X: object) -> list[str] | None:
    """The formulas that are given in place of inputs; None for inputs."""
    if isinstance(X, str):
        return [X]
    if isinstance(X, Mapping) and any(isinstance(text, str) for text in X.values()):
        raise ValueError(
            "X: a formula for each expert determines the number of experts, which select compares;"
            " give one formula, or a list of formulas, and compare fits of fit_formula by their bic"
        )
    if not (is_sequence(X) and len(X) > 0 and all(isinstance(x, str) for x in X)):
        return None
    responses = list(dict.fromkeys("".join(text.partition("~")[0].split()) for text in X))
    if len(responses) > 1:
        raise ValueError(
            f"formulas: {short(responses[0])} and {short(responses[1])} are different responses, so"
            " their log-likelihoods and criteria cannot be compared"
        )
    return list(dict.fromkeys(X))


def _fit_formula(
    formula: str,
    data: object,
    family: Any,
    given: Mapping[str, Any],
    solving: Mapping[str, Any],
    before: MoEResults | None,
    size: int,
    rng: Seed,
) -> MoEResults:
    """A fit by formula with so many experts."""
    if data is None:
        raise ValueError(f"data: {formula!r} needs a table, data=")
    with warnings.catch_warnings():
        # Warnings about the data are issued for the chosen fit, not for each.
        warnings.simplefilter("ignore", DataWarning)
        return fit_formula(formula, data, family, n_experts=size, rng=rng, **given, **solving)


def _fit_data(
    model: Family,
    data: Data,
    by_name: bool,
    solving: Mapping[str, Any],
    before: MoEResults | None,
    size: int,
    rng: Seed,
) -> MoEResults:
    """A fit to data that have been read."""
    searched = set(_SEARCHING) & set(solving)
    if before is not None and not searched and not has_prior(model):
        assert before.standard is not None
        grown = GrownStarts(before.standard.family, before.standard.solution.theta, _GROWN)
        solving = {**solving, "starts": [search_of(searches=_SEARCHES, more=(grown,))]}
    with warnings.catch_warnings():
        # As for formulas.
        warnings.simplefilter("ignore", DataWarning)
        fitted = fit_data(model.with_experts(size), data, rng=rng, by_weight=by_name, **solving)
        return closed(fitted)
