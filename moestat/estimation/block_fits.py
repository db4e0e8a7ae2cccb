"""Fits to blocks of rows: one pass to know the data, a search on a sample, Newton on all rows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import (
    as_floats,
    as_generator,
    as_weights,
    check_kind,
    positive_int,
    short,
)
from moestat.estimation.batches import finish
from moestat.estimation.blocks import Block, Blocks
from moestat.estimation.data import (
    Data,
    check_options,
    check_size,
    holding_constants,
    in_units_of_inputs,
    with_places,
)
from moestat.estimation.fitted import warn_and_note
from moestat.estimation.inference.misfit import misfits_in
from moestat.estimation.jobs import FitJob, check_response, checked_starts
from moestat.estimation.progress import LOG, reported
from moestat.estimation.reading.inputs import read_inputs
from moestat.estimation.reading.labels import plain_labels, read_labels
from moestat.estimation.reading.table import Column, as_column
from moestat.estimation.relabel import by_weight
from moestat.estimation.results import MoEResults
from moestat.estimation.rounding import least_variances, resolution_of
from moestat.estimation.running import RunningFit
from moestat.estimation.searching import Agreement, on_threads, search_of
from moestat.estimation.standardise import Standardised, standardise
from moestat.estimation.starts import StartRule
from moestat.model.axes import family
from moestat.model.family import Family
from moestat.model.joint import as_likelihood
from moestat.model.units import DataUnits
from moestat.solvers import Newton
from moestat.solvers.driver import ONE_THREAD, succeeded
from moestat.solvers.problem import Answer, Problem, Request, Sample, Value
from moestat.solvers.trust_region.kinks import has_kinks

__all__ = ["fit_blocks", "fit_rows"]

T = TypeVar("T")

_SAMPLED = 100_000
"""Rows of the sample that starts are searched on, and on which Newton's method climbs first."""

_SPARE = 4
"""So many times its even share of the sample a block may give: blocks differ in size."""

_MOST_CLASSES = 1000


@dataclass(frozen=True)
class _Reader:
    """How a block becomes what the loops read: checked, encoded, in units."""

    family: Family
    labels: Any = None  # labels of the classes (K,), in their order
    units: DataUnits | None = None
    features: tuple[str, ...] | None = None

    def sample(self, block: Block) -> Sample:
        """The rows of a block."""
        X, y, weight, _ = _numbers(block, self.family.n_features, self.features)
        if self.labels is not None:
            y = _positions(self.labels, y)
        response = self.family.likelihood.encode(y, self.family.n_classes)
        if self.family.held:
            X = X.copy()  # it may be the caller's own
            X[list(self.family.held)] = 0.0
        found = Sample(X, response, weight)
        return found if self.units is None else found.convert(self.units)


def _numbers(
    block: Block, n_features: int | None, features: Sequence[str] | None
) -> tuple[FloatArray, Any, FloatArray, np.ndarray]:
    """Inputs (d, b), responses as they are and weights (b,), checked, of rows with a weight.

    The last one is a mask of these rows among those of the block.
    """
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError(f"a block must be a tuple of X, y and perhaps weights, got {short(block)}")
    X = read_inputs(block[0], n_features, features).design
    column = as_column("y", block[1])
    column.check_missing("y")
    words = column.values.dtype.kind in "OUS"
    y = plain_labels(column) if words else column.values
    given = block[2] if len(block) > 2 else None
    if given is not None:
        given = as_column("sample_weight", given).numbers("sample_weight")
    if len(y) != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} samples but y has {len(y)}")
    weight = as_weights(given, len(y), some=False)
    used = weight > 0
    if used.all():
        return X, y, weight, used
    return np.ascontiguousarray(X[:, used]), y[used], weight[used], used


def _positions(labels: np.ndarray, y: np.ndarray) -> IntArray:
    """Positions, from 1, of responses among the labels of the classes."""
    order = np.argsort(labels)
    return order[np.searchsorted(labels, y, sorter=order)] + 1


@dataclass(frozen=True)
class _Drawn:
    """Rows with random keys; the smallest keys of all rows are a uniform sample."""

    keys: FloatArray
    X: FloatArray
    y: Any
    weight: FloatArray
    place: np.ndarray  # (2, m): the block of each row, and its number there

    @classmethod
    def of(cls, some: Sequence[_Drawn]) -> _Drawn:
        """The sample of what several blocks have drawn, in their order."""
        whole = [
            np.concatenate([getattr(each, name) for each in some], axis=-1)
            for name in ("keys", "X", "y", "weight", "place")
        ]
        if whole[0].size > _SAMPLED:
            kept = np.sort(np.argpartition(whole[0], _SAMPLED)[:_SAMPLED])
            whole = [values[..., kept] for values in whole]
        return cls(*whole)


