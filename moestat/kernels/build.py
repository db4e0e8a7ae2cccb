"""The factory of compiled loops: one set per gate and likelihood, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from moestat.kernels.cpu import derivative_loop, rowwise_loop

__all__ = ["Loops", "build_loops"]


@dataclass(frozen=True)
class Loops:
    """The loops of one gate and one likelihood, each compiled when first called.

    Parameters
    ----------
    gate, likelihood : callable
        Block functions of the two axes.
    """

    gate: Callable[..., None]
    likelihood: Callable[..., None]

    @cached_property
    def observed(self) -> Any:
        """Value, score and Hessian of the observed-data log-likelihood."""
        return derivative_loop(self.gate, self.likelihood, complete=False)

    @cached_property
    def complete(self) -> Any:
        """Value, score and Hessian of the complete-data log-likelihood."""
        return derivative_loop(self.gate, self.likelihood, complete=True)

    @cached_property
    def rowwise(self) -> Any:
        """Gate probabilities, responsibilities and log-density of each sample."""
        return rowwise_loop(self.gate, self.likelihood)


@cache
def build_loops(gate: Callable[..., None], likelihood: Callable[..., None]) -> Loops:
    """The loops of one gate and one likelihood, the same object for the same pair."""
    return Loops(gate, likelihood)
