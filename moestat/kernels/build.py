"""The factory of compiled loops: one set per gate, expert and likelihood, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import types

from moestat.base.types import Encoded, FloatArray
from moestat.compiler.pointers import address_of, call_by_address
from moestat.kernels.atom import build_atom
from moestat.kernels.cpu import NO_ATOM, atom_loop, mixture, response_loop
from moestat.kernels.records import NO_SUMS, BySample, Coefficients, Data, Pass, Sums, numbers_of
from moestat.kernels.regression import NO_FUNCTION, forward_loop
from moestat.kernels.terms import build_terms
from moestat.kernels.views import records_at

_NO_ROW, _NO_ROWS = np.empty(0), np.empty((0, 0))
_NOT_BY_SAMPLE = _NO_ROWS, _NO_ROWS, _NO_ROW
_NO_SUMS = tuple(NO_SUMS)
_NO_TERMS = build_terms(1, (), 0, 0, 1, complete=False, order=0)
_NO_COEFFICIENTS = np.empty((0, 0), np.int64), np.empty(0, np.int64), (0, 0, 0, 0)
_NO_DATA = _NO_ROWS, _NO_ROW, _NO_ROW, _NO_ROWS
NO_SAMPLES = ((0, 0), _NO_COEFFICIENTS, _NO_DATA, _NOT_BY_SAMPLE, _NO_TERMS), _NO_ROW, 1, _NO_SUMS
"""Arguments of `mixture`, for their kinds."""


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops of one kind of atom, each compiled when first called.

    There is one object of each kind, which `build_loops` returns: equal ones are the same.
    """

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

    @cached_property
    def _atom(self) -> tuple[Callable[..., None], Callable[..., int]]:
        if self.likelihood is None:
            raise ValueError("a family that is fitted by least squares has no density")
        return build_atom(self.gate, self.expert, self.likelihood, self.reads_response)

    @cached_property
    def _atoms(self) -> dict[np.dtype[Any], tuple[int, Callable[..., None]]]:
        """The loop of one atom, which must live as long as its address, by the kind of response."""
        return {}

    def atom_loop(self, kind: np.dtype[Any]) -> Callable[..., None]:
        """The loop of one atom that `mixture` calls, for responses of a kind."""
        return atom_loop(*self._atom, records_at(kind))

    def inputs(
        self, coefficients: Coefficients, data: Data, order: int, by_sample: BySample | None = None
    ) -> Pass:
        """What `mixture` reads besides theta, for sums up to an order or for outputs by sample."""
        index, width, layout = coefficients
        X, y, weight, tau = data
        if y.dtype not in self._atoms:
            loop = self.atom_loop(y.dtype)
            self._atoms[y.dtype] = address_of(loop, *NO_ATOM), loop
        code = self._atoms[y.dtype][0], self._atom[1](width.size, layout[2])
        numbers = X, numbers_of(y), weight, tau
        if by_sample is not None:
            prior, posterior, log_density = by_sample
            outputs = prior, posterior, log_density
            return code, (index, width, layout), numbers, outputs, _NO_TERMS
        widths = tuple(width.tolist())
        terms = build_terms(
            len(index), widths, layout[0], layout[1], len(X), tau.shape[1] > 0, order
        )
        return code, (index, width, layout), numbers, _NOT_BY_SAMPLE, terms

    def log_likelihood(
        self, theta: FloatArray, coefficients: Coefficients, data: Data, order: int, sums: Sums
    ) -> float:
        """Value of the log-likelihood; its score and Hessian are written up to the order.

        It is that of the observed data, or of the complete ones where responsibilities are given.
        From order 3 on the sum of the outer products of the scores is written, too.
        """
        return mixture(self.inputs(coefficients, data, order), theta, order, tuple(sums))

    def by_sample(
        self,
        theta: FloatArray,
        coefficients: Coefficients,
        X: FloatArray,
        y: Encoded,
        out: BySample,
    ) -> None:
        """Write gate probabilities, responsibilities and log-density of each sample."""
        data = Data(X, y, _NO_ROW, _NO_ROWS)
        mixture(self.inputs(coefficients, data, 0, out), theta, 0, _NO_SUMS)

    @cached_property
    def response(self) -> Callable[..., None]:
        """Mean of each expert that is not linear, from its channels."""
        assert self.expert is not None
        return response_loop(self.expert)

    @cached_property
    def forward(self) -> Callable[..., None]:
        """The regression function at a block of samples, which compiled loops call by address."""
        return forward_loop(self.gate, self.expert, self.normalised)

    @cached_property
    def regression(self) -> tuple[int, bool]:
        """What the loops of `moestat.kernels.regression` know of this kind of atom.

        It is the address of `forward`, and whether the gate's weights are divided by their sum.
        """
        return address_of(self.forward, *NO_FUNCTION), self.normalised


call_mixture = call_by_address(types.float64)
"""`mixture`, called by a compiled loop, which may pass named tuples: the code is the same."""


@cache
def mixture_address() -> int:
    """Address of the machine code of `mixture`."""
    return address_of(mixture, *NO_SAMPLES)


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
