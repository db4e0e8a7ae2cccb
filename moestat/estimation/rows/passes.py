"""Passes over blocks: the requests of all starts, or all resamples, are answered in one pass."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from moestat.estimation.progress import LOG
from moestat.estimation.rows.block_rows import BlockRows, Draw, Reader
from moestat.estimation.rows.blocks import Block
from moestat.estimation.rows.interrupted import SavedEstimates
from moestat.model.family import Family
from moestat.solvers.problem import Answer, Problem, Request, Value

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
            requests = [_of_block(*batch[i]) for i in large]
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


def _of_block(problem: Problem, request: Request) -> tuple[Request, Draw | None]:
    """A request as it is sent to the blocks, and how their rows are resampled."""
    assert isinstance(problem.data, BlockRows)
    return Request(request.objective, request.theta), problem.data.draw


def _sums(
    family: Family,
    reader: Reader,
    requests: Sequence[tuple[Request, Draw | None]],
    number: int,
    block: Block,
) -> list[Value]:
    """The sums over one block that several requests ask for."""
    rows = reader.sample(block)
    values: list[Value] = []
    for request, draw in requests:
        drawn = rows if draw is None else draw.of(number, rows)
        values.append(Problem(family, replace(drawn, whole=True)).evaluate(request))
    return values
