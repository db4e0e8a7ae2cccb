"""Fits to blocks of rows: a first pass, a search on a sample, and Newton's method on all rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.threads import ONE_THREAD, available_cpus
from moestat.base.types import FloatArray, Seed
from moestat.base.validate import as_generator, check_kind, draw_seed, positive_int, real_in, short
from moestat.base.warnings import InterruptedWarning
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import check_gate_in_groups
from moestat.estimation.data.priors import Prior, as_prior
from moestat.estimation.data.read import (
    check_options,
    holding_constants,
    in_units_of_inputs,
    with_places,
)
from moestat.estimation.data.rounding import checked_resolution
from moestat.estimation.fit.batches import finish
from moestat.estimation.fit.fitted import Fitted, warn_and_note
from moestat.estimation.fit.job import FitJob, check_rows, checked_starts
from moestat.estimation.fit.relabel import by_weight
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.fit.standardise import Standardised
from moestat.estimation.inference.misfit import misfits
from moestat.estimation.progress import LOG, reported
from moestat.estimation.reading.responses import (
    classes_of,
    find_classes,
    law_of,
    names_of_responses,
)
from moestat.estimation.reading.table import Column
from moestat.estimation.results.results import MoEResults
from moestat.estimation.results.source_rows import sample_data
from moestat.estimation.rows.block_rows import (
    BlockRows,
    Totals,
    find_labels,
    rows_of_blocks,
    survey,
)
from moestat.estimation.rows.blocks import Blocks
from moestat.estimation.rows.interrupted import SavedEstimates, digest_of_fit
from moestat.estimation.rows.passes import Passes
from moestat.estimation.search.options import SearchOptions, SearchRule
from moestat.estimation.search.runs import searching_on
from moestat.estimation.starts import GivenStarts, StartRule
from moestat.model.axes import family
from moestat.model.by_expert import is_by_expert, with_range
from moestat.model.family import Family
from moestat.solvers import Newton
from moestat.solvers.driver import succeeded, until
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.trust_region.kinks import has_kinks

__all__ = ["fit_blocks", "fit_rows"]


@door()
def fit_blocks(
    model: Family | str | Mapping[str, Any],
    blocks: Blocks,
    *,
    starts: Sequence[StartRule] | None = None,
    rng: Seed = None,
    threads: int | None = None,
    resume: str | Path | None = None,
    verbose: bool = False,
    **options: Any,
) -> MoEResults:
    """Maximum-likelihood fit to data that are read in blocks, with a certificate.

    One pass over the blocks computes means, covariances, labels and a random sample of 100,000
    rows.  The search for starts uses the sample, as in `moestat.fit`.  From the three best starts,
    Newton's method converges first on the sample and then on all rows; each iteration needs one
    pass for all starts together.  The certificate is that of all rows.  Sums of blocks are added in
    an order that depends on their number alone, so results depend neither on the number of threads
    or workers nor on where blocks are stored.

    Parameters
    ----------
    model : Family, str or mapping
        The model, as in `moestat.fit`: a density without jumps or kinks.
    blocks : Blocks
        The data, such as `moestat.Blocks.from_arrays` of memory-mapped arrays.
    starts : sequence of StartRule, optional
        The same as in `moestat.fit`; rules that use the data use the sample.
    rng : numpy.random.Generator, int or None
        Source of the sample and of the random starts.
    threads : int, optional
        Threads, each with one block in memory; all cores by default.
    resume : str or Path, optional
        File in which the fit saves its best parameters after each pass.  If the fit is interrupted
        or loses its scheduler, repeat the call: it continues from the file, without a new search.
        A file of another model or of other data raises an error.  The call removes the file when
        the fit is complete.
    verbose : bool
        Whether to show the progress of the fit and of each pass on standard error, and the time
        that is left.
    **options
        Further arguments of `moestat.family`, for a model by name.

    Returns
    -------
    MoEResults
        Parameters, standard errors from the observed information, log-likelihood, certificate and
        ``summary()``.  If the model is given by name, experts are in descending order of their mean
        weight.  The checks for outliers and other misfits use the sample, and the warnings are
        those of `moestat.fit`.  Residuals, robust covariances, bootstraps, influence and criteria
        read the blocks again; methods that need all rows in memory, such as most plots, raise an
        error that names ``at_sample()``.

    Raises
    ------
    ValueError
        For the reasons of `moestat.fit`, with the number of the block; for least squares, and for
        gates whose likelihood has jumps or kinks.

    Notes
    -----
    Families and likelihood are those of `moestat.fit`: Pham et al. (2026), eq. (2).  An interrupt
    (Ctrl-C) ends the search for starts, as in `moestat.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from moestat import Blocks, family, fit_blocks, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> theta = F.pack({"beta0": [0, 0], "beta1": [5, 0], "a": [2, -2], "b": [0, 0], "nu": [1, 1]})
    >>> X, y = sample(F, theta, n=3000, rng=0)
    >>> result = fit_blocks("gaussian", Blocks.from_arrays(X, y, rows=1000), n_experts=2, rng=0)
    >>> result.nobs, result.certificate.certified
    (3000.0, True)
    """
    check_options(options, fit_blocks)
    check_kind("blocks", blocks, "map", "a moestat.Blocks, such as Blocks.from_arrays(X, y)")
    count = available_cpus() if threads is None else positive_int("threads", threads)
    by_name = not isinstance(model, Family)
    if options and not by_name:
        raise ValueError(
            f"{', '.join(sorted(options))}: allowed only if the family is given by name; got"
            f" {short(model)}"
        )
    with reported("fit_blocks", verbose, answers=True):
        return fit_rows(model, blocks, starts, rng, count, options, resume=resume)


@dataclass
class _RunningBlocks(RunningFit):
    """A fit to blocks, whose experts are ordered and measured by one more pass."""

    sizes: FloatArray | None = None  # (k,): sums of the responsibilities of each expert

    def order_experts(self, result: Fitted) -> Fitted:
        """The result with its experts in their final order, as `RunningFit.order_experts`."""
        if result.family.n_experts == 1:
            return result
        work = partial(_shares, result.family, result.theta)
        weights, sizes = self.original.data.sum_parts(work)
        ordered = by_weight(result, weights) if self.job.by_weight else result
        is_reordered = ordered is not result
        self.sizes = sizes[np.argsort(-weights, kind="stable")] if is_reordered else sizes
        return ordered


def _shares(family: Family, theta: FloatArray, part: Rows) -> FloatArray:
    """Sums (2, k) of the gate's probabilities over rows, and of responsibilities over units."""
    gate, responsibilities, _ = Problem(family, part).rowwise(theta)
    if part.begin is not None:
        responsibilities = responsibilities[:, part.begin]
    return np.stack([gate @ part.weight, responsibilities @ part.units])


def fit_rows(
    model: Any,
    blocks: Blocks,
    starts: Sequence[StartRule] | None,
    rng: Seed,
    count: int,
    options: Mapping[str, Any],
    *,
    search_options: Mapping[str, Any] | None = None,
    deadline: float = np.inf,
    order: Any = None,
    declared: Sequence[Column | None] = (),
    names: Sequence[str] = (),
    prior: Prior | str | None = None,
    resolution: Any = None,
    extra: Mapping[str, Any] | None = None,
    memory: dict[str, Any] | None = None,
    resume: str | Path | None = None,
) -> MoEResults:
    """The fit to blocks; arguments are those of `fit_blocks`, checked.

    `search_options` are those of the default search for starts, and `deadline` is a time of
    `time.monotonic` after which no pass of a climb begins.  `order` has the labels of the classes
    as the argument `classes` of `moestat.fit`; `declared` are the columns of the responses, whose
    levels count, and `names` are those of several responses; `prior` and `resolution` are those of
    `moestat.fit`, and `extra` has further fields of the `Data` of the result.  Fits with one
    `memory` share what does not depend on the number of experts.
    """
    generator, by_name = as_generator(rng), not isinstance(model, Family)
    began = time.perf_counter()
    looks, search = generator.spawn(2)
    with ONE_THREAD:
        how = draw_seed(looks), count, {} if memory is None else memory
        model, labels, classes, totals = _surveyed(model, blocks, order, declared, names, *how)
    if by_name:
        sizes = {"n_features": totals.sample.X.shape[0]}
        if classes is not None and not isinstance(classes, tuple):
            sizes["n_classes"] = len(classes)
        options = {**with_places(options, blocks.features), **sizes}
        model = in_units_of_inputs(family(model, **options), options, totals.variances)
    ends = np.column_stack([totals.low, totals.high])[: model.n_features]
    model = holding_constants(model, ends, np.ones(2, dtype=bool), blocks.features)
    prior_density = as_prior(prior, model)
    data = rows_of_blocks(blocks, totals, model, labels, count)
    _check(model, totals, data.sampled, prior_density, blocks.features)
    data_of_fit = Data(
        np.empty((0, model.n_features)),
        data.reader.values(totals.sample.at(np.arange(0))),
        data.weight,
        blocks.features,
        blocks.response,
        classes,
        resolution=checked_resolution(model, resolution),
    )
    if totals.sample.groups is not None:
        data_of_fit = replace(
            data_of_fit, groups=totals.sample.groups[:0], group_weight=totals.group_weight
        )
    data_of_fit = replace(data_of_fit, **(extra or {}))
    job = FitJob(model, data_of_fit, prior=prior_density, by_weight=by_name and starts is None)
    running = _RunningBlocks.standardised(job, Problem(model, data), Newton(), data.sampled)
    inner, standard = running.inner, running.standard
    assert standard is not None
    assert isinstance(inner.data, BlockRows)
    # Start rules need rows in memory: those of the sample.
    small = Standardised(
        Problem(model, data.sampled),
        inner.replace_data(replace(inner.data.sampled, preview=False)),
        standard.coordinates,
    )
    saved = None
    if resume is not None:
        digest = digest_of_fit(model, totals.n_rows, totals.total, totals.mean, prior_density)
        saved = SavedEstimates.at(resume, digest, standard.coordinates)
        if (points := saved.points()) is not None:
            LOG.info("going on from %d points of %s", len(points), saved.path)
            starts = [GivenStarts(points)]
    options_of_search = {k: v for k, v in (search_options or {}).items() if v is not None}
    if "time_limit" in options_of_search:
        options_of_search["time_limit"] = max(0.0, deadline - time.monotonic())
    searched = SearchOptions(**options_of_search).rule(model)
    rules = [searched] if starts is None else checked_starts(starts)
    with searching_on(count):
        for rule in rules:
            if running.interrupted:
                break
            if isinstance(rule, SearchRule):
                points = running.search(rule, small.problem, search)
            else:
                points = small.draw(rule, search)
                running.counts += [1] * len(points)
            if saved is not None and not isinstance(rule, GivenStarts):
                saved.start(points)
            # A pass over the blocks is expensive: with seen=1 the climb on the sample is not
            # checked on all rows.
            running.add_starts(rule.name, points, replace(inner, seen=1))
    with until(deadline):
        (result,) = succeeded(finish([running], Passes(count, saved), began))
    if saved is not None and InterruptedWarning.__name__ not in result.kinds:
        saved.remove()
    result = replace(MoEResults.of(result), source=data)
    # Misfits are looked for in the sample of the rows.
    return warn_and_note(result, misfits(result, sample_data(result), running.sizes))


SEARCHED = "n_starts", "time_limit", "risk", "maximum"
"""Arguments of `moestat.fit` that say how the default search looks for starts."""


def deadline_after(time_limit: float | None) -> float:
    """The reading of `time.monotonic` `time_limit` seconds from now; infinite without a limit."""
    if time_limit is None:
        return np.inf
    return time.monotonic() + real_in("time_limit", time_limit, 0.0)


def _surveyed(
    model: Any,
    blocks: Blocks,
    order: Any,
    declared: Sequence[Column | None],
    names: Sequence[str],
    seed: int,
    count: int,
    memory: dict[str, Any],
) -> tuple[Any, tuple[Any, ...], Any, Totals]:
    """The model with names and sizes of its responses, and what one pass finds out about rows.

    Between these are the labels of the classes of each response, and the same as the `Data` of a
    fit has them.
    """
    law = law_of(model)
    n_features = model.n_features if isinstance(model, Family) else None
    names, labels = names_of_responses(model, names), ()
    declared = declared or [None] * max(len(names), 1)
    if law.parts:
        if "labels" not in memory:
            memory["labels"] = find_labels(blocks, law, n_features, count)
        model, labels = find_classes(model, memory["labels"], declared, names, order)
        law = model.likelihood if isinstance(model, Family) else model
    if "totals" not in memory:
        memory["totals"] = survey(blocks, law, labels, n_features, seed, count)
    totals: Totals = memory["totals"]
    if not law.parts:
        model, labels = find_classes(model, totals.labels, declared, names, order)
    if is_by_expert(model):
        model = with_range(model, np.array([totals.low[-1], totals.high[-1]]))
    return model, labels, classes_of(law, labels), totals


def _check(
    model: Family,
    totals: Totals,
    sampled: Rows,
    prior: Prior | None,
    features: Sequence[str] | None,
) -> None:
    """Raise if the rows do not determine a fit, or the family needs all rows at once."""
    if model.is_regression or model.has_jumps or has_kinks(model):
        raise ValueError(
            "fits to blocks need a density without jumps and kinks, because they use Newton's"
            f" method; got {model.likelihood.name} with gate {model.gate.name!r}"
        )
    if not totals.total > 0:
        raise ValueError("sample_weight must have a positive sum, but all its values are zero")
    d, response = totals.sample.X.shape[0], None
    if model.likelihood.parts or model.likelihood.dtype is np.complex128:
        response = sampled.y
    elif not totals.labels:
        response = np.array([totals.low[-1], totals.high[-1]])
    low, high = totals.low, totals.high
    ranges = [("X", low[:d], high[:d]), ("y", low[d:], high[d:])]
    check_rows(model, prior, ranges, response, totals.total, totals.n_rows, totals.sample.groups)
    if totals.sample.groups is not None:
        check_gate_in_groups(model, totals.varying, features)