@dataclass(frozen=True)
class _Known:
    """What one pass finds out about rows: sums, spans, labels, and a random sample of them."""

    rows: int  # rows with a weight
    given: int  # all rows
    total: float
    mean: FloatArray
    squares: FloatArray  # sums of weighted products of deviations from the mean
    low: FloatArray
    high: FloatArray
    labels: Any
    drawn: _Drawn
    # rows before each block
    begin: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def variances(self, which: Sequence[int]) -> FloatArray:
        """Weighted variances of some inputs."""
        at = list(which)
        return self.squares[at, at] / self.total

    def joined(self, other: _Known) -> _Known:
        """Of both, without their samples; sums of squares by Chan, Golub and LeVeque (1983)."""
        total = self.total + other.total
        gap = other.mean - self.mean
        return _Known(
            rows=self.rows + other.rows,
            given=self.given + other.given,
            total=total,
            mean=self.mean + gap * (other.total / total if total else 0.0),
            squares=self.squares
            + other.squares
            + np.outer(gap, gap) * (self.total * other.total / total if total else 0.0),
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            labels=None if self.labels is None else np.union1d(self.labels, other.labels),
            drawn=self.drawn,
        )


def _look(
    has_labels: bool,
    n_features: int | None,
    features: tuple[str, ...] | None,
    most: int,
    seed: int,
    number: int,
    block: Block,
) -> _Known:
    """What is to be known about one block."""
    X, y, weight, used = _numbers(block, n_features, features)
    labels = None
    if not has_labels:
        y = as_floats("y", y, (None,))
        columns = np.vstack([X, y])
    else:
        labels, columns = np.unique(y), X
        if labels.dtype.kind == "f" and (wrong := labels[labels != np.floor(labels)]).size:
            raise ValueError(
                f"y must hold class labels: integers, words or truth values; got {wrong[0]:g}"
            )
        if len(labels) > _MOST_CLASSES:
            raise ValueError(f"y has more than {_MOST_CLASSES} different labels in a block")
    total = float(weight.sum())
    mean = columns @ weight / total if total else np.zeros(len(columns))
    centred = columns - mean[:, None]
    # The random numbers of a block depend on its number alone, not on who reads it.
    keys = np.random.default_rng([seed, number]).random(weight.size)
    most = min(most, weight.size)
    kept = np.sort(np.argpartition(keys, most - 1)[:most]) if most else np.arange(0)
    place = np.array([np.full(kept.size, number), np.flatnonzero(used)[kept]], dtype=np.int32)
    return _Known(
        rows=weight.size,
        given=used.size,
        total=total,
        mean=mean,
        squares=(centred * weight) @ centred.T,
        low=columns.min(axis=1, initial=np.inf),
        high=columns.max(axis=1, initial=-np.inf),
        labels=labels,
        drawn=_Drawn(keys[kept], X[:, kept], y[kept], weight[kept], place),
    )


@dataclass(frozen=True)
class _Rows(Sample):
    """All rows of blocks in place of arrays: what solvers ask of a sample, from a pass before."""

    blocks: Blocks = field(kw_only=True)
    totals: _Known = field(kw_only=True)
    reader: _Reader = field(kw_only=True)
    sampled: Sample = field(kw_only=True)
    threads: int = field(kw_only=True)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.totals.rows

    @cached_property
    def _move(self) -> tuple[FloatArray, FloatArray]:
        """Shift and scale of each column, with a continuous response last."""
        units, count = self.reader.units, self.totals.mean.size
        if units is None:
            return np.zeros(count), np.ones(count)
        extra = count - units.centre.size
        ends = np.array([[units.level], [units.unit]])[:, :extra]
        return np.append(units.centre, ends[0]), np.append(units.scale, ends[1])

    @property
    def mean(self) -> FloatArray:
        shift, scale = self._move
        return (self.totals.mean - shift) / scale

    @property
    def covariance(self) -> FloatArray:
        scale = self._move[1]
        return self.totals.squares / self.totals.total / np.outer(scale, scale)

    @property
    def deviation(self) -> FloatArray:
        return np.sqrt(np.diag(self.covariance))

    @property
    def gram(self) -> FloatArray:
        d = len(self.X)
        mean = np.append(1.0, self.mean[:d])
        found = np.outer(mean, mean)
        found[1:, 1:] += self.covariance[:d, :d]
        return found

    @cached_property
    def _coarser(self) -> list[Sample]:
        return [] if self.sampled.size == self.size else [self.sampled]

    def parts(self, n_params: int) -> Sequence[slice]:
        return [slice(number, number + 1) for number in range(len(self.blocks))]

    def part(self, rows: slice) -> Sample:
        return self.reader.sample(self.blocks[rows.start])

    def map_parts(self, function: Callable[[Sample], T]) -> Iterator[T]:
        return self.blocks.map(partial(_through, self.reader, function), self.threads)

    def convert(self, units: DataUnits) -> _Rows:
        reader = replace(self.reader, units=units)
        return replace(self, reader=reader, sampled=self.sampled.convert(units))


