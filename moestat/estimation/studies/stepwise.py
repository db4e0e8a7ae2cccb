"""Which terms experts and gate need: formulas that differ by one term, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.types import Seed, TableLike
from moestat.base.validate import as_generator, positive_int
from moestat.estimation.data.random_terms import effects_of_formula
from moestat.estimation.fitting.fit_formula import shared_source
from moestat.estimation.reading.parse import Parsed, Term, parsed
from moestat.estimation.reading.table import column_names
from moestat.estimation.results.results import MoEResults
from moestat.estimation.studies.selection import Key, Selection, as_criterion, select

__all__ = ["stepwise"]

_ONE: Term = (("literal", "1"),)

Chosen = tuple[frozenset[Term], frozenset[Term]]
"""Terms of the experts, and of the gate."""


@door()
def stepwise(
    formula: str,
    data: TableLike,
    family: str | Mapping[str, object] | Sequence[object] = "gaussian",
    *,
    n_experts: int = 2,
    start: str | None = None,
    criterion: str = "bic",
    rng: Seed = None,
    **options: Any,
) -> Selection:
    """Search the terms of experts and gate, one at a time.

    Each step fits all formulas that have one term more or one term less than the current one, in
    the experts or in the gate, and moves to the best of them.  The search stops when none is
    better.

    Parameters
    ----------
    formula : str
        The largest model, such as ``"y ~ x1 + x2 + x3 | x1 + z"``; the search chooses among its
        terms.  It never changes the offset, the groups, or the intercept of the experts.
    data : table
        The data.
    family : str or mapping
        Name of the likelihood, or its table with options, as in `moestat.fit`.
    n_experts : int
        Number of experts; to compare several, see `moestat.select`.
    start : str, optional
        The formula of the first step, with some of these terms; by default it has none.
    criterion : {"bic", "aic", "hqic", "icl", "cv"}
        The criterion that each step improves.
    rng : numpy.random.Generator, int or None
        Source of starts and folds.
    **options
        Further arguments of `moestat.select` with formulas.

    Returns
    -------
    Selection
        All formulas that were tried; ``best`` is the last one.

    Raises
    ------
    ValueError
        If a formula cannot be read, or the one to start with has terms of its own.

    Notes
    -----
    An interaction enters after its own terms, and these leave after it.  The search is that of
    Murphy and Murphy (2020), Sec. 5, who also search the number of experts.  The criterion of the
    chosen model is too optimistic, because it does not take the search into account.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> rng = np.random.default_rng(0)
    >>> table = {name: rng.normal(size=200) for name in ("a", "b", "z")}
    >>> table["y"] = np.where(table["z"] > 0, 3 + table["a"], -3) + 0.5 * rng.normal(size=200)
    >>> found = moestat.stepwise("y ~ a + b | z + b", table, rng=0)
    >>> found.chosen()
    ('y ~ a | z', 2)
    """
    size = positive_int("n_experts", n_experts)
    as_criterion(criterion)
    columns = column_names(data)
    if effects_of_formula(formula, columns)[1] is not None:
        raise ValueError(
            "formula: stepwise searches for terms of experts and gate; give random effects by"
            f" random= and groups= in place of their term in {formula!r}"
        )
    largest = parsed(formula, columns)
    current = _start(largest, None if start is None else parsed(start, columns), start)
    # All steps leave out the same rows.
    smallest = _text(largest, (frozenset(), frozenset()))
    data = shared_source([formula, smallest], data, family, options)
    generator, everything = as_generator(rng), _terms_of(largest)
    results: dict[Key, MoEResults] = {}
    columns_of: dict[str, list[float]] = {}

    def best_of(choices: list[Chosen]) -> tuple[float, Chosen]:
        texts = {_text(largest, choice): choice for choice in choices}
        given = {"k": (size,), "criterion": criterion, "data": data, "rng": generator}
        selection = select(family, list(texts), **given, **options)
        results.update(
            zip([(text, size) for text in texts], selection.results.values(), strict=True)
        )
        for name, column in selection.table.items():
            columns_of.setdefault(name, []).extend(column)
        at = list(selection.results).index(selection.chosen())
        value = float(selection.table[criterion][at])
        return (-value if criterion == "cv" else value), list(texts.values())[at]

    height, current = best_of([current])
    while new := [
        c for c in _steps(current, everything) if (_text(largest, c), size) not in results
    ]:
        value, candidate = best_of(new)
        if not value < height:
            break
        height, current = value, candidate
    table = {name: np.array(column) for name, column in columns_of.items()}
    return Selection(results, table, criterion)


def _terms_of(formula: Parsed) -> Chosen:
    experts, gate = (frozenset(part) - {_ONE} for part in formula.parts[:2])
    return experts, gate


def _start(largest: Parsed, start: Parsed | None, text: str | None) -> Chosen:
    """Terms to start with, checked."""
    if start is None:
        return frozenset(), frozenset()
    terms, known = _terms_of(start), _terms_of(largest)
    extra = [_term(term) for part, all_ in zip(terms, known, strict=True) for term in part - all_]
    if extra or start.response != largest.response:
        what = f"the terms {', '.join(sorted(extra))}" if extra else "another response"
        raise ValueError(f"start: {text!r} has {what}, which the formula does not have")
    return terms


def _steps(current: Chosen, everything: Chosen) -> Iterator[Chosen]:
    """Choices with one term more or one less."""
    for which in (0, 1):
        for term in sorted(everything[which]):
            now = current[which]
            inside = {other for other in everything[which] if set(other) < set(term)}
            outside = {other for other in now if set(term) < set(other)}
            if (term in now and outside) or (term not in now and not inside <= now):
                continue
            changed = now ^ {term}
            yield (changed, current[1]) if which == 0 else (current[0], changed)


def _text(largest: Parsed, choice: Chosen) -> str:
    """The formula of a choice, terms in the order of the largest one."""
    sides = []
    for which, chosen in enumerate(choice):
        terms = [_term(term) for term in largest.parts[which] if term in chosen]
        bare = which == 0 and not largest.has_intercept
        sides.append(" + ".join(["0", *terms] if bare else terms or ["1"]))
    for part in largest.parts[2:]:
        sides[0] += "".join(f" + offset({text})" for term in part for _, text in term)
    groups = [] if largest.groups is None else [_term((("lookup", largest.groups),))]
    return f"{_term((largest.response,))} ~ {' | '.join([*sides, *groups])}"


def _term(term: Term) -> str:
    return ":".join(
        f"`{text}`" if how == "lookup" and not text.isidentifier() else text for how, text in term
    )
