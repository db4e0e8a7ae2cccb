"""A likelihood for each expert on one response: lines of several kinds, noise, point masses.

All likelihoods read the predictor that the expert supplies, if any, and channels of their own; an
atom has the channels of all of them, and a last one that says which likelihood is its own.  Those
that its likelihood does not read are padding: their coefficients are 0, and the density does not
depend on them.

Source: noise beside clusters: Banfield and Raftery (1993), Sec. 5; mixtures of different
distributions: McLachlan and Peel (2000), Sec. 1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.registry import configured, table_of
from moestat.base.types import Encoded, FloatArray, IntArray, Law
from moestat.base.validate import is_mapping, is_sequence, short
from moestat.compiler.jit import device
from moestat.model.components import COMPONENTS
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.members import WHICH_LAW, Choices, Likelihood, Units
from moestat.model.responses import draw_by_quantiles

__all__ = [
    "by_expert",
    "check_ranges",
    "is_by_expert",
    "mixed_law",
    "possible",
    "with_range",
]


def is_by_expert(given: object) -> bool:
    """Whether a table is that of likelihoods by expert, ``{"experts": [...]}``."""
    return is_mapping(given) and "experts" in given


@dataclass(frozen=True)
class _Joint(Choices):
    """The likelihood that has those of all experts."""

    def encode(self, y: ArrayLike, n_classes: int) -> Encoded:
        """Responses (n,), checked, that every likelihood with a mean allows."""
        coded = self.law.encode(y, n_classes)
        for law in self.laws:
            if law.reads_mean:
                law.encode(y, n_classes)
        return coded

    def _at(self, eta: FloatArray) -> IntArray:
        """Position in `laws` (..., n) of the likelihood that predictors (..., q, n) belong to."""
        return np.rint(np.real(eta[..., -1, :])).astype(np.int64)

    def split(self, eta: FloatArray) -> list[tuple[np.ndarray, Likelihood, FloatArray]]:
        """Masks (..., n) of the entries of each likelihood, with its predictors (q, m)."""
        at, pieces = self._at(eta), []
        for j, law in enumerate(self.laws):
            mask = at == j
            if mask.any():
                predictors = [eta[..., c, :][mask] for c in (0, *self.places(j))]
                pieces.append((mask, law, np.array(predictors)))
        return pieces

    def spread(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Location and scale of the response, from predictors (..., q, n)."""
        return self._pair(eta, "spread")

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the response, from predictors (..., q, n)."""
        return self._pair(eta, "moments")

    def _pair(self, eta: FloatArray, what: str) -> tuple[FloatArray, FloatArray]:
        shape = (*eta.shape[:-2], eta.shape[-1])
        pair = np.full(shape, np.nan), np.full(shape, np.nan)
        for mask, law, predictors in self.split(eta):
            values: Any = getattr(law, what if getattr(law, what) else "spread")(predictors)
            for out, value in zip(pair, values, strict=True):
                out[mask] = value
        return pair

    def distribution(self, eta: FloatArray) -> Mixed:
        """The distribution of each entry of predictors (..., q, n)."""
        pieces = [(mask, mixed_law(law)(predictors)) for mask, law, predictors in self.split(eta)]
        return Mixed((*eta.shape[:-2], eta.shape[-1]), tuple(pieces))

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Responses with the predictors `eta`, shape (q, n)."""
        y = np.empty(eta.shape[1])
        for mask, law, predictors in self.split(eta):
            y[mask] = law.draw(predictors, rng)
        return y

    def reference(
        self, predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
    ) -> np.ndarray:
        """Log-densities (k, n) of y from predictors (k, n) and the blocks."""
        rows = []
        for i, mean in enumerate(predictors):
            law = self.laws[int(np.rint(np.real(blocks[WHICH_LAW][i])))]
            parameters = {c.intercept: blocks[c.intercept][i : i + 1] for c in law.channels}
            assert law.reference is not None
            rows.append(law.reference(mean[None], parameters, y)[0])
        return np.array(rows)

    def typical(self, rng: np.random.Generator, n_experts: int) -> dict[str, FloatArray]:
        """Blocks of a sensible truth; 1 where an expert does not have a parameter."""
        blocks = {channel.intercept: np.ones(n_experts) for channel in self.channels}
        truths = [law.typical(rng, n_experts) for law in self.laws]
        for i, j in enumerate(self.law_of_expert[:n_experts]):
            for name, values in truths[j].items():
                blocks[name][i] = np.broadcast_to(values, n_experts)[i]
            blocks[WHICH_LAW][i] = j
        return blocks


