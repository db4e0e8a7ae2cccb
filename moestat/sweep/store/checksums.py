"""Checksums of rows: one product with fixed keys for many rows of one length at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

WORD = 4


def checksums(rows: Sequence[bytes]) -> NDArray[np.uint64]:
    """Checksums of byte strings of one length, a multiple of 4: uint64 of shape (N,).

    ``k_0 L + sum_i k_i w_i`` modulo 2^64, with the L words w_i of 32 bits and odd keys k_i of 64
    bits: a change of one word always changes it, and any other change does unless the keys, which
    know nothing of the rows, happen to agree with it.

    Source: multilinear hashing, Carter and Wegman (1979); Lemire and Kaser (2014).
    """
    return checksums_of(np.frombuffer(b"".join(rows), "<u4").reshape(len(rows), -1))


def checksums_of(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Checksums of the rows of an array of words (N, L), uint64 of shape (N,)."""
    keys = _keys(words.shape[1])
    of_length = keys[:1] * np.uint64(WORD * words.shape[1])
    return np.einsum("ij,j->i", words.astype(np.uint64), keys[1:]) + of_length


def checksum(row: bytes) -> int:
    """Checksum of one byte string whose length is a multiple of 4."""
    return int(checksums([row])[0])


@lru_cache(maxsize=4096)
def _keys(words: int) -> NDArray[np.uint64]:
    """The first keys, the same for every store."""
    keys = np.frombuffer(hashlib.shake_256(b"checksums").digest(8 * (words + 1)), "<u8")
    return np.bitwise_or(keys, np.uint64(1))