def _through(reader: _Reader, function: Callable[[Sample], T], number: int, block: Block) -> T:
    return function(reader.sample(block))


def _rows(blocks: Blocks, known: _Known, own: Family, labels: Any, threads: int) -> _Rows:
    """The rows in the user's units."""
    reader = _Reader(own, labels, features=blocks.features)
    known.mean[list(own.held)] = 0.0
    drawn = known.drawn
    sampled = reader.sample((drawn.X.T, drawn.y, drawn.weight))
    alike = replace(
        sampled, weight=sampled.weight * (known.total / sampled.weight.sum()), preview=True
    )
    nothing = np.empty((own.n_features, 0)), sampled.y[:0], np.array([known.total])
    return _Rows(
        *nothing, blocks=blocks, totals=known, reader=reader, sampled=alike, threads=threads
    )


@dataclass(frozen=True)
class _Passes:
    """A target that answers all requests of a batch in one pass over blocks, wherever they are."""

    threads: int
    whole = False

    def groups(self, problems: Sequence[Problem]) -> list[range]:
        """All of them at once."""
        return [range(len(problems))]

    @contextmanager
    def session(self, problems: Sequence[Problem]) -> Generator[Answer]:
        """Nothing to prepare."""
        yield self._answer

    def _answer(self, batch: Sequence[tuple[Problem, Request]]) -> Iterable[Value]:
        large = [i for i, (p, r) in enumerate(batch) if isinstance(p.data.levels[r.level], _Rows)]
        found: dict[int, Value] = {}
        if large:
            data = batch[large[0]][0].data
            assert isinstance(data, _Rows)
            asked = [(batch[i][1].objective, batch[i][1].theta) for i in large]
            work = partial(_sums, batch[large[0]][0].family, data.reader, asked)
            LOG.info("pass over %d rows for %d starts", data.size, len(large))
            totals: list[Value] | None = None
            # Added as they come, in the order of the blocks: no list of matrices, no other sum.
            for values in data.blocks.map(work, self.threads):
                totals = values if totals is None else [*map(_added, totals, values)]
            assert totals is not None
            for i, total in zip(large, totals, strict=True):
                batch[i][0].visit(batch[i][1])
                found[i] = total
        return [found.get(i) or p.evaluate(r) for i, (p, r) in enumerate(batch)]


def _sums(
    own: Family, reader: _Reader, asked: Sequence[Any], number: int, block: Block
) -> list[Value]:
    """The sums over one block that several requests ask for."""
    problem = Problem(own, replace(reader.sample(block), whole=True))
    return [problem.evaluate(Request(objective, theta)) for objective, theta in asked]


def _added(one: Any, other: Any) -> Any:
    names = [each.name for each in fields(one)]
    return type(one)(*(getattr(one, name) + getattr(other, name) for name in names))


