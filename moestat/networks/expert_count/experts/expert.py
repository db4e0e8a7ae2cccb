"""What an expert of a network is: which weights each patch meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PatchExpert"]


@dataclass(frozen=True)
class PatchExpert:
    """An expert ``f(x) = sum_j sum_p sigma(<w_(j, block(p)), x^(p)>)``.

    Parameters
    ----------
    name : str
        Name in the registry.
    n_blocks : callable
        ``n_blocks(P)``: number of blocks of weights for P patches.
    block : callable
        ``block(p)``: the block that patch p meets, for compiled loops.
    source : str
        Paper and equation.
    """

    name: str
    n_blocks: Callable[[int], int]
    block: Callable[[int], int]
    source: str
