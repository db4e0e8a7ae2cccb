"""Measures with the truth's density and more atoms: what deviations are counted from.

Every measure near the truth, in a Voronoi loss, is near one of these.  A gate with free masses
shares the mass of a true atom among several copies; one with fixed masses can only copy every
atom equally often; a raw sigmoid gate shares ``sigma(c)`` among copies where its score is constant,
and the expert itself, gate and all, where the mean is linear or homogeneous in its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.family import Family


@dataclass(frozen=True)
class Reference:
    """A measure with k atoms and the truth's density or regression function."""

    name: str
    """How it represents the truth, such as ``cells 2 + 1``."""
    atoms: FloatArray
    """Own parameters (k, p) of each atom; a free mass is that of the true atom, undivided."""
    cells: IntArray
    """True atom (k,) that each atom belongs to."""
    share: FloatArray
    """Share (k,) of the true atom's mass."""
    free: bool
    """Whether shares and masses are parameters of their own."""

    @property
    def sizes(self) -> IntArray:
        """Atoms per cell."""
        return np.bincount(self.cells)


def cell_sizes(k: int, true_k: int) -> Iterator[tuple[int, ...]]:
    """All ways to put k atoms into true_k cells, none of them empty."""
    if true_k == 1:
        yield (k,)
        return
    for first in range(1, k - true_k + 2):
        for sizes in cell_sizes(k - first, true_k - 1):
            yield (first, *sizes)


def _offsets(family: Family) -> dict[str, IntArray]:
    """Positions of each block inside one atom; shared blocks are left out."""
    p = family.n_atom_params
    return {
        name: np.atleast_1d(at[0]).ravel()
        for name, at in family.blocks.items()
        if at.ndim > 0 and at.flat[0] < p
    }


def references(
    family: Family, truth: FloatArray, truth_family: Family, expert_splits: bool
) -> list[Reference]:
    """All kinds of measures of `family` that have the truth's density, up to their shares.

    `expert_splits` says whether a raw gate may share a true atom out through its expert.
    """
    k, true_k = family.n_experts, truth_family.n_experts
    atoms, _ = truth_family.split(truth)
    at = _offsets(family)
    free = family.gate.normalised and family.gate.mass is not None
    measures = []
    for sizes in cell_sizes(k, true_k):
        cells = np.repeat(np.arange(true_k), sizes)
        share = 1.0 / np.array(sizes, dtype=np.float64)[cells]
        copied = Reference(f"cells {' + '.join(map(str, sizes))}", atoms[cells], cells, share, free)
        if free or k == true_k or (family.gate.normalised and len(set(sizes)) == 1):
            measures.append(copied)
        elif not family.gate.normalised:
            measures += _raw(family, copied, at, expert_splits)
    return measures


def _raw(
    family: Family, copied: Reference, at: dict[str, IntArray], expert_splits: bool
) -> list[Reference]:
    """Ways in which copies under a raw gate add up to their atom: by the gate, by the expert."""
    assert family.gate.mass is not None
    mass = at[family.gate.mass]
    flat = [name for name in family.gate.bounds if name != family.gate.mass]
    several = copied.sizes[copied.cells] > 1
    out = []
    if all(np.all(copied.atoms[np.ix_(several, at[name])] == 0.0) for name in flat):
        shifted = copied.atoms.copy()
        part = copied.share[several, None] / (1.0 + np.exp(-shifted[np.ix_(several, mass)]))
        shifted[np.ix_(several, mass)] = np.log(part) - np.log1p(-part)
        out.append(replace(copied, atoms=shifted, free=False))
    symmetry = family.expert.symmetry
    blocks = symmetry.linear_in or symmetry.positive_in
    if expert_splits and blocks:
        shifted = copied.atoms.copy()
        for name in blocks:
            shifted[:, at[name]] *= copied.share[:, None]
        name = f"{copied.name}, experts split"
        out.append(replace(copied, name=name, atoms=shifted, free=False))
    return out
