"""The factory of compiled loops: one set per gate, expert and likelihood, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from moestat.base.types import FloatArray
from moestat.compiler.pointers import address_of, call_by_address
from moestat.kernels.atom import build_atom
from moestat.kernels.cpu import mixture_loop, response_loop
from moestat.kernels.records import NO_SUMS, BySample, Coefficients, Data, Sums
from moestat.kernels.regression import channel_loop, descent_loop, residual_loop
from moestat.kernels.terms import build_terms

Terms = tuple[NDArray[np.int32], ...]

_NO_ROW, _NO_ROWS = np.empty(0), np.empty((0, 0))
_NOT_BY_SAMPLE = BySample(_NO_ROWS, _NO_ROWS, _NO_ROW)
_NO_TERMS = build_terms(1, (), 0, 0, 1, complete=False, order=0)


@dataclass(frozen=True)
class Loops:
    """The loops of one kind of atom, each compiled when first called."""

    gate: Callable[..., None]
    """Block function of the gate."""
    expert: Callable[..., None] | None
    """Block function of a mean that is not linear in the parameters."""
    likelihood: Callable[..., None] | None
    """Block function of the likelihood; None for a regression function."""
    reads_response: bool
    """Whether the gate reads that mean."""
    sparse: bool
    """Whether only some atoms take part at each x."""
    normalised: bool = True
    """Whether the gate's weights are divided by their sum."""

    @property
    def _atom(self) -> tuple[Callable[..., None], Callable[..., int]]:
        if self.likelihood is None:
            raise ValueError("a family that is fitted by least squares has no density")
        return build_atom(self.gate, self.expert, self.likelihood, self.reads_response)

    @cached_property
    def mixture(self) -> Any:
        """The loop behind `log_likelihood` and `by_sample`; see `mixture_loop`."""
        return mixture_loop(*self._atom, self.sparse, self.reads_response)

    def log_likelihood(
        self, theta: FloatArray, coefficients: Coefficients, data: Data, order: int, sums: Sums
    ) -> float:
        """Value of the log-likelihood; its score and Hessian are written up to the order.

        It is that of the observed data, or of the complete ones where responsibilities are given.
        From order 3 on the sum of the outer products of the scores is written, too.
        """
        return self.mixture(
            theta, coefficients, data, order, sums, *tables(coefficients, data, order)
        )

    def by_sample(
        self,
        theta: FloatArray,
        coefficients: Coefficients,
        X: FloatArray,
        y: Any,
        out: BySample,
    ) -> None:
        """Write gate probabilities, responsibilities and log-density of each sample."""
        data = Data(X, y, _NO_ROW, _NO_ROWS)
        self.mixture(theta, coefficients, data, 0, NO_SUMS, out, _NO_TERMS)

    @cached_property
    def response(self) -> Any:
        """Mean of each expert that is not linear, from its channels."""
        assert self.expert is not None
        return response_loop(self.expert)

    @cached_property
    def residuals(self) -> Any:
        """Regression function, weights of the atoms and Jacobian of a range of samples."""
        return residual_loop(self.gate, self.expert, self.normalised)

    @cached_property
    def channels(self) -> Any:
        """Derivatives of the regression function in the channels of its atoms."""
        return channel_loop(self.gate, self.expert, self.normalised)

    @cached_property
    def descent(self) -> Any:
        """One epoch of stochastic gradient descent on the mean squared residual."""
        return descent_loop(self.gate, self.expert, self.normalised)


def tables(coefficients: Coefficients, data: Data, order: int) -> tuple[BySample, Terms]:
    """What `Loops.mixture` takes last, for sums up to an order and nothing by sample."""
    index, width, layout = coefficients
    complete = data.tau.shape[1] > 0
    widths = tuple(width.tolist())
    terms = build_terms(len(index), widths, layout[0], layout[1], len(data.X), complete, order)
    return _NOT_BY_SAMPLE, terms


call_mixture = call_by_address(types.float64)
"""`Loops.mixture`, called by a compiled loop."""


@cache
def mixture_address(loops: Loops, kind: np.dtype[Any]) -> int:
    """Where `Loops.mixture` is, for responses of one kind of number and sums up to any order."""
    coefficients = Coefficients(np.empty((0, 0), np.int64), np.empty(0, np.int64), (0, 0, 0, 0))
    data = Data(_NO_ROWS, np.empty(0, kind), _NO_ROW, _NO_ROWS)
    passing = _NO_ROW, coefficients, data, 1, NO_SUMS, *tables(coefficients, data, 1)
    return address_of(loops.mixture, *passing)


@cache
def build_loops(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None] | None,
    reads_response: bool,
    sparse: bool,
    normalised: bool = True,
) -> Loops:
    """The loops of one kind of atom, the same object for the same arguments."""
    return Loops(gate, expert, likelihood, reads_response, sparse, normalised)
