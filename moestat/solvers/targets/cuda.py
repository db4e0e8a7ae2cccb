"""The CUDA target: the requests of a whole batch of problems in one launch per kind and order.

Data are sent to the device once, when a group of problems is taken up, and stay there until it is
done; responsibilities are made there and never leave.  What travels in a round is parameters out
and values with their derivatives back.  The solvers' own algebra, P by P, runs on the host.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from moestat.base.validate import short
from moestat.kernels.atom import Layout
from moestat.kernels.cuda import launch
from moestat.kernels.cuda.target import COMPILES, SIMULATED, cuda
from moestat.model.family import Family
from moestat.solvers.problem import (
    Answer,
    Evaluation,
    InformedEvaluation,
    Objective,
    Problem,
    Request,
    Rows,
    Value,
    ValueGradient,
)
from moestat.solvers.rules import WORK
from moestat.solvers.targets.memory import MemoryPlan, plan_memory, rows_of

_log = logging.getLogger(__name__)
_SIMULATED_MEMORY = 1 << 34


def missing() -> str:
    """Why there is no CUDA device to use; empty if there is one, or numba's simulator.

    Examples
    --------
    >>> isinstance(missing(), str)
    True
    """
    if SIMULATED:
        return ""
    if not COMPILES:
        return "the package numba-cuda is not installed (pip install 'moestat[cuda]')"
    try:
        cuda.current_context()
    except Exception as error:  # the driver's errors have no common class
        lines = (line.strip() for line in str(error).splitlines())
        return " ".join(list(filter(None, lines))[:2])
    return ""


@cache
def device_name() -> str:
    """Name of the device in use."""
    if SIMULATED:
        return "numba's CUDA simulator"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


class CudaTarget:
    """A CUDA device as the target of fits.

    Parameters
    ----------
    memory : int, optional
        Bytes of device memory that may be used, in place of a share.
    share : float
        Share of the device's memory that may be used, as far as it is free.

    Raises
    ------
    RuntimeError
        If there is no device, with the reason.
    ValueError
        If `memory` is not positive, or `share` not in (0, 1].

    Notes
    -----
    Every sum is taken in a fixed order, without atomic operations, that depends on the problem
    alone: a fit has the same numbers whatever else is fitted with it.  Against the processor's
    cores values differ by rounding, and solvers see all of the data from the start instead of
    previews; fits agree as two certified maxima do.

    Examples
    --------
    >>> from moestat.solvers.targets import missing
    >>> target = None if missing() else CudaTarget()
    """

    whole = True

    def __init__(self, memory: int | None = None, share: float = 0.7) -> None:
        reason = missing()
        if reason:
            raise RuntimeError(f"no CUDA device: {reason}")
        if memory is not None and not memory > 0:
            raise ValueError(f"memory must be a positive number of bytes, got {short(memory)}")
        if not 0.0 < share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {short(share)}")
        self._memory, self._share = memory, share
        self.plan: MemoryPlan | None = None

    def groups(self, problems: Sequence[Problem]) -> Iterable[range]:
        """Runs of problems that the device can hold at the same time, in order."""
        self.plan = plan_memory(problems, self._budget(), 2 * launch.WORKSPACE_BYTES)
        _log.info("%s: %s", device_name(), self.plan.summary())
        return self.plan.groups

    @contextmanager
    def session(self, problems: Sequence[Problem]) -> Iterator[Answer]:
        """Hold the data of these problems on the device."""
        yield _Session(problems).answer

    def _budget(self) -> int:
        if self._memory is not None:
            return self._memory
        if SIMULATED:
            return _SIMULATED_MEMORY
        info = cuda.current_context().get_memory_info()
        return int(min(self._share * info.total, WORK.free * info.free))


_ORDERS = {
    Objective.SCORE: 1,
    Objective.OBSERVED: 2,
    Objective.COMPLETE: 2,
    Objective.INFORMED: 3,
}
"""Order of the derivatives that the kernel of mixtures computes; 0 for other objectives."""

_ON_THE_HOST = frozenset({Objective.GRADIENT, Objective.NEWTON})
"""Objectives without a kernel of their own on the device."""


class _Session:
    """A group of problems on the device."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        samples = {id(data): data for p in problems for data in rows_of(p)}
        sizes = [(data.X.shape[0] + 2) * data.size for data in samples.values()]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self._data = cuda.device_array(int(starts[-1]))
        self._data_at = dict(zip(samples, starts[:-1].tolist(), strict=True))
        self._held = samples  # an id means something only while its object lives
        for (key, data), size in zip(samples.items(), sizes, strict=True):
            at = self._data_at[key]
            flat = np.concatenate([data.X.ravel(), np.asarray(data.y, np.float64), data.weight])
            self._data[at : at + size].copy_to_device(flat)
        rooms = [p.family.n_experts * max(s.size for s in rows_of(p)) for p in problems]
        first = np.concatenate([[0], np.cumsum(rooms)[:-1]]).tolist()
        self._tau_at = dict(zip(map(id, problems), first, strict=True))
        self._tau_room = sum(rooms)
        self._tau: Any = cuda.device_array(1)
        self._has_tau: set[int] = set()

    def answer(self, batch: Sequence[tuple[Problem, Request]]) -> Iterable[Value]:
        """Answer a batch of requests, those of one kind and order in one launch."""
        groups: dict[tuple[object, ...], list[int]] = {}
        answers: dict[int, Value] = {}
        for i, (problem, request) in enumerate(batch):
            if request.objective in _ON_THE_HOST:
                answers[i] = problem.evaluate(request)
            else:
                groups.setdefault((*_kind(problem.family), request.objective), []).append(i)
        for positions in groups.values():
            some = self._evaluate([batch[i] for i in positions])
            for i, evaluation in zip(positions, some, strict=True):
                answers[i] = evaluation
        return [answers[i] for i in range(len(batch))]

    def _evaluate(self, batch: Sequence[tuple[Problem, Request]]) -> Iterator[Value]:
        """Answer requests for one objective of one kind of family."""
        (first, request), family = batch[0], batch[0][0].family
        del first
        samples = [problem.visit(each) for problem, each in batch]
        theta = np.array([each.theta for _, each in batch])
        objective = request.objective
        if objective in (Objective.COMPLETE, Objective.EXPECTATION):
            self._make_room(batch, samples, objective)
        on_device = launch.DeviceBatch(
            self._data,
            np.array([self._data_at[id(data)] for data in samples], dtype=np.int64),
            np.array([data.size for data in samples], dtype=np.int64),
            self._tau,
            np.array([self._tau_at[id(problem)] for problem, _ in batch], dtype=np.int64),
        )
        shape, kernels = shape_of(family), kernels_of(family)
        if objective in (Objective.GAUSS_NEWTON, Objective.RESIDUALS):
            order = 1 if objective is Objective.GAUSS_NEWTON else 0
            sums = kernels.evaluate(shape, family.jacobian_rows, theta, on_device, order)
            sign = 1.0
        else:
            order = _ORDERS.get(objective, 0)
            codes = {
                Objective.COMPLETE: launch.COMPLETE,
                Objective.EXPECTATION: launch.EXPECTATION,
            }
            code = codes.get(objective, launch.OBSERVED)
            sums = kernels.evaluate(shape, theta, on_device, order, code)
            sign = -1.0
        for i, value in enumerate(sums.value):
            height = sign * float(value)
            if order == 0:
                yield Value(height)
                continue
            score = sign * sums.score[i]
            if objective is Objective.SCORE:
                yield ValueGradient(height, score)
                continue
            hessian = sign * sums.hessian[i]
            if order > 2:  # noqa: PLR2004
                # Products of scores have the same sign for the objective and the log-likelihood.
                yield InformedEvaluation(height, score, hessian, sums.information[i])
            else:
                yield Evaluation(height, score, hessian)

    def _make_room(
        self,
        batch: Sequence[tuple[Problem, Request]],
        samples: Sequence[Rows],
        objective: Objective,
    ) -> None:
        """Allocate the responsibilities, and copy those that were given on the host."""
        if self._tau.size < self._tau_room:
            self._tau = cuda.device_array(self._tau_room)
        for (problem, _), data in zip(batch, samples, strict=True):
            if id(problem) in self._has_tau:
                continue
            self._has_tau.add(id(problem))
            if objective is Objective.COMPLETE:
                given = problem.tau
                if given.shape != (problem.family.n_experts, data.size):
                    raise ValueError("complete-data requests need responsibilities first")
                at = self._tau_at[id(problem)]
                self._tau[at : at + given.size].copy_to_device(np.ascontiguousarray(given).ravel())


