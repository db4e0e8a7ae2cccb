"""What likelihoods share: responses checked and stored, and what follows from their law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray, IntArray, Law
from moestat.base.validate import as_floats, as_plain_array
from moestat.model.members import Likelihood, Units
from moestat.model.members import unchanged as decode
from moestat.model.reference import apart

__all__ = [
    "LEAST_PROBABILITY",
    "as_integers",
    "between",
    "columns_of",
    "counts",
    "decode",
    "draw_by_quantiles",
    "draws",
    "likelihood_of",
    "likelihood_of_classes",
    "likelihood_of_counts",
    "positive",
    "positive_likelihood",
    "real",
    "variances",
    "varied",
]

LEAST_PROBABILITY = 1e-300
"""Least probability of a success that scipy's distributions of counts are asked with: 1e8 times the
smallest number of float64, near which their functions overflow."""


def between(low: float, high: float, words: str) -> Callable[[ArrayLike, int], FloatArray]:
    """An ``encode`` of responses (n,) in the open interval (low, high), which `words` describe."""

    def encode(y: ArrayLike, n_classes: int) -> FloatArray:
        """Responses (n,), checked."""
        response = as_floats("y", y, (None,))
        invalid = response[(response <= low) | (response >= high)]
        if invalid.size:
            raise ValueError(f"y must hold {words}; got {invalid[0]:g}")
        return response

    return encode


def columns_of(y: Encoded) -> list[FloatArray]:
    """Encoded responses as numbers: (n,) of one, or of each of several."""
    return [np.real(y[name]) for name in y.dtype.names] if y.dtype.names else [np.real(y)]


def real(y: ArrayLike, n_classes: int) -> FloatArray:
    """Real responses (n,), checked."""
    return as_floats("y", y, (None,))


def counts(y: ArrayLike, n_classes: int) -> FloatArray:
    """Counts (n,), checked."""
    values = as_floats("y", y, (None,))
    invalid = values[(values < 0.0) | (values != np.floor(values))]
    if invalid.size:
        raise ValueError(f"y must hold counts, whole numbers from 0; got {invalid[0]:g}")
    return values


def as_integers(y: FloatArray) -> IntArray:
    """Counts as integers."""
    return y.astype(np.int64)


def places_of_labels(y: ArrayLike, n_classes: int) -> IntArray:
    """Class labels 1..K, as the paper writes them, to indices 0..K-1."""
    labels = as_plain_array("y", y)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    if not (np.issubdtype(labels.dtype, np.number) or labels.dtype == bool):
        raise ValueError(f"y must hold integer class labels, got dtype {labels.dtype}")
    as_float = labels.astype(np.float64)
    if not np.all(np.isfinite(as_float)):
        raise ValueError("y holds NaN or infinite values; class labels are the integers 1..K")
    bad = (as_float != np.floor(as_float)) | (as_float < 1) | (as_float > n_classes)
    if np.any(bad):
        given = ", ".join(f"{value:g}" for value in np.unique(as_float[bad])[:5])
        hint = " (labels start at 1, not at 0)" if np.any(as_float == 0) else ""
        raise ValueError(f"y must hold class labels in 1..{n_classes}; got {given}{hint}")
    return as_float.astype(np.int64) - 1


def varied(**ends: tuple[float, float]) -> Callable[..., dict[str, FloatArray]]:
    """The ``typical`` of blocks that differ between experts, each within its ends."""

    def typical(rng: np.random.Generator, n_experts: int) -> dict[str, FloatArray]:
        """Blocks (k,) of a sensible truth."""
        return {name: apart(rng, n_experts, (), *pair) for name, pair in ends.items()}

    return typical


variances = varied(nu=(0.1, 0.4))
"""Variances of a sensible truth, which differ."""


def draws(law: Callable[[FloatArray], Any]) -> Callable[..., FloatArray]:
    """The ``draw`` of a law: one response per column of the predictors (q, n)."""

    def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Responses with the predictors `eta`, shape (q, n)."""
        return np.asarray(law(eta).rvs(size=eta.shape[1], random_state=rng), dtype=np.float64)

    return draw


def draw_by_quantiles(
    ppf: Callable[[FloatArray], FloatArray],
    shape: tuple[int, ...],
    size: int | tuple[int, ...] | None,
    random_state: np.random.Generator | None,
) -> FloatArray:
    """Draws by their quantiles: as many as `size` says, or one for each distribution in `shape`."""
    rng = np.random.default_rng(random_state)
    return ppf(rng.random(shape if size is None else size))


positive = between(0.0, np.inf, "positive numbers")
"""Positive responses (n,), checked."""


def likelihood_of(law: Callable[[FloatArray], Law], **fields: Any) -> Likelihood:
    """The likelihood of a law whose mean, or scale, is the exponential of eta.

    `fields` are what is its own; responses are drawn of the law unless ``draw`` is among them.
    """
    units = Units(shift_response=False, scale_response=False)
    common: dict[str, Any] = {"draw": draws(law), "link": np.log, "units": units}
    return Likelihood(law=law, **(common | fields))


def positive_likelihood(law: Callable[[FloatArray], Law], **fields: Any) -> Likelihood:
    """A `likelihood_of` a positive response."""
    return likelihood_of(law, **({"encode": positive, "ends": (0.0, np.inf)} | fields))


def likelihood_of_counts(law: Callable[[FloatArray], Law], **fields: Any) -> Likelihood:
    """A `likelihood_of` counts."""
    common = {"encode": counts, "decode": as_integers, "counts": True}
    return likelihood_of(law, **(common | fields))


def _labels_of(index: IntArray) -> IntArray:
    return np.asarray(index + 1, dtype=np.int64)


def likelihood_of_classes(**fields: Any) -> Likelihood:
    """The likelihood of classes with labels 1..K."""
    return Likelihood(
        encode=places_of_labels,
        decode=_labels_of,
        dtype=np.int64,
        support=lambda n_classes: np.arange(n_classes, dtype=np.int64),
        **fields,
    )
