"""Clustered patches: the distribution of Definition 1 of expert-count, and samples of it.

Source: Duy et al. (n.d.), Definition 1, after Chen et al. (2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moestat.base.door import doors
from moestat.base.memory import check_room
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import (
    as_generator,
    as_plain_array,
    check_kind,
    positive_int,
    real_in,
    short,
)

__all__ = ["PatchData", "PatchLaw"]

STRUCTURED = 3
"""Patches with a signal: the label's, the cluster's centre and the distractor."""


@doors
@dataclass(frozen=True)
class PatchLaw:
    """The distribution of labelled inputs of P patches in K clusters.

    A pair of clusters k, k' with k != k' is uniform, the label y and a sign e are +-1 with equal
    probability.  In random order, one patch is ``y alpha v_k``, one ``beta c_k``, one
    ``e gamma v_k'``, and P - 3 are N(0, sigma_p^2 / d I).  The example belongs to cluster k.

    The orthonormal vectors are the first 2 K of the standard basis, v_k = e_k and
    c_k = e_(K + k): Gaussian noise and Gaussian initial weights have no preferred directions, so
    any other basis gives the same distribution of everything that is trained.

    Parameters
    ----------
    n_clusters : int
        Clusters K >= 2.
    n_features : int
        Dimension d >= 2 K of a patch.
    n_patches : int
        Patches P >= 3 of an input.
    alpha, beta, gamma : (float, float)
        Ends of the uniform distributions of the amplitudes, 0 < low <= high.
    sigma_p : float
        Scale of the noise patches, >= 0.
    scale : float
        Factor of all patches, > 0.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Duy et al. (n.d.), Definition 1; the defaults are those of its experiments with P = 4.

    Examples
    --------
    >>> data = PatchLaw().sample(1000, rng=0)
    >>> data.dense.shape, sorted(set(data.label.tolist()))
    ((1000, 4, 50), [-1, 1])
    """

    n_clusters: int = 4
    n_features: int = 50
    n_patches: int = 4
    alpha: tuple[float, float] = (0.5, 2.0)
    beta: tuple[float, float] = (1.0, 2.0)
    gamma: tuple[float, float] = (0.5, 3.0)
    sigma_p: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive_int("n_clusters", self.n_clusters, 2)
        positive_int("n_patches", self.n_patches, STRUCTURED)
        positive_int("n_features", self.n_features)
        if self.n_features < 2 * self.n_clusters:
            raise ValueError(
                f"n_features must be at least 2 n_clusters = {2 * self.n_clusters}, so that there"
                f" are as many orthogonal signals, got {self.n_features}"
            )
        for name in ("alpha", "beta", "gamma"):
            object.__setattr__(self, name, _interval(name, getattr(self, name)))
        real_in("sigma_p", self.sigma_p, 0.0)
        real_in("scale", self.scale, 0.0, open_low=True)

    def sample(self, n: int, rng: Seed = None) -> PatchData:
        """Independent examples.

        Parameters
        ----------
        n : int
            Number of examples.
        rng : Generator, int or None
            Source of randomness.

        Returns
        -------
        PatchData
            The examples.

        Raises
        ------
        ValueError
            If `n` is no positive integer.
        """
        n = positive_int("n", n, maximum=None)
        size = 8 * n * self.n_patches * (self.n_features + 1)
        check_room(size, f"n = {n:,} examples of {self.n_patches} x {self.n_features} numbers")
        rng = as_generator(rng)
        K, d, P = self.n_clusters, self.n_features, self.n_patches
        cluster = rng.integers(K, size=n)
        other = (cluster + rng.integers(1, K, size=n)) % K
        label = 2 * rng.integers(2, size=n) - 1
        sign = 2 * rng.integers(2, size=n) - 1
        alpha, beta, gamma = (
            rng.uniform(low, high, n) for low, high in (self.alpha, self.beta, self.gamma)
        )
        places = np.argsort(rng.random((n, P)), axis=1)
        noise = rng.standard_normal((n, P - STRUCTURED, d))
        noise *= self.scale * self.sigma_p / np.sqrt(d)
        return PatchData(
            law=self,
            label=label,
            cluster=cluster,
            position=places[:, :STRUCTURED],
            basis=np.stack([cluster, K + cluster, other], axis=1),
            amplitude=self.scale * np.stack([label * alpha, beta, sign * gamma], axis=1),
            noise_position=np.sort(places[:, STRUCTURED:], axis=1),
            noise=noise,
        )


@doors
@dataclass(frozen=True)
class PatchData:
    """Examples of a `PatchLaw`, each structured patch by its one nonzero coordinate.

    Parameters
    ----------
    law : PatchLaw
        The distribution.
    label : ndarray of shape (n,)
        y, -1 or 1.
    cluster : ndarray of shape (n,)
        k, from 0.
    position, basis : ndarray of shape (n, 3)
        Patch number and nonzero coordinate of the signal, the centre and the distractor.
    amplitude : ndarray of shape (n, 3)
        That coordinate's value, in units of the input.
    noise_position : ndarray of shape (n, P - 3)
        Patch numbers of the noise patches, increasing.
    noise : ndarray of shape (n, P - 3, d)
        The noise patches.

    Raises
    ------
    ValueError
        If an array does not fit the distribution: compiled loops trust these numbers.
    """

    law: PatchLaw
    label: IntArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    position: IntArray = field(repr=False)
    basis: IntArray = field(repr=False)
    amplitude: FloatArray = field(repr=False)
    noise_position: IntArray = field(repr=False)
    noise: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        check_kind("law", self.law, PatchLaw, "a PatchLaw")
        d, P, n = self.law.n_features, self.law.n_patches, np.size(self.label)
        noisy = P - STRUCTURED
        for name, shape, ends in (
            ("label", (n,), (-1, 1)),
            ("cluster", (n,), (0, self.law.n_clusters - 1)),
            ("position", (n, STRUCTURED), (0, P - 1)),
            ("basis", (n, STRUCTURED), (0, d - 1)),
            ("noise_position", (n, noisy), (0, P - 1)),
        ):
            object.__setattr__(self, name, _integers(name, getattr(self, name), shape, *ends))
        for name, shape in (("amplitude", (n, STRUCTURED)), ("noise", (n, noisy, d))):
            object.__setattr__(self, name, _finite(name, getattr(self, name), shape))
        if not n:
            raise ValueError("label must hold at least one example, got none")
        if not self.label.all():
            raise ValueError("label must be -1 or 1, got 0")
        places = np.sort(np.concatenate([self.position, self.noise_position], axis=1), axis=1)
        if (places != np.arange(P)).any():
            raise ValueError(
                f"position and noise_position must hold each of the {P} patches once in every row"
            )

    @property
    def size(self) -> int:
        """Number of examples n."""
        return len(self.label)

    @property
    def dense(self) -> NDArray[np.float64]:
        """The patches as an array (n, P, d), made anew at every call."""
        x = np.zeros((self.size, self.law.n_patches, self.law.n_features))
        row = np.arange(self.size)[:, None]
        x[row, self.position, self.basis] = self.amplitude
        x[row, self.noise_position] = self.noise
        return x


def _shaped(name: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    array = as_plain_array(name, value)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def _integers(name: str, value: object, shape: tuple[int, ...], low: int, high: int) -> IntArray:
    array = _shaped(name, value, shape)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, got {short(array)}")
    if array.size and not low <= array.min() <= array.max() <= high:
        raise ValueError(f"{name} must lie in {low}..{high}, got {array.min()} to {array.max()}")
    return array.astype(np.int64, copy=False)


def _finite(name: str, value: object, shape: tuple[int, ...]) -> FloatArray:
    array = _shaped(name, value, shape)
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, got {short(array)}")
    # A plain array: loops are compiled for no other, and a file may change below them.
    return np.asarray(array, dtype=np.float64).view(np.ndarray)


def _interval(name: str, value: object) -> tuple[float, float]:
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(pair) != 2:
        raise ValueError(f"{name} must be a pair (low, high), got {short(value)}")
    low, high = (real_in(name, end, 0.0, open_low=True) for end in pair)
    if low > high:
        raise ValueError(f"{name} must be a pair (low, high) with low <= high, got {short(value)}")
    return low, high