@door()
def fit_blocks(
    model: Family | str | Mapping[str, Any],
    blocks: Blocks,
    *,
    starts: Sequence[StartRule] | None = None,
    rng: Any = None,
    threads: int | None = None,
    verbose: bool = False,
    **options: Any,
) -> MoEResults:
    """Maximum-likelihood fit to data that are read in blocks, with a certificate.

    One pass over the blocks finds means, covariances, labels and a random sample of 100,000 rows.
    Starts are searched on the sample, as in `moestat.fit`; from the three best Newton's method
    climbs on the sample first and then on all rows, with one pass for each iteration of all starts
    together.  The certificate is that of all rows.  Sums of blocks are added in the order of the
    blocks: results depend neither on the number of threads nor on where blocks are.

    Parameters
    ----------
    model : Family, str or mapping
        The model, as in `moestat.fit`: a density without jumps or kinks.
    blocks : Blocks
        The data, such as `moestat.Blocks.from_arrays` of memory-mapped arrays.
    starts : sequence of StartRule, optional
        As in `moestat.fit`; rules that look at data see the sample.
    rng : numpy.random.Generator, int or None
        Source of the sample and of the random starts.
    threads : int, optional
        Threads, each with one block in memory; all cores by default.
    verbose : bool
        Whether to say on standard error what the fit does.
    **options
        Further arguments of `moestat.family`, for a model by name.

    Returns
    -------
    MoEResults
        Parameters, standard errors of the observed information, log-likelihood, certificate and
        ``summary()``; of a model by name with the experts in descending order of their mean weight.
        Outliers and other misfits are looked for in the sample, and the warnings are those of
        `moestat.fit`.  What needs the rows again, such as robust covariances, residuals and
        bootstraps, says that they are not there; predictions are for any data.

    Raises
    ------
    ValueError
        As `moestat.fit`, with the number of the block; for least squares, and gates with jumps or
        kinks.

    Notes
    -----
    Families and likelihood are those of `moestat.fit`: Pham et al. (2026), eq. (2).  An interrupt
    ends the search for starts, as there.

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
    count = os.cpu_count() or 1 if threads is None else positive_int("threads", threads)
    by_name = not isinstance(model, Family)
    if options and not by_name:
        raise ValueError(
            f"{', '.join(sorted(options))}: for a family by name only; got {short(model)}"
        )
    with reported("fit_blocks", verbose, answers=True):
        return fit_rows(model, blocks, starts, rng, count, options)


@dataclass
class _RunningBlocks(RunningFit):
    """A fit to blocks, whose experts are ordered and measured by one more pass."""

    sizes: FloatArray | None = None  # (k,): sums of the responsibilities of each expert

    def order_experts(self, result: MoEResults) -> MoEResults:
        """The result with its experts in their final order, as `RunningFit.order_experts`."""
        if result.family.n_experts == 1:
            return result
        work = partial(_shares, result.family, result.theta)
        weights, sizes = np.sum([*self.original.data.map_parts(work)], axis=0)
        found = by_weight(result, weights) if self.job.by_weight else result
        moved = found is not result
        self.sizes = sizes[np.argsort(-weights, kind="stable")] if moved else sizes
        return found


def _shares(own: Family, theta: FloatArray, part: Sample) -> FloatArray:
    """Sums (2, k) over some rows of the gate's probabilities and of the responsibilities."""
    gate, responsibilities, _ = own.rowwise(theta, part.X, part.y)
    return np.stack([gate @ part.weight, responsibilities @ part.weight])


