"""Responses of a row as one record, and the likelihood of several of them.

Source: Gruen and Leisch (2008), Sec. 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import check_kind, short
from moestat.compiler.jit import device
from moestat.kernels.views import part, row
from moestat.model.members import Likelihood, Part, Units
from moestat.model.qualify import with_names

__all__ = ["Records", "joined"]


def joined(parts: tuple[Part, ...]) -> Likelihood:
    """The likelihood of these responses, with blocks by their names."""
    records = Records(parts)
    likelihoods = [
        with_names(one.likelihood, names) for one, names in zip(parts, records.blocks, strict=True)
    ]
    called = Counter(one.likelihood.name for one in parts)
    block = _first(parts[0].likelihood.block, parts[0].field)
    before = parts[0].n_channels
    for one in parts[1:]:
        block = _with(block, before, one.likelihood.block, one.field)
        before += one.n_channels
    return Likelihood(
        name=" + ".join(
            name if 1 == count < len(parts) else f"{count} {name}" for name, count in called.items()
        ),
        n_responses=lambda n_classes: sum(one.n_predictors for one in parts),
        channels=tuple(channel for each in likelihoods for channel in each.channels),
        block=block,
        reference=records.reference,
        typical=records.typical,
        encode=records.encode,
        decode=records.decode,
        draw=records.draw,
        dtype=records.dtype,
        shapes=tuple(name for each in likelihoods for name in each.shapes),
        bounds={name: pair for each in likelihoods for name, pair in each.bounds.items()},
        limits={name: pair for each in likelihoods for name, pair in each.limits.items()},
        units=Units(powers={n: p for each in likelihoods for n, p in each.units.powers.items()}),
        source="Gruen and Leisch (2008), Sec. 2",
        parts=parts,
    )


@dataclass(frozen=True)
class Records:
    """Responses of a row as one record, and what is read from it."""

    parts: tuple[Part, ...]

    @property
    def dtype(self) -> np.dtype[np.void]:
        """NumPy type of one row: a record with a field for each response."""
        return np.dtype([(one.field, one.likelihood.dtype) for one in self.parts])

    @property
    def blocks(self) -> list[dict[str, str]]:
        """Names of the blocks of each likelihood in that of all responses."""
        return [one.blocks(c.intercept for c in one.likelihood.channels) for one in self.parts]

    def encode(self, y: ArrayLike, n_classes: int) -> Encoded:
        """Responses (n, R), checked, as records (n,)."""
        columns = _columns_of(y, len(self.parts))
        coded: Encoded = np.empty(len(columns[0]), dtype=self.dtype)
        for one, column in zip(self.parts, columns, strict=True):
            try:
                coded[one.field] = one.likelihood.encode(column, one.n_classes)
            except ValueError as error:
                raise ValueError(f"response {one.name!r}: {error}") from None
        return coded

    def decode(self, y: Encoded) -> FloatArray:
        """Responses (n, R)."""
        columns = [one.likelihood.decode(y[one.field]) for one in self.parts]
        return np.column_stack(columns).astype(np.float64)

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> Encoded:
        """Records (n,) with the predictors `eta`, shape (channels, n)."""
        y: Encoded = np.empty(eta.shape[1], dtype=self.dtype)
        first = 0
        for one in self.parts:
            y[one.field] = one.likelihood.draw(eta[first : first + one.n_channels], rng)
            first += one.n_channels
        return y

    def reference(
        self, predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
    ) -> np.ndarray:
        """Log-densities (k, n) of y (n, R), from predictors (k, Q, n) and the blocks."""
        total, first = 0.0, 0
        for one, names, values in zip(self.parts, self.blocks, y.T, strict=True):
            last = first + one.n_predictors
            eta = predictors[:, first] if one.n_responses is None else predictors[:, first:last]
            parameters = {name: blocks[known] for name, known in names.items()}
            parameters = one.likelihood.by_expert(parameters, len(predictors))
            assert one.likelihood.reference is not None
            given = values if one.likelihood.support is None else values.astype(np.int64)
            total, first = total + one.likelihood.reference(eta, parameters, given), last
        return np.asarray(total)

    def typical(self, rng: np.random.Generator, n_experts: int) -> dict[str, ArrayLike]:
        """Blocks of a sensible truth of each response."""
        truths = [(one, one.likelihood.typical(rng, n_experts)) for one in self.parts]
        return {one.block(name): value for one, blocks in truths for name, value in blocks.items()}


def _columns_of(y: ArrayLike, count: int) -> list[np.ndarray]:
    """R columns (n,) of responses."""
    check_kind("y", y, (np.ndarray, list, tuple), "an array of shape (n, R)")
    array = np.asarray(y)
    if array.ndim != 2 or array.shape[1] != count:
        raise ValueError(
            f"y must have shape (n, {count}), one column per response; got {short(array.shape)}"
        )
    return list(array.T)


@cache
def _first(first: Callable[..., None], name: str) -> Callable[..., None]:
    """The block of the first response of a record, from that of the response alone."""

    @device
    def block(eta, y, m, order, value, d1, d2):
        first(eta, y[name], m, order, value, d1, d2)

    return block


@cache
def _with(
    before: Callable[..., None], s: int, added: Callable[..., None], name: str
) -> Callable[..., None]:
    """The block of several responses: those of `before`, with s channels, and the one of `added`.

    Second derivatives are rows of a packed lower triangle.  Those of the new response are written
    one after the other, and moved to their places from the last to the first: each moves up, so
    that none is overwritten.  Those of channels of two responses are 0.
    """
    base = s * (s + 1) // 2

    @device
    def block(eta, y, m, order, value, d1, d2):
        n = eta.shape[0]
        own_pairs = (n - s) * (n - s + 1) // 2
        before(part(eta, 0, s), y, m, order, value, part(d1, 0, s), part(d2, 0, base))
        # A row between two responses, which is 0 in the end, is free until then.
        more = row(d2, base + own_pairs)
        second = part(d2, base, base + own_pairs)
        added(part(eta, s, n), y[name], m, order, more, part(d1, s, n), second)
        for b in range(m):
            value[b] += more[b]
        if order > 1:
            for i in range(n - s - 1, -1, -1):
                for j in range(i, -1, -1):
                    q = base + i * (i + 1) // 2 + j
                    for b in range(m):
                        d2[q + s * (i + 1), b] = d2[q, b]
            for i in range(n - s):
                for e in range(s):
                    q = base + s * i + i * (i + 1) // 2 + e
                    for b in range(m):
                        d2[q, b] = 0.0

    return block
