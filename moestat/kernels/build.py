"""The factory of compiled loops: one set per gate, expert and likelihood, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from moestat.kernels.atom import build_atom
from moestat.kernels.cpu import derivative_loop, response_loop, rowwise_loop
from moestat.kernels.regression import descent_loop, residual_loop

__all__ = ["Loops", "build_loops"]


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
    def observed(self) -> Any:
        """Value, score and Hessian of the observed-data log-likelihood."""
        return derivative_loop(*self._atom, self.sparse, complete=False)

    @cached_property
    def complete(self) -> Any:
        """Value, score and Hessian of the complete-data log-likelihood."""
        return derivative_loop(*self._atom, self.sparse, complete=True)

    @cached_property
    def rowwise(self) -> Any:
        """Gate probabilities, responsibilities and log-density of each sample."""
        return rowwise_loop(*self._atom, self.sparse)

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
