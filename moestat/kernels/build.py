"""The factory of compiled loops: one set per gate, expert and likelihood, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from moestat.kernels.atom import build_atom
from moestat.kernels.cpu import mixture_loop, response_loop
from moestat.kernels.regression import channel_loop, descent_loop, residual_loop
from moestat.kernels.terms import build_terms

__all__ = ["Loops", "build_loops"]

_NO_ROW, _NO_ROWS = np.empty(0), np.empty((0, 0))
_NO_TERMS = build_terms(1, (), 0, 0, 1, complete=False, order=0)


@dataclass(frozen=True)
class Loops:
    """The loops of one kind of atom, each compiled when first called.

    Parameters
    ----------
    gate : callable
        Block function of the gate.
    expert : callable or None
        Block function of a mean that is not linear in the parameters.
    likelihood : callable or None
        Block function of the likelihood; None for a regression function.
    reads_response : bool
        Whether the gate reads that mean.
    sparse : bool
        Whether only some atoms take part at each x.
    normalised : bool
        Whether the gate's weights are divided by their sum.
    """

    gate: Callable[..., None]
    expert: Callable[..., None] | None
    likelihood: Callable[..., None] | None
    reads_response: bool
    sparse: bool
    normalised: bool = True

    @property
    def _atom(self) -> tuple[Callable[..., None], Callable[..., int]]:
        if self.likelihood is None:
            raise ValueError("a family that is fitted by least squares has no density")
        return build_atom(self.gate, self.expert, self.likelihood, self.reads_response)

    @cached_property
    def mixture(self) -> Any:
        """The loop behind `observed`, `complete` and `rowwise`; see `mixture_loop`."""
        return mixture_loop(*self._atom, self.sparse, self.reads_response)

    def observed(self, *arguments: Any) -> float:
        """Value, score and Hessian of the observed-data log-likelihood.

        Called with (theta, index, width, layout, X, y, weight, tau, order, score, hessian).
        """
        *data, _, order, score, hessian = arguments
        return self._summed(*data, _NO_ROWS, order, score, hessian, _NO_ROWS)

    def informed(self, *arguments: Any) -> float:
        """As `observed`, with the sum of the outer products of the scores.

        Called with (theta, index, width, layout, X, y, weight, score, hessian, information).
        """
        *data, score, hessian, information = arguments
        return self._summed(*data, _NO_ROWS, 3, score, hessian, information)

    def complete(self, *arguments: Any) -> float:
        """Value, score and Hessian of the complete-data log-likelihood for given tau (k, n).

        Called as `observed`.
        """
        return self._summed(*arguments, _NO_ROWS)

    def _summed(self, *arguments: Any) -> float:
        _, index, width, layout, X, _, _, tau, order, *_ = arguments
        terms = build_terms(
            len(index), tuple(width.tolist()), layout[0], layout[1], len(X), tau.shape[1] > 0, order
        )
        return self.mixture(*arguments, _NO_ROWS, _NO_ROWS, _NO_ROW, *terms)

    def rowwise(self, *arguments: Any) -> None:
        """Gate probabilities, responsibilities and log-density of each sample.

        Called with (theta, index, width, layout, X, y, prior, posterior, log_density).
        """
        *data, prior, posterior, log_density = arguments
        none = _NO_ROW, _NO_ROWS, 0, _NO_ROW, _NO_ROWS, _NO_ROWS
        self.mixture(*data, *none, prior, posterior, log_density, *_NO_TERMS)

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
