"""Passes over blocks: the requests of all starts, or all resamples, are answered in one pass."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from moestat.base.types import FloatArray
from moestat.estimation.progress import LOG
from moestat.estimation.rows.block_rows import BlockRows, Draw, Reader
from moestat.estimation.rows.blocks import Block
from moestat.estimation.rows.interrupted import SavedEstimates
from moestat.model.family import Family
from moestat.solvers.problem import Answer, Objective, Problem, Request, Value

__all__ = ["Passes"]


@dataclass(frozen=True)
class Passes:
    """A target that answers all requests of a batch in one pass over blocks, wherever they are."""

    threads: int
    saved: SavedEstimates | None = None  # where the points of each pass are kept
    whole = False

    def groups(self, problems: Sequence[Problem]) -> list[range]:
        """All of them at once."""
        return [range(len(problems))]

    @contextmanager
    def session(self, problems: Sequence[Problem]) -> Generator[Answer]:
        """Nothing to prepare."""
        yield self._answer

    def _answer(self, batch: Sequence[tuple[Problem, Request]]) -> Iterable[Value]:
        large = [
            i for i, (p, r) in enumerate(batch) if isinstance(p.data.levels[r.level], BlockRows)
        ]
        answers: dict[int, Value] = {}
        if large:
            data = batch[large[0]][0].data
            assert isinstance(data, BlockRows)
            requests = [_BlockRequest.of(*batch[i]) for i in large]
            work = partial(_sums, batch[large[0]][0].family, data.reader, requests)
            LOG.info("pass over %d rows for %d starts", data.size, len(large))
            totals = data.sum_blocks(work, f"pass for {len(large)} starts")
            for i, total in zip(large, totals, strict=True):
                problem, request = batch[i]
                problem.visit(request)
                answers[i] = problem.completed(request, total)
                if self.saved is not None:
                    self.saved.keep(problem, request, answers[i])
            if self.saved is not None:
                self.saved.write()
        return [answers.get(i) or p.evaluate(r) for i, (p, r) in enumerate(batch)]


@dataclass(frozen=True)
class _BlockRequest:
    """A solver's request in the form that is sent to the blocks."""

    objective: Objective
    theta: FloatArray
    draw: Draw | None  # how the rows are resampled

    @classmethod
    def of(cls, problem: Problem, request: Request) -> _BlockRequest:
        """The request of a problem whose data are blocks."""
        assert isinstance(problem.data, BlockRows)
        return cls(request.objective, request.theta, problem.data.draw)


def _sums(
    family: Family, reader: Reader, requests: Sequence[_BlockRequest], number: int, block: Block
) -> list[Value]:
    """The sums over one block that several requests ask for."""
    rows = reader.sample(block)
    values: list[Value] = []
    for each in requests:
        given = rows if each.draw is None else each.draw.of(number, rows)
        request = Request(each.objective, each.theta)
        values.append(Problem(family, replace(given, whole=True)).evaluate(request))
    return values