def fit_rows(
    model: Any,
    blocks: Blocks,
    starts: Any,
    rng: Any,
    count: int,
    options: Mapping[str, Any],
    *,
    n_starts: int | None = None,
    order: Any = None,
    levels: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> MoEResults:
    """The fit to blocks; arguments are those of `fit_blocks`, checked.

    `order` has the labels of the classes as the argument `classes` of `moestat.fit`, and `levels`
    those that a column declares; `extra` has further fields of the `Data` of the result.
    """
    generator, by_name = as_generator(rng), not isinstance(model, Family)
    likelihood = as_likelihood(model) if by_name else model.likelihood
    if likelihood.effects is not None:
        raise ValueError("fit_blocks: blocks have no groups, and so no random effects; use fit")
    if likelihood.parts:
        raise ValueError("fit_blocks: blocks have one response each; fit reads several at once")
    began = time.perf_counter()
    looks, search = generator.spawn(2)
    sizes = None if by_name else model.n_features
    with ONE_THREAD:
        seed = int(looks.integers(2**63))
        known = _survey(blocks, likelihood.support is not None, sizes, seed, count)
    classes = known.labels
    if by_name and classes is not None:
        ordered = "levels" in likelihood.options
        column = Column(classes, np.zeros(len(classes), dtype=bool), levels=levels)
        _, classes = read_labels(column, None, order, ordered)
    elif order is not None:
        raise ValueError(f"classes: the {likelihood.name} likelihood has no classes")
    if by_name:
        sizes = {} if classes is None else {"n_classes": len(classes)}
        sizes["n_features"] = known.drawn.X.shape[0]
        options = {**with_places(options, blocks.features), **sizes}
        model = in_units_of_inputs(family(model, **options), options, known.variances)
    elif classes is not None and len(classes) != model.n_classes:
        raise ValueError(f"y must have {model.n_classes} classes, got {len(classes)} labels")
    ends = np.column_stack([known.low, known.high])[: model.n_features]
    model = holding_constants(model, ends, np.ones(2, dtype=bool), blocks.features)
    _check(model, known)
    data = _rows(blocks, known, model, classes, count)
    steps = resolution_of(model, data.sampled)
    standard = standardise(Problem(model, data), least_variances(model, data.sampled, steps))
    names = Data(
        np.empty((0, model.n_features)),
        np.empty(0),
        data.weight,
        blocks.features,
        blocks.response,
        classes,
        resolution=steps,
    )
    names = replace(names, **(extra or {}))
    job = FitJob(model, names, by_weight=by_name and starts is None)
    inner = standard.problem
    running = _RunningBlocks(job, standard.original, Newton(), inner, standard)
    assert isinstance(inner.data, _Rows)
    # Start rules look at rows, and those of the sample are there.
    small = Standardised(
        Problem(model, data.sampled),
        inner.replace_data(replace(inner.data.sampled, preview=False)),
        standard.coordinates,
    )
    for rule in checked_starts(starts) if starts is not None else [search_of(n_starts)]:
        if running.interrupted:
            break
        if isinstance(rule, Agreement):
            points = running.search(on_threads(rule, count), small.problem, search)
        else:
            points = small.draw(rule, search)
            running.counts += [1] * len(points)
        # A pass over blocks is dear: the sample is trusted to lead no lower than the start.
        running.add_starts(rule.name, points, replace(inner, seen=1))
    (result,) = succeeded(finish([running], _Passes(count), began))
    return _alarmed(result, known, model, classes, running.sizes)


def _alarmed(
    result: MoEResults, known: _Known, model: Family, classes: Any, sizes: FloatArray | None
) -> MoEResults:
    """The result with warnings of misfits, which are looked for in the sample of the rows."""
    assert result.data is not None
    drawn = known.drawn
    X = drawn.X.copy() if model.held else drawn.X
    X[list(model.held)] = 0.0
    y = drawn.y if classes is None else _positions(classes, drawn.y)
    kept = known.begin[drawn.place[0]] + drawn.place[1]
    rows = replace(result.data, X=X.T, y=y, weight=drawn.weight, kept=kept)
    found = misfits_in(result, rows, sizes)
    return warn_and_note(result, found)


def _survey(
    blocks: Blocks, has_labels: bool, n_features: int | None, seed: int, threads: int
) -> _Known:
    """What is to be known about all blocks."""
    most = _SPARE * _SAMPLED // len(blocks) + 1
    known: _Known | None = None
    drawn: list[_Drawn] = []
    begin = [0]
    look = partial(_look, has_labels, n_features, blocks.features, most, seed)
    for own in blocks.map(look, threads):
        if known is not None and own.mean.size != known.mean.size:
            raise ValueError("blocks: X has another number of columns in another block")
        if known is not None and own.labels is not None:
            words = {each.dtype.kind in "US" for each in (own.labels, known.labels) if each.size}
            if len(words) > 1:
                raise ValueError("blocks: y has words in one block and numbers in another")
        known = own if known is None else known.joined(own)
        begin.append(known.given)
        drawn.append(own.drawn)
        if sum(each.keys.size for each in drawn) > 3 * _SAMPLED // 2:
            drawn = [_Drawn.of(drawn)]
    assert known is not None
    return replace(known, drawn=_Drawn.of(drawn), begin=np.array(begin[:-1]))


def _check(model: Family, known: _Known) -> None:
    """Raise for rows that determine no fit, and for families that need all rows at once."""
    if model.is_regression or model.has_jumps or has_kinks(model):
        raise ValueError(
            "fits to blocks are by Newton's method, for densities without jumps and kinks; got"
            f" {model.likelihood.name} with gate {model.gate.name!r}"
        )
    if not known.total > 0:
        raise ValueError("sample_weight must have a positive sum, but all its values are zero")
    if known.total < model.n_free_params:
        raise ValueError(
            f"n = {known.total:g} samples cannot determine {model.n_free_params} free parameters"
        )
    ends = np.array([known.low, known.high])
    if known.labels is None:
        check_response(model, ends[:, -1])
    check_size("X or y", known.low, known.high)
