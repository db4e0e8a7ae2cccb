"""Routing noise by counters: a function of (seed, step, sample, expert) and of nothing else.

So the noise of a run does not depend on the order of the samples, on threads or on workers, and
runs with the same seed share it.  The words are those of SplitMix64 (Steele, Lea and Flood,
2014), whose state is a counter times an odd constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moestat.base.door import door
from moestat.base.memory import check_room
from moestat.base.validate import positive_int, short
from moestat.compiler.jit import compile_loop, device

__all__ = ["fill_counters", "resolution", "step_key", "uniform_noise", "word"]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_FACTOR, _SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 0xFFFFFFFFFFFFFFFF

# Compiled code mixes signed and unsigned words into floats, so every constant is unsigned.
_STEP = np.uint64(_GOLDEN)
_FIRST, _SECOND = np.uint64(_FIRST_FACTOR), np.uint64(_SECOND_FACTOR)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


def _mixed(z: int) -> int:
    """The output function of SplitMix64, in Python's integers."""
    z = (z ^ (z >> 30)) * _FIRST_FACTOR & _MASK
    z = (z ^ (z >> 27)) * _SECOND_FACTOR & _MASK
    return z ^ (z >> 31)


def step_key(seed: int, step: int) -> np.uint64:
    """Where the counter of a training step begins.

    Examples
    --------
    >>> int(step_key(0, 0)) == int(step_key(0, 1)), int(step_key(3, 1)) == int(step_key(1, 3))
    (False, False)
    """
    return np.uint64(_mixed((_mixed(seed & _MASK) + (step + 1) * _GOLDEN) & _MASK))


def resolution(dtype: Any) -> tuple[np.uint64, Any]:
    """Bits of a word to drop, and the unit of the rest: noise of all bits that the type holds."""
    bits = np.finfo(dtype).nmant + 1
    return np.uint64(64 - bits), np.dtype(dtype).type(2.0**-bits)


@device
def fill_counters(key, order, counters):
    """Counter of the first expert for each sample."""
    for s in range(len(counters)):
        counters[s] = key + (np.uint64(order[s]) << _32) * _STEP


@device
def word(counter, offset, shift):
    """A whole number, uniform over all of its bits, from a sample's counter and an expert's."""
    z = counter + offset * _STEP
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    z = z ^ (z >> _31)
    return np.int64(z >> shift)


@compile_loop
def _fill(key, order, counters, shift, unit, noise):
    fill_counters(key, order, counters)
    for m in range(noise.shape[0]):
        for s in range(noise.shape[1]):
            noise[m, s] = unit * noise.dtype.type(word(counters[s], np.uint64(m), shift))


@door()
def uniform_noise(
    seed: int, step: int, n_samples: int, n_experts: int, dtype: DTypeLike = np.float64
) -> NDArray[np.floating]:
    """The noise r of a training step, uniform on [0, 1).

    Parameters
    ----------
    seed, step : int
        Seed of the run and number of the step, from 0.
    n_samples, n_experts : int
        Sizes; noise of other sizes agrees where they overlap.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    ndarray of shape (n_experts, n_samples)
        The noise.

    Examples
    --------
    >>> r = uniform_noise(seed=1, step=0, n_samples=4, n_experts=3)
    >>> r.shape, bool((r[:2, :3] == uniform_noise(1, 0, 3, 2)).all())
    ((3, 4), True)
    """
    for name, value in (("seed", seed), ("step", step)):
        positive_int(name, value, 0, None)
    n_samples = positive_int("n_samples", n_samples, maximum=2**32)
    n_experts = positive_int("n_experts", n_experts)
    try:
        known = np.dtype(dtype) in (np.float32, np.float64)
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(f"dtype must be float32 or float64, got {short(dtype)}")
    check_room(8 * n_experts * n_samples, f"n_experts x n_samples = {n_experts} x {n_samples}")
    noise = np.empty((n_experts, n_samples), dtype)
    counters = np.empty(n_samples, np.uint64)
    _fill(step_key(seed, step), np.arange(n_samples), counters, *resolution(dtype), noise)
    return noise
