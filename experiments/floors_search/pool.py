"""Independent starts around a truth for fits whose atoms merge, in four kinds of configurations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from moestat.base.types import FloatArray, IntArray

__all__ = ["KINDS", "draw_start"]

KINDS = ("around", "split", "gauss-hermite", "merged")
_NOISES = (0.03, 0.1, 0.3, 1.0)
_SPREAD = (-1.0, 0.5)
"""Decades over which the distance of split atoms varies, about n^(-1/(4 m))."""
_LEAST = 0.1
"""Least share of a split atom in its cell, before the box."""
_SHAKEN = 0.1
"""Noise on every parameter, as a part of the distance of split atoms: symmetry is a saddle."""


def draw_start(
    truth: Mapping[str, FloatArray], k: int, n: float, kind: str, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Blocks of k lines under a softmax gate near true ones, at the truth's density or close to it.

    True atoms are shared out at random with no Voronoi cell empty.  The m atoms of a cell are
    around the true one at a distance of .03 to 1 (``around``), on both sides of it with its mean
    and variance kept (``split``), at the nodes of Gauss-Hermite quadrature with 2 m - 1 moments
    kept (``gauss-hermite``), or on it with their variances apart (``merged``).

    Parameters
    ----------
    truth : mapping of str to ndarray of shape (k*,)
        Blocks beta0, beta1, a, b and nu.
    k : int
        Fitted atoms, at least k*.
    n : float
        Sample size, which sets the distance of atoms that split: about n^(-1/(4 m)).
    kind : str
        One of `KINDS`.
    rng : numpy.random.Generator
        Draws it.

    Returns
    -------
    dict of str to ndarray of shape (k,)
        The blocks, last log-mass and gate slope 0; they may lie outside the box.

    Examples
    --------
    >>> line = {"beta0": [0.0], "beta1": [0.0], "a": [1.0], "b": [0.5], "nu": [0.25]}
    >>> truth = {name: np.array(value) for name, value in line.items()}
    >>> start = draw_start(truth, 3, 1e10, "gauss-hermite", np.random.default_rng(0))
    >>> masses = np.exp(start["beta0"]) / np.exp(start["beta0"]).sum()
    >>> bool(abs(masses @ start["b"] - 0.5) < 0.1)
    True
    """
    many = len(truth["b"])
    cells = rng.permutation(np.append(np.arange(many), rng.integers(many, size=k - many)))
    blocks = {name: np.array(value, dtype=float)[cells] for name, value in truth.items()}
    blocks["beta0"] -= np.log(np.bincount(cells)[cells])
    shaken = np.full(k, _NOISES[rng.integers(len(_NOISES))])
    if kind != "around":
        for each in range(many):
            own = np.flatnonzero(cells == each)
            apart = n ** (-0.25 / own.size) * 10.0 ** rng.uniform(*_SPREAD)
            _place(blocks, own, apart, kind, rng)
            shaken[own] = _SHAKEN * apart
    for name, values in blocks.items():
        noise = shaken * rng.standard_normal(k)
        blocks[name] = values * np.exp(noise) if name == "nu" else values + noise
    for name in ("beta0", "beta1"):
        blocks[name] -= blocks[name][-1]
    return blocks


def _place(
    blocks: dict[str, FloatArray],
    own: IntArray,
    apart: float,
    kind: str,
    rng: np.random.Generator,
) -> None:
    """Part the atoms of one cell, in place."""
    if own.size == 1:
        return
    if kind == "merged":
        blocks["nu"][own] *= np.exp(apart * rng.standard_normal(own.size))
        return
    if kind == "split":
        weights = _LEAST + (1.0 - _LEAST * own.size) * rng.dirichlet(np.ones(own.size))
        nodes = rng.standard_normal(own.size)
        nodes -= weights @ nodes
        nodes /= np.sqrt(weights @ nodes**2)
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(own.size)
        weights = weights / weights.sum()
    blocks["beta0"][own] += np.log(own.size * weights)
    blocks["b"][own] += apart * nodes
    blocks["nu"][own] = np.maximum(blocks["nu"][own] - apart**2, 0.1 * blocks["nu"][own])
