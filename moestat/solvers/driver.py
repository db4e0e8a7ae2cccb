"""One loop for all solvers: a batch of iterations, advanced together.

The loop evaluates the requests of a whole batch of problems in one go: over threads here, that
share problems and parts of their rows, in one launch on another `Target`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from moestat.base.threads import ONE_THREAD, available_cpus
from moestat.base.types import FloatArray
from moestat.base.validate import positive_int
from moestat.solvers.problem import (
    Answer,
    Iteration,
    Objective,
    Problem,
    Ran,
    Request,
    Result,
    Run,
    Target,
    Value,
)
from moestat.solvers.rules import WORK

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=np.inf)

_BETWEEN_LOOKS = 4
"""Number of requests between two checks of the clock, where there is a deadline: a check delays a
batch by less than one request."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Stop iterations inside the block at a time of `time.monotonic`.

    An iteration that has not ended returns an `Unfinished`.
    """
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def is_late() -> bool:
    """Whether the deadline of the block has passed."""
    return time.monotonic() > _DEADLINE.get()


class Unfinished(NamedTuple):
    """State of a run that was stopped by the deadline; it can be used in place of a result."""

    theta: FloatArray
    height: float
    """Negative objective at theta; -inf if only previews of the data were seen."""


@dataclass(frozen=True)
class Cores:
    """The processor's cores, the default target."""

    threads: int | None = None
    """Threads that evaluate; all cores by default.  The results do not depend on it."""
    whole = False

    def __post_init__(self) -> None:
        if self.threads is not None:
            positive_int("threads", self.threads)

    def groups(self, problems: Sequence[Problem]) -> list[range]:
        """One group: the processor holds all problems at once."""
        return [range(len(problems))]

    @contextmanager
    def session(self, problems: Sequence[Problem]) -> Iterator[Answer]:
        """Answer requests on a pool of threads."""
        threads = self.threads or available_cpus()

        def answer(
            batch: Sequence[tuple[Problem, Request]],
        ) -> Iterable[Value | np.linalg.LinAlgError]:
            parts = [problem.parts(request) for problem, request in batch]
            tasks = [
                (*item, rows)
                for item, row_ranges in zip(batch, parts, strict=True)
                for rows in row_ranges
            ]
            sums: dict[int, Value | np.linalg.LinAlgError] = {}
            queue = deque(enumerate(tasks))

            def evaluate() -> None:
                while queue:
                    try:
                        place, (problem, request, rows) = queue.popleft()
                    except IndexError:  # another thread took the last task
                        return
                    try:
                        sums[place] = problem.evaluate_part(request, rows)
                    except np.linalg.LinAlgError as error:  # ends this run, and not the others
                        sums[place] = error

            helpers = min(threads, len(tasks)) - 1
            if helpers and sum(map(_work_of, tasks)) <= WORK.thread:
                helpers = 0
            helping = [pool.submit(evaluate) for _ in range(helpers)]
            try:
                evaluate()
            finally:
                for helper in helping:
                    helper.result()
            places = iter(range(len(tasks)))
            for (problem, request), row_ranges in zip(batch, parts, strict=True):
                found = [sums[next(places)] for _ in row_ranges]
                errors = [each for each in found if isinstance(each, np.linalg.LinAlgError)]
                values = [each for each in found if not isinstance(each, np.linalg.LinAlgError)]
                yield errors[0] if errors else problem.join(request, values)

        if threads == 1:
            yield answer
            return
        with ThreadPoolExecutor(threads) as pool:
            yield answer


def _work_of(task: tuple[Problem, Request, slice]) -> int:
    """Work of a request about some rows, in units of one derivative."""
    problem, request, rows = task
    size, n_params = rows.stop - rows.start, problem.family.n_params
    if isinstance(request, Run):
        return size * WORK.passes * (WORK.row + n_params**2)
    gradient = request.objective in (Objective.VALUE, Objective.SCORE)
    return size * (WORK.row + (n_params if gradient else n_params**2))


def drive(
    iterations: Sequence[Iteration[Result]],
    problems: Sequence[Problem],
    threads: int | None = None,
    target: Target | None = None,
) -> list[Result]:
    """Run a batch of solver iterations to their ends.

    Parameters
    ----------
    iterations : sequence of generators
        One per problem.
    problems : sequence of Problem
        What each iteration's requests are about.
    threads : int, optional
        Threads that evaluate; all cores by default.  The results do not depend on it.
    target : Target, optional
        Where requests are answered, in place of `Cores`.

    Returns
    -------
    list
        The return value of each iteration, in order.
    """
    return succeeded(attempt(iterations, problems, target or Cores(threads)))


def succeeded(results: Sequence[Result | Exception]) -> list[Result]:
    """Return the results of a batch, or raise the first exception among them."""
    succeeded: list[Result] = []
    for result in results:
        if isinstance(result, Exception):
            raise result
        succeeded.append(result)
    return succeeded


def attempt(
    iterations: Sequence[Iteration[Result]], problems: Sequence[Problem], target: Target
) -> list[Result | Exception]:
    """Run a batch as `drive` does; where an iteration raises an exception, it is the result."""
    results: list[Any] = [None] * len(iterations)
    pending: list[tuple[int, Request]] = []
    deadline, states = _DEADLINE.get(), dict[int, Unfinished]()
    batch_size = len(iterations) if deadline == np.inf else _BETWEEN_LOOKS

    def advance(i: int, evaluation: Value | None) -> None:
        try:
            request = next(iterations[i]) if evaluation is None else iterations[i].send(evaluation)
        except StopIteration as stop:
            results[i] = stop.value
        except Exception as error:
            results[i] = error
        else:
            pending.append((i, request))

    # The solvers' own algebra is P by P: BLAS threads would only wait for each other.
    with ONE_THREAD:
        for group in target.groups(problems):
            with target.session([problems[i] for i in group]) as answer:
                for i in group:
                    advance(i, None)
                while pending:
                    batch, pending = pending[:batch_size], pending[batch_size:]
                    if is_late():
                        for i, request in batch:
                            results[i] = states.get(i, Unfinished(request.theta, -np.inf))
                        continue
                    answers = answer([(problems[i], request) for i, request in batch])
                    for (i, request), evaluation in zip(batch, answers, strict=True):
                        if isinstance(evaluation, np.linalg.LinAlgError):
                            results[i] = evaluation
                            continue
                        if deadline < np.inf:
                            state = _state(problems[i], request, evaluation)
                            earlier = states.get(i, state)
                            states[i] = max(state, earlier, key=lambda each: each.height)
                        advance(i, evaluation)
    return results


def _state(problem: Problem, request: Request, evaluation: Value) -> Unfinished:
    """State of a run after an evaluation; heights on previews do not compare with others."""
    theta = evaluation.theta if isinstance(evaluation, Ran) else request.theta
    preview = problem.data.levels[request.level].preview
    return Unfinished(theta, -np.inf if preview else -evaluation.value)
