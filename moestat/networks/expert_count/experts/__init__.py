"""Experts of networks, by the weights that each patch meets; new ones are registered here.

Sources: Duy et al. (n.d.), New Architecture for MoE with MLP Experts, and Numerical Experiments;
Chen et al. (2022), eq. (2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moestat.base.registry import Registry
from moestat.compiler.jit import device

__all__ = ["EXPERTS", "PatchExpert"]


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


@device
def own_block(p):
    """Patch p has block p."""
    return p


@device
def shared_block(p):
    """All patches share block 0."""
    return 0


EXPERTS: Registry[PatchExpert] = Registry("expert", "moestat.networks.experts")
EXPERTS.register(
    PatchExpert(
        name="mlp",
        n_blocks=lambda n_patches: n_patches,
        block=own_block,
        source="Duy et al. (n.d.), New Architecture for MoE with MLP Experts",
    )
)
EXPERTS.register(
    PatchExpert(
        name="cnn",
        n_blocks=lambda n_patches: 1,
        block=shared_block,
        source="Duy et al. (n.d.), Numerical Experiments",
    )
)


def __dir__() -> list[str]:
    return sorted(__all__)
