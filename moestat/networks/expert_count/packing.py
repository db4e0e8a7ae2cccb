"""Packed samples: a `PatchData` in the order and precision that the row programmes read.

Samples whose noise patches lie at the same positions stand together, in blocks of at most
`BLOCK`; the last vector of a block is filled up with empty samples of label 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moestat.networks.expert_count.data import PatchData

__all__ = ["BLOCK", "Packed", "pack"]

BLOCK = 320
"""Samples per block at most: its noise patches stay in the second cache level."""

_LANES = 16
"""Samples per vector of the widest processors in float32."""


@dataclass(frozen=True)
class Packed:
    """Arrays over the packed samples (N of them), empty ones included."""

    order: NDArray[np.int64]
    """Number (N,) of each sample in the data; 0 for empty ones."""
    bounds: NDArray[np.int64]
    """First sample of each block, and N: (B + 1,)."""
    columns: NDArray[np.floating]
    """Noise patches (N (P - 3) d,) block by block, each as (P - 3, d, width): for the router."""
    rows: NDArray[np.floating]
    """Noise patches (N, P - 3, d) sample by sample: for the experts."""
    slots: NDArray[np.int64]
    """Positions (N, P - 3) of the noise patches."""
    position: NDArray[np.int64]
    basis: NDArray[np.int64]
    amplitude: NDArray[np.floating]
    """Structured patches (3, N), as in the data."""
    label: NDArray[np.floating]
    """-1, 1, or 0 for empty samples, (N,)."""


def pack(data: PatchData, dtype: DTypeLike) -> Packed:
    """The samples of `data` for row programmes, in float32 or float64."""
    filled, bounds = _arrange(data.noise_position)
    real = filled >= 0
    order = np.where(real, filled, 0)

    def gather(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
        gathered = values[order].astype(dtype)
        gathered[~real] = 0
        return gathered

    rows = gather(data.noise, dtype)
    columns = [rows[start:stop].transpose(1, 2, 0).ravel() for start, stop in pairwise(bounds)]
    return Packed(
        order=order,
        bounds=bounds,
        columns=np.concatenate(columns),
        rows=rows,
        slots=data.noise_position[order],
        position=np.ascontiguousarray(gather(data.position, np.int64).T),
        basis=np.ascontiguousarray(gather(data.basis, np.int64).T),
        amplitude=np.ascontiguousarray(gather(data.amplitude, dtype).T),
        label=gather(data.label, dtype),
    )


def _arrange(slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Samples by the positions of their noise, -1 for empty ones, and bounds of the blocks."""
    if slots.shape[1]:
        _, pattern = np.unique(slots, axis=0, return_inverse=True)
    else:
        pattern = np.zeros(len(slots), np.int64)
    order = np.argsort(pattern, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(pattern[order])) + 1)
    parts = [part for group in groups for part in np.array_split(group, -(-len(group) // BLOCK))]
    filled = [np.pad(part, (0, -len(part) % _LANES), constant_values=-1) for part in parts]
    return np.concatenate(filled), np.cumsum([0, *map(len, filled)])
