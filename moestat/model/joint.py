"""Several responses of a row: within an expert they are independent given the inputs.

The log-density of an expert is the sum of those of the responses, each with a likelihood,
predictors and scales of its own, ``l = sum_r l_r(y_r | eta_r)``.  The channels of an atom are those
of the first response, the expert's and then the likelihood's, those of the second, and so on;
blocks carry the name of their response.  Encoded responses are one record per row, with a field
for each of them.

Source: Gruen and Leisch (2008), Sec. 2; latent classes with covariates: Bandeen-Roche, Miglioretti,
Zeger and Rathouz (1997).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from moestat.base.registry import configured, table_of
from moestat.base.types import Expert, FloatArray, Likelihood, Part, Symmetry, Units
from moestat.base.validate import check_kind, is_mapping, is_sequence, positive_int, short
from moestat.compiler.jit import device
from moestat.kernels.views import part, row
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.qualify import renamed, with_names

__all__ = ["as_likelihood", "expert_of", "joint", "likelihood_table"]


def as_likelihood(given: Any) -> Likelihood:
    """A likelihood by name or table, or that of several responses by a list of these."""
    return joint(given) if is_sequence(given) else configured(LIKELIHOODS, given)


def likelihood_table(likelihood: Likelihood) -> Any:
    """The name, table or list that makes a likelihood, the inverse of `as_likelihood`."""
    if not likelihood.parts:
        return table_of(likelihood)
    tables = []
    for one in likelihood.parts:
        own = {"name": one.likelihood.name, **one.likelihood.options, "response": one.name}
        tables.append(
            own | ({} if one.likelihood.support is None else {"n_classes": one.n_classes})
        )
    return tables


def joint(
    likelihoods: Sequence[Any],
    names: Sequence[str] | None = None,
    n_classes: Sequence[int | None] | None = None,
) -> Likelihood:
    """The likelihood of several responses that are independent within an expert.

    Parameters
    ----------
    likelihoods : sequence of str, mapping or Likelihood
        One for each response, by name or table; a table may hold the ``response``'s name and, for
        classes, their number ``n_classes``.
    names : sequence of str, optional
        Names of the responses; "y1", "y2" and so on by default.
    n_classes : sequence of int or None, optional
        Numbers of classes.

    Raises
    ------
    ValueError
        If there are none, two have one name, or one has no density or responses of two columns.

    Examples
    --------
    >>> made = joint(["gaussian", "poisson"], ["height", "visits"])
    >>> made.n_responses(1), [channel.intercept for channel in made.channels]
    (2, ['nu_height'])
    """
    if not likelihoods:
        raise ValueError("likelihood: a list must hold one likelihood for each response")
    parts = []
    for r, given in enumerate(likelihoods):
        table = dict(given) if is_mapping(given) else {}
        name = table.pop("response", f"y{r + 1}") if names is None else names[r]
        table.pop("response", None)
        K = table.pop("n_classes", None)
        K = K if n_classes is None or n_classes[r] is None else n_classes[r]
        parts.append(_part(r, str(name), configured(LIKELIHOODS, table or given), K))
    called = [one.name for one in parts]
    if len(set(called)) < len(called):
        raise ValueError(f"y: two responses are called {max(called, key=called.count)!r}")
    return _joint(tuple(parts))


def _part(r: int, name: str, likelihood: Likelihood, K: int | None) -> Part:
    """The r-th response, its likelihood for K classes."""
    if likelihood.block is None or likelihood.dtype is np.complex128:
        why = "has no density" if likelihood.block is None else "reads two columns"
        raise ValueError(
            f"likelihood: {likelihood.name!r} of response {name!r} {why}, and several responses"
            " have one column and a density each"
        )
    if likelihood.support is None:
        return Part(name, r, likelihood, 1)
    K = positive_int(f"n_classes of response {name!r}", 2 if K is None else K, 2)
    if "levels" in likelihood.options:
        assert likelihood.configure is not None
        likelihood = likelihood.configure(levels=K)
    return Part(name, r, likelihood, K)


def _joint(parts: tuple[Part, ...]) -> Likelihood:
    """The likelihood of these responses, with blocks by their names."""
    records = _Records(parts)
    own = [
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
        channels=tuple(channel for each in own for channel in each.channels),
        block=block,
        reference=records.reference,
        typical=records.typical,
        encode=records.encode,
        decode=records.decode,
        draw=records.draw,
        dtype=records.dtype,
        shapes=tuple(name for each in own for name in each.shapes),
        bounds={name: pair for each in own for name, pair in each.bounds.items()},
        limits={name: pair for each in own for name, pair in each.limits.items()},
        units=Units(powers={n: p for each in own for n, p in each.units.powers.items()}),
        source="Gruen and Leisch (2008), Sec. 2",
        parts=parts,
    )


@dataclass(frozen=True)
class _Records:
    """Responses of a row as one record, and what is read from it."""

    parts: tuple[Part, ...]

    @property
    def dtype(self) -> Any:
        """Of a record."""
        return np.dtype([(one.field, one.likelihood.dtype) for one in self.parts])

    @property
    def blocks(self) -> list[dict[str, str]]:
        """Names of the blocks of each likelihood in that of all responses."""
        return [one.blocks(c.intercept for c in one.likelihood.channels) for one in self.parts]

    def encode(self, y: Any, n_classes: int) -> Any:
        """Responses (n, R), checked, as records (n,)."""
        columns = _columns_of(y, len(self.parts))
        coded: Any = np.empty(len(columns[0]), dtype=self.dtype)
        for one, column in zip(self.parts, columns, strict=True):
            try:
                coded[one.field] = one.likelihood.encode(column, one.n_classes)
            except ValueError as error:
                raise ValueError(f"response {one.name!r}: {error}") from None
        return coded

    def decode(self, y: Any) -> FloatArray:
        """Responses (n, R)."""
        columns = [one.likelihood.decode(y[one.field]) for one in self.parts]
        return np.column_stack(columns).astype(np.float64)

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> Any:
        """Records (n,) with the predictors `eta`, shape (channels, n)."""
        y: Any = np.empty(eta.shape[1], dtype=self.dtype)
        first = 0
        for one in self.parts:
            y[one.field] = one.likelihood.draw(eta[first : first + one.n_channels], rng)
            first += one.n_channels
        return y

    def reference(self, predictors: Any, blocks: Mapping[str, Any], y: Any) -> Any:
        """Log-densities (k, n) of y (n, R), from predictors (k, Q, n) and the blocks."""
        total, first = 0.0, 0
        for one, names, values in zip(self.parts, self.blocks, y.T, strict=True):
            last = first + one.n_predictors
            eta = predictors[:, first] if one.n_responses is None else predictors[:, first:last]
            own = {name: blocks[known] for name, known in names.items()}
            own = one.likelihood.by_expert(own, len(predictors))
            assert one.likelihood.reference is not None
            given = values if one.likelihood.support is None else values.astype(np.int64)
            total, first = total + one.likelihood.reference(eta, own, given), last
        return total

    def typical(self, rng: np.random.Generator, n_experts: int) -> dict[str, Any]:
        """Blocks of a sensible truth of each response."""
        made = [(one, one.likelihood.typical(rng, n_experts)) for one in self.parts]
        return {one.block(name): value for one, blocks in made for name, value in blocks.items()}


def _columns_of(y: Any, count: int) -> list[Any]:
    """R columns (n,) of responses."""
    check_kind("y", y, (np.ndarray, list, tuple), "an array of shape (n, R)")
    array = np.asarray(y)
    if array.ndim != 2 or array.shape[1] != count:
        raise ValueError(
            f"y must have shape (n, {count}), one column per response; got {short(array.shape)}"
        )
    return list(array.T)


@cache
def _first(own: Callable[..., None], name: str) -> Callable[..., None]:
    """The block of the first response of a record."""

    @device
    def block(eta, y, m, order, value, d1, d2):
        own(eta, y[name], m, order, value, d1, d2)

    return block


@cache
def _with(
    before: Callable[..., None], s: int, own: Callable[..., None], name: str
) -> Callable[..., None]:
    """The block of the responses `before`, of s channels, and one more.

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
        own(part(eta, s, n), y[name], m, order, more, part(d1, s, n), second)
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