@dataclass(frozen=True)
class Mixed:
    """Distributions of several kinds, entry by entry, as frozen in scipy.stats."""

    shape: tuple[int, ...]
    pieces: tuple[tuple[np.ndarray, Law], ...]  # masks of the entries, and their distributions

    def _each(self, name: str, *values: ArrayLike) -> FloatArray:
        given = [np.broadcast_to(np.asarray(value), self._joint_shape(value)) for value in values]
        out = np.empty(given[0].shape if given else self.shape)
        for mask, law in self.pieces:
            out[..., mask] = getattr(law, name)(*(value[..., mask] for value in given))
        return out

    def _joint_shape(self, value: ArrayLike) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(value), self.shape)

    def pdf(self, y: float | FloatArray) -> FloatArray:
        """Densities."""
        return self._each("pdf", y)

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        return self._each("pmf", y)

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities up to y."""
        return self._each("cdf", y)

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities above y."""
        return self._each("sf", y)

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """Quantiles."""
        return self._each("ppf", q)

    def mean(self) -> FloatArray:
        """Means."""
        return self._each("mean")

    def std(self) -> FloatArray:
        """Standard deviations."""
        return self._each("std")

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The least and the largest response of each."""
        ends = np.empty(self.shape), np.empty(self.shape)
        for mask, law in self.pieces:
            for out, value in zip(ends, law.support(), strict=True):
                out[mask] = value
        return ends

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """Responses drawn from them."""
        return draw_by_quantiles(self.ppf, self.shape, size, random_state)


def mixed_law(law: Likelihood) -> Callable[[FloatArray], Law]:
    """The distribution of a likelihood at predictors (..., q, n), also of a normal one."""
    return _normal if law.law is None else law.law


def _normal(eta: FloatArray) -> Law:
    from scipy.stats import norm

    return norm(eta[..., 0, :], np.exp(0.5 * eta[..., 1, :]))


def by_expert(tables: object) -> Likelihood:
    """The likelihood of one response whose experts have different ones, by a list of these.

    Raises
    ------
    ValueError
        If the list is not one of likelihoods of a single response of the same kind, one of which
        has a mean.
    """
    if not is_sequence(tables) or not tables:
        raise ValueError(
            'experts must be a list with the likelihood of each expert, such as ["gaussian",'
            f' "student-t", "uniform"]; got {short(tables)}'
        )
    laws, law_of_expert = list[Likelihood](), list[int]()
    for given in tables:
        one = _configured(given)
        known = [table_of(law) for law in laws]
        if table_of(one) not in known:
            laws.append(one)
            known.append(table_of(one))
        law_of_expert.append(known.index(table_of(one)))
    _check_alike(laws)
    return _joined(_Joint(tuple(laws), tuple(law_of_expert)))


def _configured(given: Any) -> Likelihood:
    name = given if isinstance(given, str) else given.get("name") if is_mapping(given) else None
    if isinstance(name, str) and name in COMPONENTS:
        return configured(COMPONENTS, given)
    one = configured(LIKELIHOODS, given)
    why = ""
    if one.parts or one.n_responses(2) is not None or one.support is not None:
        why = "has no single mean"
    elif one.block is None:
        why = "has no density"
    elif one.dtype is not np.float64 or one.effects is not None:
        why = "uses more than one number for each row"
    if why:
        raise ValueError(
            f"experts: {one.name!r} {why}, and a likelihood of single experts has one response in"
            " one column and a density"
        )
    return one


def _check_alike(laws: Sequence[Likelihood]) -> None:
    """Raise unless the likelihoods are of the same kind of response, and one has a mean."""
    with_mean = [law for law in laws if law.reads_mean]
    if not with_mean:
        raise ValueError(
            "experts: one of the likelihoods must have a mean, such as 'gaussian'; got"
            f" {', '.join(law.name for law in laws)}"
        )
    first = with_mean[0]
    for law in laws:
        kind = _kind(law)
        if law.reads_mean and kind != _kind(first):
            raise ValueError(
                f"experts: {first.name!r} is for {_kind(first)} and {law.name!r} for {kind};"
                " experts of one response have likelihoods of one kind"
            )
        if not law.reads_mean and law.counts != first.counts:
            other = "point" if first.counts else "uniform"
            raise ValueError(
                f"experts: {law.name!r} cannot be combined with {first.name!r}, which is for"
                f" {_kind(first)}; take {other!r}"
            )


def _kind(law: Likelihood) -> str:
    if "trials" in law.options:
        return f"successes of {law.options['trials']} trials"
    if law.counts:
        return "counts from 1" if law.ends[0] == 0.0 else "counts"
    low, high = law.ends
    return "real numbers" if low == -np.inf else f"numbers between {low:g} and {high:g}"


def _joined(choices: _Joint) -> Likelihood:
    laws, first = choices.laws, choices.law
    places = tuple(choices.places(j) for j in range(len(laws)))
    bounds: dict[str, tuple[float, float]] = {WHICH_LAW: (0.0, float(len(laws)))}
    limits: dict[str, tuple[str, str]] = {}
    for law in laws:
        for name, (low, high) in law.bounds.items():
            known = bounds.get(name, (low, high))
            bounds[name] = (min(low, known[0]), max(high, known[1]))
        limits |= law.limits
    return Likelihood(
        name=", ".join(dict.fromkeys(law.name for law in laws)),
        channels=choices.channels,
        block=_choice(
            tuple((law.block, law_places) for law, law_places in zip(laws, places, strict=True))
        ),
        encode=choices.encode,
        decode=first.decode,
        draw=choices.draw,
        reference=choices.reference,
        typical=choices.typical,
        spread=choices.spread,
        moments=choices.moments if any(law.moments for law in laws) else None,
        link=first.link,
        law=choices.distribution,
        counts=first.counts,
        ends=first.ends,
        shapes=tuple(dict.fromkeys(name for law in laws for name in law.shapes)),
        bounds=bounds,
        limits=limits,
        units=Units(
            shift_response=all(law.units.shift_response for law in laws),
            scale_response=all(law.units.scale_response for law in laws),
            level=tuple(name for law in laws for name in law.units.level or ()),
            powers={name: p for law in laws for name, p in law.units.powers.items()},
        ),
        choices=choices,
        source="McLachlan and Peel (2000), Sec. 1.2",
    )


@cache
def _choice(laws: tuple[tuple[Callable[..., None], tuple[int, ...]], ...]) -> Callable[..., None]:
    """The block of an atom whose last predictor says which of these likelihoods is its own."""
    last = len(laws) - 1
    law_block, places = laws[last]
    block = _scattered(law_block, places)
    for j in range(last - 1, -1, -1):
        law_block, places = laws[j]
        block = _either(j, _scattered(law_block, places), block)
    return block


@cache
def _either(j: int, first: Callable[..., None], rest: Callable[..., None]) -> Callable[..., None]:
    """The block of the j-th likelihood, `first`, or of the later ones, `rest`."""

    @device
    def block(eta, y, m, order, value, d1, d2):
        # A solver may have rounded the number.
        if eta[eta.shape[0] - 1, 0] < j + 0.5:
            first(eta, y, m, order, value, d1, d2)
        else:
            rest(eta, y, m, order, value, d1, d2)

    return block


@cache
def _scattered(law_block: Callable[..., None], places: tuple[int, ...]) -> Callable[..., None]:
    """The block of a likelihood whose own channels are at these places, in ascending order.

    Its predictors move to the front, over padding or what has moved already, and its derivatives
    from the last to the first to their places, none of which is before the place they come from.
    """
    n, mask = 1 + len(places), 1 + sum(1 << c for c in places)

    @device
    def block(eta, y, m, order, value, d1, d2):
        i = 0
        for c in range(eta.shape[0]):
            if mask >> c & 1:
                if c != i:
                    for b in range(m):
                        eta[i, b] = eta[c, b]
                i += 1
        clear(d1, m)
        if order > 1:
            clear(d2, m)
        law_block(eta, y, m, order, value, d1, d2)
        i = n - 1
        for c in range(d1.shape[0] - 1, 0, -1):
            if mask >> c & 1:
                move(d1, i, c, m)
                if order > 1:
                    e = i
                    for f in range(c, -1, -1):
                        if mask >> f & 1:
                            move(d2, i * (i + 1) // 2 + e, c * (c + 1) // 2 + f, m)
                            e -= 1
                i -= 1

    return block


@device
def clear(rows, m):
    """Set rows to 0."""
    for c in range(rows.shape[0]):
        for b in range(m):
            rows[c, b] = 0.0


@device
def move(rows, source, target, m):
    """Move a row to another position, and set its old position to 0."""
    if source != target:
        for b in range(m):
            rows[target, b] = rows[source, b]
            rows[source, b] = 0.0


def with_range(given: Any, y: Encoded) -> Any:
    """The table of likelihoods by expert, uniform noise without ends on the range of y."""
    low, high = float(np.min(y)), float(np.max(y))

    def complete(one: Any) -> Any:
        table = {"name": one} if isinstance(one, str) else dict(one)
        if table.get("name") != "uniform" or {"low", "high"} & table.keys():
            return one
        return {**table, "low": low, "high": high}

    return {**given, "experts": [complete(one) for one in given["experts"]]}


def check_ranges(likelihood: Likelihood) -> None:
    """Raise if uniform noise has no ends."""
    laws = () if likelihood.choices is None else likelihood.choices.laws
    if any(law.name == "uniform" and not law.options for law in laws):
        raise ValueError(
            'experts: "uniform" needs its ends, {"name": "uniform", "low": 0, "high": 1}; fits to'
            " data by the name of a likelihood take the range of y"
        )


def possible(likelihood: Likelihood, shares: FloatArray, y: Encoded) -> FloatArray:
    """Memberships (k, n) of rows, none of an expert whose likelihood does not allow the row."""
    if likelihood.choices is None:
        return shares
    allowed = likelihood.choices.allowed(y)
    possible_shares = np.where(allowed, shares, 0.0)
    total = possible_shares.sum(axis=0)
    rest = allowed / allowed.sum(axis=0)
    return np.where(total > 0.0, possible_shares / np.where(total > 0.0, total, 1.0), rest)
