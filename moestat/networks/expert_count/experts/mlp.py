"""MLP expert: weights of their own for every patch.

Source: Duy et al. (n.d.), New Architecture for MoE with MLP Experts.
"""

from __future__ import annotations

from moestat.compiler.jit import device
from moestat.networks.expert_count.experts.expert import PatchExpert


@device
def block(p):
    """Patch p has block p."""
    return p


EXPERT = PatchExpert(
    name="mlp",
    n_blocks=lambda n_patches: n_patches,
    block=block,
    source="Duy et al. (n.d.), New Architecture for MoE with MLP Experts",
)
