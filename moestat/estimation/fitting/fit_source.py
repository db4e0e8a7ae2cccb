"""Fits by formula to sources: a first pass over the columns, then fits to blocks of the designs.

Every pass after the first computes the designs of a block from the columns that the formula names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.threads import ONE_THREAD, available_cpus
from moestat.base.validate import (
    as_generator,
    draw_seed,
    is_mapping,
    is_sequence,
    listed,
    positive_int,
)
from moestat.base.warnings import DroppedRowsWarning, warn_caller
from moestat.estimation.data.formula_terms import (
    FormulaRequest,
    arguments_of,
    read_terms,
)
from moestat.estimation.data.random_terms import random_likelihood
from moestat.estimation.data.read import of_two_columns
from moestat.estimation.fitting.fit_blocks import SEARCHED, deadline_after, fit_rows
from moestat.estimation.progress import reported
from moestat.estimation.reading.formula import (
    FormulaInputs,
    beside,
    response_column,
    used_names,
)
from moestat.estimation.reading.table import Column, Table
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rows.source_groups import (
    gathered,
)
from moestat.estimation.rows.sources import Source
from moestat.estimation.rules import SAMPLED
from moestat.estimation.search.options import SearchOptions
from moestat.model.joint import as_likelihood, likelihood_table
from moestat.solvers.rules import HALF_OF_DIGITS

if TYPE_CHECKING:
    import pandas as pd

from moestat.estimation.rows.designs import Designs, Plan
from moestat.estimation.rows.first_pass import FirstPass, coded_columns, first_pass, without_gaps

__all__ = ["SharedSource", "fit_source"]


_OPTIONS = (
    "starts",
    "n_starts",
    "time_limit",
    "risk",
    "maximum",
    "rng",
    "threads",
    "verbose",
    "classes",
    "prior",
    "resolution",
    "random",
)
"""Arguments of `moestat.fit` that a fit to a source takes; others need all rows in memory."""


def fit_source(
    formula: str | Mapping[Any, str],
    source: Source | SharedSource,
    family: object,
    n_experts: int | None,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, object] | None,
    options: Mapping[str, object],
    arguments: Sequence[str],
    resume: str | Path | None = None,
) -> MoEResults:
    """The fit by formula to a source; arguments are those of `fit_formula`.

    `arguments` are the names of those of `moestat.fit`, of which few are for sources.
    """
    if source.weights is not None and weights is not None:
        raise ValueError(
            f"weights: the blocks already contain weights; leave out weights={weights!r}"
        )
    weights = source.weights if weights is None else weights
    names = columns_of_source(source)
    how = weights, offset, groups, missing, scope
    request = read_terms(formula, names, family, *how, options)
    _check(request, arguments)
    if request.random is not None and request.random.within is not None:
        raise ValueError(
            "formula: nested groups are available only for data in memory; pass a table, such as"
            " pandas.read_parquet(path)"
        )
    # The random effects are still to be read, with the designs.
    options_of_fit = {
        name: request.options.pop(name)
        for name in _OPTIONS
        if name in request.options and name != "random"
    }
    threads = options_of_fit.get("threads")
    count = available_cpus() if threads is None else positive_int("threads", threads)
    with reported("fit_formula", options_of_fit.get("verbose", False), answers=True):
        deadline = deadline_after(options_of_fit.get("time_limit"))
        generator = as_generator(options_of_fit.get("rng"))
        looks, fits = generator.spawn(2)
        seed = draw_seed(looks)
        shared = source if isinstance(source, SharedSource) else SharedSource(source)
        chosen, survey = shared.first_pass(request, seed, missing, count)
        inputs = FormulaInputs.of(request.formula, request.terms, survey.sample, request.scope)
        designs = inputs.designs(survey.sample)
        several = is_sequence(family) or bool(as_likelihood(family).parts)
        design_inputs, given = arguments_of(request, inputs, survey.sample, designs, family)
        _check_by_row(inputs, request, survey.sample, designs, several)
        moves = None
        if request.groups is not None:
            how_complete = without_gaps, survey.counts, count
            moves = gathered(chosen, request.groups, survey.ends, *how_complete)
        plan = Plan(inputs, weights, survey.counts, survey.digests, several, moves)
        blocks = Designs.of(chosen, plan, design_inputs.features, shared.source)
        columns = beside(request.terms.response) if several else [request.terms.response]
        own_family = _family_of(family, inputs, survey.sample, several, len(columns))
        if (random := given.pop("random", None)) is not None:
            own_family = random_likelihood(
                own_family, random, design_inputs.features, len(design_inputs.design)
            )
        extra = {
            "formula": inputs,
            "responses": tuple(used_names([request.terms.response], names, request.scope)[0]),
            "weights_column": None if source.weights else weights,
            "groups_column": request.groups,
            "dropped": survey.n_given - survey.n_rows,
        }
        result = fit_rows(
            own_family,
            blocks,
            options_of_fit.get("starts"),
            fits,
            count,
            {"n_experts": n_experts, **given},
            search_options={name: options_of_fit.get(name) for name in SEARCHED},
            deadline=deadline,
            order=options_of_fit.get("classes"),
            declared=[survey.column_of(each) for each in columns],
            names=[text for _, text in columns] if several else (),
            prior=options_of_fit.get("prior"),
            resolution=options_of_fit.get("resolution"),
            extra=extra,
            memory=shared.memory_of(request),
            resume=resume,
        )
    return _noted(result, inputs, survey)


@dataclass(frozen=True)
class SharedSource:
    """A source of several fits, which share passes that do not depend on the model.

    Formulas share the first pass over the columns of all of them, and leave out the rows with a gap
    in any of these.  Fits of one formula also share the pass that finds means, covariances and the
    sample of the design.
    """

    source: Source
    also: tuple[FormulaRequest, ...] = ()  # requests of further formulas
    # results of passes by what they depend on
    cache: dict[tuple[object, ...], Any] = field(
        default_factory=dict[tuple[object, ...], Any], repr=False
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.source.names

    @property
    def weights(self) -> str | None:
        """The column of weights that the source itself has."""
        return self.source.weights

    def first_pass(
        self, request: FormulaRequest, seed: int, missing: str, threads: int
    ) -> tuple[Source, FirstPass]:
        """The source with the columns of the formulas, and what the first pass over them finds."""
        together = [request, *(each for each in self.also if each.groups == request.groups)]
        names = sorted({name for each in (*together, *self.also) for name in each.names})
        coded = sorted({name for each in together for name in coded_columns(each)})
        key = (*names, "|", *coded, request.groups)
        if key not in self.cache:
            chosen = self.source.chosen(names)
            with ONE_THREAD:
                how = coded, request.groups, names
                survey = first_pass(chosen, *how, seed, missing, threads)
                self.cache[key] = chosen, survey
            if ("dropped",) not in self.cache:  # said once
                self.cache["dropped",] = None
                by_fit = [each.names for each in (request, *self.also)]
                warn_of_dropped_rows(
                    by_fit, survey.gaps, survey.n_given - survey.n_rows, survey.n_given
                )
        return self.cache[key]

    def memory_of(self, request: FormulaRequest) -> dict[str, object]:
        """The results of passes over the design of a formula."""
        return self.cache.setdefault(("design", request.formula, request.groups), {})


def warn_of_dropped_rows(
    names_by_fit: Sequence[Sequence[str]], gaps: Sequence[str], lost: int, given: int
) -> None:
    """Say that rows with gaps in columns of some fits are left out of all that are compared."""
    some = [name for name in gaps if not all(name in names for names in names_by_fit)]
    if some:
        warn_caller(
            f"missing: {lost} of {given} rows are left out of all fits, so that these can be"
            f" compared, because of missing values in {listed(some)}, which not every formula"
            f" reads; all fits are to the other {given - lost} rows",
            DroppedRowsWarning,
        )


def _family_of(
    family: Any, inputs: FormulaInputs, sample: Table, several: bool, n_responses: int
) -> Any:
    """The likelihood of responses of as many columns as the formula has."""
    if not several:
        response = inputs.response_of(sample)
        assert isinstance(response, Column)
        return of_two_columns(family, response)
    if is_sequence(family) or (is_mapping(family) and "responses" in family):
        return family
    return {**likelihood_table(as_likelihood(family)), "responses": n_responses}


def columns_of_source(source: Source | SharedSource) -> list[str]:
    """Names of the columns of a source, with that of its own weights."""
    return [*source.names, *([source.weights] if source.weights else [])]


def _check(request: FormulaRequest, arguments: Sequence[str]) -> None:
    """Refuse by name what a fit to a source cannot have."""
    refused = [name for name in request.options if name in arguments and name not in _OPTIONS]
    if refused:
        raise ValueError(
            f"{refused[0]}: is for data in memory; a fit to a source that is read in parts has only"
            f" {', '.join(_OPTIONS)} of these arguments; read the table into memory for others"
        )
    options = request.options
    searched: dict[str, Any] = {name: options[name] for name in SEARCHED if name in options}
    SearchOptions(**searched).check_beside(options.get("starts"))


def _check_by_row(
    inputs: FormulaInputs,
    request: FormulaRequest,
    table: Table,
    designs: Sequence[pd.DataFrame],
    several: bool,
) -> None:
    """Refuse terms of which one row depends on other rows, as ``x - x.mean()`` does."""
    if table.n_rows < 3:
        return
    rows = np.arange(0, table.n_rows, 2)[::-1]
    some = table.at(rows)
    pairs: list[tuple[str, np.ndarray, np.ndarray]] = []
    for response in beside(request.terms.response) if several else [request.terms.response]:
        values = [response_column(response, each, request.scope).values for each in (table, some)]
        pairs.append((response[1], values[0][rows], values[1]))
    for design, design_of_some in zip(designs, inputs.designs(some), strict=True):
        pairs += [
            (str(name), np.asarray(design[name])[rows], np.asarray(design_of_some[name]))
            for name in design.columns
        ]
    for name, among_all, alone in pairs:
        if among_all.dtype.kind in "biuf" and not np.allclose(
            among_all.astype(float),
            alone.astype(float),
            rtol=HALF_OF_DIGITS,
            atol=0.0,
            equal_nan=True,
        ):
            raise ValueError(
                f"formula: {name!r} in one row depends on other rows, which are not in memory"
                " together if a source is read in parts; compute the value that it needs first,"
                " and write it as a number or a column"
            )


def _noted(result: MoEResults, inputs: FormulaInputs, survey: FirstPass) -> MoEResults:
    """The result with a note where transforms have learnt from a sample."""
    learnt = sorted(set(_states(inputs)))
    if survey.whole or not learnt:
        return result
    message = (
        f"{', '.join(learnt)}: centres, scales and knots are those of a random sample of"
        f" {SAMPLED:,} of {survey.n_rows:,} rows, together with the rows at the ends of each"
        " column; they are part of the model, and another seed may give slightly different ones"
    )
    kinds = (*(result.kinds or ("",) * len(result.notes)), "")
    return replace(result, notes=(*result.notes, message), kinds=kinds)


def _states(inputs: FormulaInputs) -> Iterator[str]:
    """Transforms that have learnt something."""
    for part in json.loads(inputs.states):
        for name, value in part.get("dict", ()):
            if value not in ({"dict": []}, None):
                yield str(name)