def expert_of(expert: Expert, likelihood: Likelihood) -> Expert:
    """The expert with predictors of each response, blocks by its name; as it is for one response.

    Raises
    ------
    ValueError
        If the expert's mean is not linear in the parameters.
    """
    parts = likelihood.parts
    if not parts:
        return expert
    if expert.block is not None:
        raise ValueError(
            f"expert {expert.name!r} supplies one mean, but there are {len(parts)} responses; only"
            " linear experts have several"
        )
    own = [renamed(expert, one.blocks(expert.bounds)) for one in parts]

    def channels(n_features: int, n_responses: int | None) -> tuple[Any, ...]:
        """The predictors of one response after those of the other."""
        pairs = zip(own, parts, strict=True)
        return tuple(c for each, one in pairs for c in each.channels(n_features, one.n_responses))

    def reference(blocks: Mapping[str, Any], X: FloatArray) -> Any:
        """Predictors (k, Q, n)."""
        found = [each.reference({name: blocks[name] for name in each.bounds}, X) for each in own]
        return np.concatenate([f[:, None] if f.ndim == 2 else f for f in found], axis=1)

    def typical(rng, n_experts, n_features, n_responses):
        """Predictors of a sensible truth."""
        pairs = zip(own, parts, strict=True)
        made = [each.typical(rng, n_experts, n_features, one.n_responses) for each, one in pairs]
        return {name: block for blocks in made for name, block in blocks.items()}

    levels = tuple(each.units.level for each in own if isinstance(each.units.level, str))
    return replace(
        expert,
        channels=channels,
        reference=reference,
        typical=typical,
        bounds={name: pair for each in own for name, pair in each.bounds.items()},
        units=replace(
            expert.units,
            level=levels,
            powers={n: p for each in own for n, p in each.units.powers.items()},
        ),
        symmetry=Symmetry(
            linear_in=tuple(name for each in own for name in each.symmetry.linear_in)
        ),
    )
