"""Launches: a batch of evaluations of one kind of atom, from parameters to values and derivatives.

Everything here is private to the device target; shapes are checked where families are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.identity import identity
from moestat.kernels.atom import Layout, build_atom
from moestat.kernels.cuda import mixture, regression
from moestat.kernels.cuda.assembly import assemble
from moestat.kernels.cuda.target import SIMULATED, cuda
from moestat.kernels.cuda.translate import kernel, start_kernel
from moestat.kernels.regression import forward_function
from moestat.kernels.rows import select_top

OBSERVED, COMPLETE, EXPECTATION = range(3)
_TILES = (128, 64, 32, 16, 8)
_SHARED_BYTES = 48 * 1024  # what every device gives a block without being asked
WORKSPACE_BYTES = 1 << 29
"""Partial sums or Jacobians of one launch; larger batches are split into several."""

_CHUNK = 4096  # samples per block of a Jacobian: sums do not depend on the memory there is
_SUM_THREADS = 128
_MOST_PROBLEMS = 65_535  # of a grid's second dimension


class Answers(NamedTuple):
    """Values (B,), and as far as the order goes scores (B, P) and Hessians (B, P, P).

    From order 3 on there are the sums of the outer products of the scores, too (B, P, P).
    """

    value: FloatArray
    score: FloatArray
    hessian: FloatArray
    information: FloatArray = np.empty((0, 0, 0))


@dataclass(frozen=True)
class Shape:
    """The sizes of a family: k atoms, C channels, d inputs and P parameters.

    `index` (k, C), `width` and `offset` (C,) are those of `moestat.model.family.Family`.
    """

    index: IntArray
    width: IntArray
    offset: IntArray
    layout: Layout
    d: int
    n_params: int

    @property
    def k(self) -> int:
        """Number of atoms."""
        return self.index.shape[0]

    @property
    def n_phi(self) -> int:
        """Features that any channel reads, at least 1 and the inputs."""
        return max(1 + self.d, int(np.max(self.offset + self.width)) - 1)

    @cached_property
    def on_device(self) -> tuple[Any, Any, Any]:
        """`index`, `width` and `offset` on the device."""
        return tuple(map(cuda.to_device, (self.index, self.width, self.offset)))


class DeviceBatch(NamedTuple):
    """Data sets on the device, as the kernels read them.

    ``data[data_at[i]:]`` holds X (d, n), y (n,) and weight (n,) of problem i with n = size[i], and
    ``tau[tau_at[i]:]`` its responsibilities (k, n).  `data` and `tau` are device arrays.
    """

    data: Any
    data_at: IntArray
    size: IntArray
    tau: Any
    tau_at: IntArray

    def part(self, which: slice) -> DeviceBatch:
        """Some of the problems."""
        return DeviceBatch(
            self.data, self.data_at[which], self.size[which], self.tau, self.tau_at[which]
        )


def tile_for(n_rows: int) -> int:
    """Threads of a block whose columns of `n_rows` numbers fit a block's shared memory."""
    for tile in _TILES:
        if 8 * n_rows * (tile + 1) <= _SHARED_BYTES:
            return tile
    raise ValueError(
        f"the CUDA target keeps {n_rows} numbers per sample in shared memory, at most"
        f" {_SHARED_BYTES // (8 * (_TILES[-1] + 1))} fit: fit this family on the CPU"
    )


@cache
def _sum_kernel() -> Any:
    return kernel(mixture.sum_template, "all")