def _kind(family: Family) -> tuple[object, ...]:
    """Key that the problems of one launch share."""
    blocks: tuple[Callable[..., None] | None, ...] = (
        family.gate.block,
        family.expert.block,
        family.likelihood.block,
    )
    sizes = family.n_experts, family.n_features, family.n_params, family.layout
    pinned = family.jacobian_rows.tobytes() if family.is_regression else b""
    return (*blocks, *sizes, family.index.tobytes(), family.width.tobytes(), pinned)


@cache
def _shape_of(
    index: bytes, width: bytes, offset: bytes, layout: Layout, k: int, d: int, n_params: int
) -> launch.Shape:
    n_channels = len(width) // 8
    arrays = (np.frombuffer(a, dtype=np.int64).copy() for a in (index, width, offset))
    table, widths, offsets = arrays
    return launch.Shape(table.reshape(k, n_channels), widths, offsets, layout, d, n_params)


def kernels_of(family: Family) -> Any:
    """The kernels of a family: those of its mixture, or of its regression function."""
    gate = family.gate
    expert = family.expert.block
    likelihood = family.likelihood.block
    if likelihood is None:
        return launch.build_regression(gate.block, expert, gate.normalised)
    sparse = gate.n_active is not None
    return launch.build_mixture(gate.block, expert, likelihood, gate.reads_response, sparse)


def shape_of(family: Family) -> launch.Shape:
    """The sizes of a family, on the device once for all families that share them."""
    return _shape_of(
        family.index.tobytes(),
        family.width.tobytes(),
        family.offset.tobytes(),
        family.layout,
        family.n_experts,
        family.n_features,
        family.n_params,
    )
