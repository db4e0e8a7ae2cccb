"""A truth in many digits: derivatives of its density in the parameters, at some samples.

With ``N = sum_i m_i u_i`` and ``Z = sum_i m_i w_i``, where u = w f is an atom's weight times its
density, ``p / p* - 1`` is ``(N - p* Z) / (p* Z)``.  The numerator is linear in the mixing measure:
it is the integral of ``Phi = u - p* w`` over the atoms.  So derivatives of Phi at the true atoms
say all about densities near the truth; of a regression function with a raw gate Phi is ``w g``,
with a normalised one ``w (g - f*)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.symmetric import pack_symmetric
from moestat.base.types import FloatArray
from moestat.model.designs import Design, Given
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.theory.exponents._series import (
    BITS,
    ONE,
    Integers,
    Series,
    evaluate,
    exponential,
    fixed,
    product,
    space,
)
from moestat.theory.exponents._tapes import AtomCode, Group

__all__ = ["Parameter", "Point", "Samples", "draw_samples", "exact"]

_GRID = 2**12
"""Inputs and continuous responses are rounded to multiples of 1 / 4096, so that they are short
rationals in a certificate."""

_LEAST_SHARE = 1e-3
"""An atom is seen where its part of the density is more than this of the largest one's."""


@dataclass(frozen=True)
class Samples:
    """Inputs X (d, n) and encoded responses y (n,)."""

    X: FloatArray
    y: np.ndarray

    @cached_property
    def features(self) -> FloatArray:
        """Features (1, x, products) of every sample."""
        X = self.X
        products = pack_symmetric(X.T[:, :, None] * X.T[:, None, :]).T
        return np.concatenate([np.ones((1, X.shape[1])), X, products])

    @cached_property
    def fixed_features(self) -> Integers:
        """The features in fixed point; products of two inputs carry the root of 2."""
        import mpmath as mp

        d, n = self.X.shape
        rows = [np.full(n, ONE, dtype=object)]
        rows += [np.array([fixed(v) for v in self.X[j]], dtype=object) for j in range(d)]
        with mp.workprec(BITS + 32):
            root = fixed(mp.sqrt(2))
        for i, j in zip(*np.triu_indices(d), strict=True):
            both = (rows[1 + i] * rows[1 + j]) >> BITS
            rows.append(both if i == j else (both * root) >> BITS)
        return np.stack(rows)