def _summed(counts: Any, partial: Any, n_problems: int) -> Any:
    """Sums (B, M) over the rows of `partial` (B, rows, M), on the device."""
    columns = partial.shape[2]
    out = cuda.device_array((n_problems, columns))
    grid = (-(-columns // _SUM_THREADS), n_problems)
    start_kernel(_sum_kernel(), grid, _SUM_THREADS, 0, counts, partial, out)
    return out


def _name_of(*parts: Any) -> str:
    """What tells kernels with other parts apart: identities of functions, and flags."""
    return " ".join(identity(part) if callable(part) else str(part) for part in parts)


class Mixture:
    """The kernel of one kind of atom, from what `moestat.kernels.build.Loops` is made of."""

    def __init__(
        self,
        gate: Callable[..., None],
        expert: Callable[..., None] | None,
        likelihood: Callable[..., None],
        reads_response: bool,
        sparse: bool,
    ) -> None:
        atom, self._n_work = build_atom(gate, expert, likelihood, reads_response)
        self._name = _name_of(gate, expert, likelihood, sparse)
        self._bound = {
            "atom": atom,
            "n_work": self._n_work,
            "choose": select_top if sparse else mixture.dense,
        }

    @cache  # noqa: B019 (there is one object per kind)
    def kernel(self, tile: int, informed: bool = False) -> Any:
        """The kernel for blocks of `tile` threads, with the information or without."""
        name = f"{self._name} {tile}{' informed' if informed else ''}"
        return kernel(mixture.mixture_template, name, TILE=tile, INFORMED=informed, **self._bound)

    def n_rows(self, shape: Shape) -> int:
        """Numbers per sample in shared memory."""
        n_gate, first, n_mean, _ = shape.layout
        n_channels = shape.width.size
        work = self._n_work(n_channels, n_mean)
        return mixture.row_starts(shape.k, shape.d, n_channels, n_gate, first, work)[-1]

    def evaluate(
        self, shape: Shape, theta: FloatArray, batch: DeviceBatch, order: int, objective: int
    ) -> Answers:
        """Values and derivatives at theta (B, P), or the E-step, which fills tau.

        The order is up to 3, the objective `OBSERVED`, `COMPLETE` or `EXPECTATION`.  A family that
        is too large for a block's shared memory is refused.
        """
        n_rows = self.n_rows(shape)
        tile = tile_for(n_rows)
        units = mixture.units_of(shape.k, shape.width, shape.d, order)
        n_problems, n_params = theta.shape
        value = np.empty(n_problems)
        score = np.empty((n_problems if order > 0 else 0, n_params))
        hessian = np.empty((n_problems if order > 1 else 0, n_params, n_params))
        information = np.empty((n_problems if order > 2 else 0, n_params, n_params))
        n_slices = max(1, tile // max(len(units), 1)) if order > 0 else 1
        runs = -(-int(batch.size.max()) // (mixture.TILES * tile))
        each = max(1, WORKSPACE_BYTES // (8 * runs * (1 + 3 * n_slices * len(units) * (order > 0))))
        index, width, _ = shape.on_device
        on_device_units = cuda.to_device(units)
        for begin in range(0, n_problems, min(each, _MOST_PROBLEMS)):
            which = slice(begin, min(begin + min(each, _MOST_PROBLEMS), n_problems))
            some, count = batch.part(which), which.stop - begin
            runs = -(-int(some.size.max()) // (mixture.TILES * tile))
            values = cuda.device_array((count, runs, 1))
            moments = cuda.device_array(
                (count, runs * n_slices if order > 0 else 1, 3 * len(units) if order > 0 else 1)
            )
            start_kernel(
                self.kernel(tile, order > 2),
                (runs, count),
                tile,
                8 * n_rows * (tile + 1),
                order,
                objective,
                cuda.to_device(np.ascontiguousarray(theta[which])),
                index,
                width,
                *shape.layout,
                shape.d,
                some.data,
                cuda.to_device(some.data_at),
                cuda.to_device(some.size),
                some.tau,
                cuda.to_device(some.tau_at),
                on_device_units,
                values,
                moments,
            )
            counts = -(-some.size // (mixture.TILES * tile))
            value[which] = _summed(cuda.to_device(counts), values, count).copy_to_host()[:, 0]
            if order > 0:
                sums = _summed(cuda.to_device(counts * n_slices), moments, count).copy_to_host()
                assemble(
                    units,
                    sums.reshape(count, -1, 3),
                    shape.index,
                    shape.width,
                    shape.d,
                    score[which],
                    hessian[which],
                    information[which],
                )
        return Answers(value, score, hessian, information)


@cache
def build_mixture(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None],
    reads_response: bool,
    sparse: bool,
) -> Mixture:
    """The kernel of one kind of atom, the same object for the same arguments."""
    return Mixture(gate, expert, likelihood, reads_response, sparse)


class CublasGram:
    """Gram matrices by CuPy, that is by cuBLAS."""

    name = "cuBLAS"

    def __init__(self) -> None:
        self._cupy = import_module("cupy")

    def add(self, jacobian: Any, gram: Any) -> None:
        """Add ``J J'`` of each problem's rows (R, m) to its `gram` (R, R)."""
        rows, sums = self._cupy.asarray(jacobian), self._cupy.asarray(gram)
        # One product a problem: the algorithm must not depend on how many there are.
        for jacobian_rows, total in zip(rows, sums, strict=True):
            total += jacobian_rows @ jacobian_rows.T


class OwnGram:
    """Gram matrices by a kernel of our own."""

    name = "own kernel"

    def __init__(self) -> None:
        self._kernel = kernel(regression.gram_template, "all")

    def add(self, jacobian: Any, gram: Any) -> None:
        """Add ``J J'`` of each problem's rows (R, m) to its `gram` (R, R), the lower triangle."""
        tiles = -(-gram.shape[1] // regression.GRAM_TILE)
        block = (regression.GRAM_TILE, regression.GRAM_TILE)
        start_kernel(self._kernel, (tiles, tiles, gram.shape[0]), block, 0, jacobian, gram)


@cache
def best_gram() -> CublasGram | OwnGram:
    """CuBLAS where CuPy is there, else our own kernel."""
    if SIMULATED:
        return OwnGram()
    try:
        return CublasGram()
    except ImportError:
        return OwnGram()


class Regression:
    """The kernels of one kind of regression function, of block functions."""

    def __init__(
        self, gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
    ) -> None:
        self._normalised = normalised
        self._name = _name_of(gate, expert, normalised)
        self._forward = forward_function(gate, expert, normalised)

    @cache  # noqa: B019 (there is one object per kind)
    def kernel(self, tile: int) -> Any:
        """The kernel for blocks of `tile` threads."""
        return kernel(
            regression.residual_template,
            f"{self._name} {tile}",
            TILE=tile,
            forward=self._forward,
        )

    @staticmethod
    def n_rows(shape: Shape) -> int:
        """Numbers per sample in shared memory."""
        n_gate, _, n_mean, _ = shape.layout
        sizes = shape.k, shape.n_phi, shape.width.size, n_gate, n_mean
        return 1 + regression.working_rows(*sizes, 1)[-1]

    def evaluate(
        self, shape: Shape, rows: IntArray, theta: FloatArray, batch: DeviceBatch, order: int
    ) -> Answers:
        """Half the sums of squares at theta (B, P), with ``J'r`` and ``J'J`` for order 1.

        `rows` (P,) has the row of the Jacobian of each coefficient, -1 for pinned ones.
        """
        n_rows = self.n_rows(shape)
        tile = tile_for(n_rows)
        n_problems, n_params = theta.shape
        at = np.flatnonzero(rows >= 0)
        value = np.empty(n_problems)
        gradient = np.zeros((n_problems if order > 0 else 0, n_params))
        hessian = np.zeros((n_problems if order > 0 else 0, n_params, n_params))
        chunk = min(_CHUNK, int(batch.size.max())) if order > 0 else int(batch.size.max())
        wide = (at.size + 1) * (chunk + at.size + 1) if order > 0 else -(-chunk // tile)
        each = min(max(1, WORKSPACE_BYTES // (8 * wide)), _MOST_PROBLEMS)
        index, width, offset = shape.on_device
        on_device_rows = cuda.to_device(rows)
        for start in range(0, n_problems, each):
            which = slice(start, min(start + each, n_problems))
            some, count = batch.part(which), which.stop - start
            tiles = -(-chunk // tile)
            jacobian = cuda.device_array((count, at.size + 1, chunk) if order > 0 else (1, 1, 1))
            values = cuda.device_array((count, tiles, 1))
            arguments = (
                order,
                self._normalised,
                cuda.to_device(np.ascontiguousarray(theta[which])),
                index,
                width,
                offset,
                *shape.layout,
                shape.d,
                shape.n_phi,
                on_device_rows,
                some.data,
                cuda.to_device(some.data_at),
                cuda.to_device(some.size),
            )
            launch_shape = (self.kernel(tile), (tiles, count), tile, 8 * n_rows * (tile + 1))
            if order == 0:
                start_kernel(*launch_shape, *arguments, 0, jacobian, values)
                counts = cuda.to_device(np.full(count, tiles))
                value[which] = _summed(counts, values, count).copy_to_host()[:, 0]
                continue
            gram = cuda.to_device(np.zeros((count, at.size + 1, at.size + 1)))
            for begin in range(0, int(some.size.max()), chunk):
                start_kernel(*launch_shape, *arguments, begin, jacobian, values)
                best_gram().add(jacobian, gram)
            for i, sums in enumerate(gram.copy_to_host(), start):
                lower = np.tril(sums[:-1, :-1])
                value[i] = 0.5 * sums[-1, -1]
                gradient[i, at] = sums[-1, :-1]
                hessian[i][np.ix_(at, at)] = lower + np.tril(lower, -1).T
        return Answers(value, gradient, hessian)


@cache
def build_regression(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Regression:
    """The kernels of one kind of regression function, the same object for the same arguments."""
    return Regression(gate, expert, normalised)
