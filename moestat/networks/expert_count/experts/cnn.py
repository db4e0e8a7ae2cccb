"""CNN expert: one set of weights for all patches.

Source: Chen et al. (2022), eq. (2.1); Duy et al. (n.d.), Numerical Experiments.
"""

from __future__ import annotations

from moestat.compiler.jit import device
from moestat.networks.expert_count.experts.expert import PatchExpert


@device
def block(p):
    """All patches share block 0."""
    return 0


EXPERT = PatchExpert(
    name="cnn",
    n_blocks=lambda n_patches: 1,
    block=block,
    source="Duy et al. (n.d.), Numerical Experiments",
)