def draw_samples(
    family: Family, theta: FloatArray, design: Design, n: int, seed: int = 0
) -> Samples:
    """Samples of the truth, on a grid of short rationals unless the design has nodes of its own.

    Analytic functions that are independent are independent at samples in general position.
    """
    rng = np.random.default_rng(seed)
    if isinstance(design, Given):
        # In another order: the first rows of a table are seldom like all.
        design = Given(rng.permutation(np.array(design.points)).tolist())
    X, y = sample(family, theta, n, rng, design, **({"noise": 1.0} if family.is_regression else {}))
    X = np.asarray(X, dtype=np.float64).T
    if not design.counted and not isinstance(design, Given):
        X = np.round(X * _GRID) / _GRID
    if family.is_regression:
        return Samples(X, np.zeros(n))
    encoded = family.likelihood.encode(y, family.n_classes)
    support = family.likelihood.support
    if support is not None:
        # Every class but the last at every input: their probabilities add up to 1.
        classes = support(family.n_classes)[:-1]
        X = X[:, : max(-(-n // classes.size), 1)]
        return Samples(np.repeat(X, classes.size, axis=1), np.tile(classes, X.shape[1]))
    encoded = _with_rare_atoms(family, theta, X, np.asarray(encoded), rng)
    if np.asarray(encoded).dtype.kind == "f" and not family.likelihood.counts:
        low, high = family.likelihood.ends
        rounded = np.round(encoded * _GRID) / _GRID
        encoded = np.where((rounded > low) & (rounded < high), rounded, encoded)
    return Samples(X, np.asarray(encoded))


def _with_rare_atoms(
    family: Family, theta: FloatArray, X: FloatArray, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The encoded responses, in turn drawn from each atom if one would be all but unseen.

    What an atom of small weight adds to the density far from its mean is 0 in any digits.
    """
    k = family.n_experts
    alone = family.with_experts(1)
    own, seen = [], np.zeros((k, y.size))
    decoded = family.likelihood.decode(y)
    weights = family.gate_probabilities(theta, X.T)
    for i in range(k):
        at = np.zeros(alone.n_params)
        for c, width in enumerate(family.width.tolist()):
            place = np.arange(width)
            at[alone.index[0, c] + place] = theta[family.index[i, c] + place]
        own.append(at)
        with np.errstate(divide="ignore"):
            seen[i] = np.log(weights[:, i]) + alone.log_density(at, X.T, decoded)
    shares = np.exp(seen - seen.max(axis=0))
    if shares.max(axis=1).min() > _LEAST_SHARE:
        return y
    drawn = y.copy()
    for i, at in enumerate(own):
        rows = np.arange(i, y.size, k)
        points = Given(X[:, rows].T.tolist())
        new = sample(alone, at, rows.size, rng, points)[1]
        drawn[rows] = family.likelihood.encode(new, family.n_classes)
    return drawn


def exact(value: float, digits: int = 17) -> Fraction:
    """The rational that a float prints as, the one its user meant."""
    return Fraction(f"{value:.{digits}g}" if digits < 17 else repr(float(value)))


@dataclass(frozen=True)
class Parameter:
    """A coordinate of the packed parameters."""

    position: int
    name: str
    block: str
    atom: int
    """Its atom; -1 for a parameter that all atoms share."""
    channel: int
    feature: int
    free: bool
    """Whether it is estimated in cells of one atom: not a reference, nor held by bounds."""
    movable: bool
    """Whether copies of its atom may differ in it."""


@dataclass(frozen=True)
class Point:
    """A truth (P,) of a family, at samples."""

    family: Family
    theta: FloatArray
    samples: Samples
    order: int = 2
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def parameters(self) -> list[Parameter]:
        """All coordinates but free masses, atom by atom, shared ones last."""
        family, found, seen = self.family, [], set()
        reference = {
            int(p)
            for name in family.gate.translations
            if name in family.blocks
            for p in np.ravel(family.blocks[name][-1])
        }
        mass = family.gate.mass if family.gate.normalised else None
        for i in range(family.n_experts):
            for c, channel in enumerate(family.channels):
                offset = int(family.offset[c])
                for w in range(int(family.width[c])):
                    position = int(family.index[i, c]) + w
                    is_mass = c < family.layout[0] and channel.intercept == mass and w == 0
                    if position in seen or is_mass:
                        continue
                    seen.add(position)
                    held = not family.lower[position] < family.upper[position]
                    shared = channel.shared
                    found.append(
                        Parameter(
                            position,
                            family.param_names[position],
                            self._block_of[position],
                            -1 if shared else i,
                            c,
                            0 if w == 0 else offset + w - 1,
                            not held,
                            not shared and (not held or position in reference),
                        )
                    )
        return sorted(found, key=lambda one: (one.atom < 0, one.atom, one.position))

    @cached_property
    def _block_of(self) -> dict[int, str]:
        return {
            int(p): name for name, at in self.family.blocks.items() for p in np.ravel(np.array(at))
        }

    @cached_property
    def values(self) -> Integers:
        """The parameters (P,) in fixed point; of a positive one the logarithm of its rational."""
        import mpmath as mp

        log = set()
        for c, channel in enumerate(self.family.channels):
            if channel.log:
                log |= {int(p) for p in self.family.index[:, c]}
        with mp.workprec(BITS + 32):
            return np.array(
                [
                    fixed(mp.log(_mpf(exact(float(np.exp(v)), 14))))
                    if p in log
                    else fixed(exact(v))
                    for p, v in enumerate(self.theta)
                ],
                dtype=object,
            )

    def channels(self, values: Integers, i: int) -> Integers:
        """Channels (C, n) of atom i at packed parameters in fixed point."""
        family, phi = self.family, self.samples.fixed_features
        rows = []
        for c in range(len(family.channels)):
            first, offset = int(family.index[i, c]), int(family.offset[c])
            total = values[first] * phi[0]
            for w in range(1, int(family.width[c])):
                total = total + values[first + w] * phi[offset + w - 1]
            rows.append(total >> BITS)
        return np.stack(rows)

    @cached_property
    def code(self) -> AtomCode:
        """The atoms' blocks."""
        return AtomCode(self.family)

    @cached_property
    def _response(self) -> Integers:
        y = self.samples.y
        if y.dtype.kind == "c" or self.family.likelihood.support is not None:
            return np.zeros(y.size, dtype=object)
        return np.array([fixed(v) for v in y], dtype=object)

    def groups(self, i: int) -> list[Group]:
        """The tapes of atom i at the truth."""
        if ("groups", i) not in self._cache:
            from moestat.theory.exponents._series import to_floats

            eta = to_floats(self.channels(self.values, i))
            low = self.samples.features[: 1 + self.family.n_features]
            self._cache["groups", i] = self.code.groups(eta, low, self.samples.y.tolist())
        return self._cache["groups", i]

    def series(self, eta: Integers, groups: list[Group], order: int) -> tuple[Series, Series]:
        """Log-weight and value at channels (C, n), over all samples."""
        base = space(len(self.family.channels), order)
        n = eta.shape[1]
        out: tuple[Series, Series] = ({}, {})
        low = self.samples.fixed_features[: 1 + self.family.n_features]
        for group in groups:
            found = evaluate(
                group, base, eta[:, group.rows], low[:, group.rows], self._response[group.rows]
            )
            for whole, part in zip(out, found, strict=True):
                for k, value in part.items():
                    if k not in whole:
                        whole[k] = np.zeros(n, dtype=object)
                    whole[k][group.rows] = value
        return out

    @cached_property
    def atoms(self) -> list[tuple[Series, Series]]:
        """Log-weight and value of every true atom as series."""
        return [
            self.series(self.channels(self.values, i), self.groups(i), self.order)
            for i in range(self.family.n_experts)
        ]

    @cached_property
    def shares(self) -> tuple[list[Integers], list[Integers]]:
        """Prior and posterior of every true atom (n,); of a raw gate nothing."""
        import mpmath as mp

        logs = [weight[0] for weight, _ in self.atoms], [w[0] + v[0] for w, v in self.atoms]
        active = self.family.gate_probabilities(self.theta, self.samples.X.T).T > 0.0
        found = []
        with mp.workprec(BITS + 32):
            for rows in logs:
                top = np.max(np.stack(rows), axis=0)
                powers = [
                    np.where(on, exponential(space(1, 0), {0: row - top})[0], 0)
                    for row, on in zip(rows, active, strict=True)
                ]
                total = sum(powers)
                found.append([(power << BITS) // total for power in powers])
        return found[0], found[1]

    @cached_property
    def function(self) -> Integers:
        """The regression function (n,) of a normalised gate at the samples."""
        pairs = zip(self.shares[0], self.atoms, strict=True)
        return np.sum([(share * value[0]) >> BITS for share, (_, value) in pairs], axis=0)

    @cached_property
    def functions(self) -> list[Series]:
        """Phi of every true atom, relative to the density, as a series in its channels."""
        base = space(len(self.family.channels), self.order)
        found = []
        for i, (weight, value) in enumerate(self.atoms):
            if self.family.is_regression and not self.family.gate.normalised:
                found.append(product(base, exponential(base, weight), value))
                continue
            if self.family.is_regression:
                change = {**weight, 0: 0 * weight[0]}
                gap = {**value, 0: value[0] - self.function}
                part = product(base, exponential(base, change), gap)
                found.append({k: (self.shares[0][i] * v) >> BITS for k, v in part.items()})
                continue
            prior, posterior = self.shares[0][i], self.shares[1][i]
            joint = {k: v for k, v in weight.items() if k}
            joint = {0: 0 * weight[0], **joint}
            log_weight = dict(joint)
            for k, v in value.items():
                if k:
                    joint[k] = joint[k] + v if k in joint else v
            u, w = exponential(base, joint), exponential(base, log_weight)
            phi = {}
            for k in {*u, *w}:
                phi[k] = ((posterior * u.get(k, 0)) >> BITS) - ((prior * w.get(k, 0)) >> BITS)
            found.append(phi)
        return found

    def mass_column(self, i: int) -> Integers:
        """The change by the mass of atom i."""
        return self.functions[i][0]

    def first(self, parameter: Parameter) -> Integers:
        """The change by a parameter, to first order; of a shared one over all atoms."""
        atoms = range(self.family.n_experts) if parameter.atom < 0 else [parameter.atom]
        base = space(len(self.family.channels), self.order)
        unit = [0] * base.n_variables
        unit[parameter.channel] = 1
        place = base.place[tuple(unit)]
        zero = np.zeros(self.samples.y.size, dtype=object)
        total = sum((self.functions[i].get(place, zero) for i in atoms), zero)
        return (total * self.samples.fixed_features[parameter.feature]) >> BITS

    def second(self, one: Parameter, two: Parameter) -> Integers:
        """The coefficient of the product of two parameters of one atom."""
        base = space(len(self.family.channels), self.order)
        degree = [0] * base.n_variables
        degree[one.channel] += 1
        degree[two.channel] += 1
        zero = np.zeros(self.samples.y.size, dtype=object)
        value = self.functions[one.atom].get(base.place[tuple(degree)], zero)
        if one.channel == two.channel and one.feature != two.feature:
            value = 2 * value
        phi = self.samples.fixed_features
        return (((value * phi[one.feature]) >> BITS) * phi[two.feature]) >> BITS


def _mpf(value: Fraction) -> Any:
    import mpmath as mp

    return mp.mpf(value.numerator) / value.denominator
