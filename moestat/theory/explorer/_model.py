"""The difference between a density near the truth and the truth, to full relative accuracy.

Near the truth the densities agree in most of their digits, and subtracting them would leave
rounding: in a cell of three Gaussian atoms at deviations of .05 the difference is 1e-9 of either.
Everything here is therefore a function of *deviations* from a measure with the truth's density.
With the change ``lambda_i = (a_i + l_i) - (a*_j + l*_j)`` of an atom's log-score and log-density,
relative masses ``1 + mu_j`` of the cells and shares s_i inside them,

    u / u* - 1 = sum_j tau*_j [mu_j + (1 + mu_j) sum_(i in A_j) s_i expm1(lambda_i)]

and the same without l for the normaliser.  lambda is not a difference of two values, either: it is
the integral of the registered derivatives along the segment from the true to the fitted atom, by
Gauss-Legendre quadrature, and so carries the deviations as a factor.  What is left of cancellation
is that between the atoms of one cell: the absolute error of ``p / p* - 1`` is about 1e-16 times
the largest deviation, which `moestat.theory.explorer._exact` confirms at 50 digits.  Where a kink
lies on the segment, the integral would be wrong and the plain difference is taken.

Hellinger's distance is a sum of squares, ``h^2 = (1/2) int p* (sqrt(p / p*) - 1)^2``, and so is the
L2 distance of regression functions: residuals and their Jacobian are what a solver needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from moestat.base.symmetric import pack_symmetric
from moestat.base.types import FloatArray
from moestat.kernels.atoms import segment_loop
from moestat.model.family import Family
from moestat.theory.explorer._nodes import Nodes
from moestat.theory.explorer._reference import Reference

_STAGES = ((1e-3, 3), (1e-2, 4), (0.1, 6), (np.inf, 16))  # largest deviation, nodes on a segment
_KINK = 1e-10  # relative gap between integral and difference above which a kink is assumed


_UNIT_RULES = {0: (np.empty(0), np.empty(0))}
for _, _count in _STAGES:
    _nodes, _weights = np.polynomial.legendre.leggauss(_count)
    _UNIT_RULES[_count] = 0.5 * (1.0 + _nodes), 0.5 * _weights


@dataclass(frozen=True)
class Deviation:
    """A point near a reference: what is added to it."""

    atoms: FloatArray
    """Deviations (k, p) of the atoms' own parameters; 0 in a column of free masses."""
    shared: FloatArray
    """Deviations (s,) of shared parameters."""
    share: FloatArray
    """Share (k,) of the cell's mass."""
    mass: FloatArray
    """Relative deviation (k*,) of the mass of each cell."""


class _Segment(NamedTuple):
    a: FloatArray  # log-score at the end
    da: FloatArray  # its derivatives in the channels of the gate
    v: FloatArray  # log-density or mean at the end
    dv: FloatArray  # its derivatives in the expert's and likelihood's channels
    change_a: FloatArray  # integral of the log-score's derivative along the segment
    change_v: FloatArray


class _Atom(NamedTuple):
    a: FloatArray  # change of the log-score
    v: FloatArray  # change of the log-density, or of the mean
    da: FloatArray  # derivatives in the channels of the gate, at the fitted atom
    dv: FloatArray  # in the expert's and likelihood's


class Derivatives(NamedTuple):
    """Derivatives of the residual (n,) in atoms (k, p), shared (s,), shares (k,), masses (k*,)."""

    atoms: FloatArray
    shared: FloatArray
    share: FloatArray
    mass: FloatArray


@dataclass(frozen=True)
class Model:
    """Distances to one truth (P*,) for measures near one reference, at fixed nodes."""

    family: Family
    truth_family: Family
    truth: FloatArray
    reference: Reference
    nodes: Nodes

    @cached_property
    def phi(self) -> FloatArray:
        """Features (1, x, products) of every row."""
        X = self.nodes.X
        rows = [np.ones((1, X.shape[1])), X]
        if any(channel.products for channel in self.family.channels):
            rows.append(pack_symmetric(X.T[:, :, None] * X.T[:, None, :]).T)
        return np.ascontiguousarray(np.concatenate(rows))

    @cached_property
    def reads(self) -> list[tuple[slice, list[int]]]:
        """Of each channel its coefficients among an atom's and the shared ones, and rows of phi."""
        family, reads = self.family, []
        others = (family.n_experts - 1) * family.n_atom_params
        for c, channel in enumerate(family.channels):
            first, width = int(family.index[0, c]) - others * channel.shared, int(family.width[c])
            offset = int(family.offset[c])
            reads.append((slice(first, first + width), [0, *range(offset, offset + width - 1)]))
        return reads

    def channels(self, atom: FloatArray, shared: FloatArray) -> FloatArray:
        """Channels (C, n) of one atom's parameters (p,), or of their deviations."""
        both = np.concatenate([atom, shared])
        return np.stack([both[at] @ self.phi[rows] for at, rows in self.reads])

    def _segment(self, eta: FloatArray, step: FloatArray, count: int) -> _Segment:
        """An atom from channels eta (C, n) along a step (C, n), integrated with `count` nodes."""
        family, n = self.family, eta.shape[1]
        loop = segment_loop(
            family.gate.block,
            family.expert.block,
            family.likelihood.block,
            family.gate.reads_response,
        )
        n_gate, first, n_mean, _ = family.layout
        n_value = n_mean if family.is_regression else eta.shape[0] - first
        out = _Segment(
            np.empty(n),
            np.empty((n_gate, n)),
            np.empty(n),
            np.empty((n_value, n)),
            np.empty(n),
            np.empty(n),
        )
        times, weights = _UNIT_RULES[count]
        low = self.phi[: 1 + family.n_features]
        loop(eta, step, times, weights, family.layout, low, self.nodes.y, *out)
        return out

    @cached_property
    def _bases(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Channels, log-score and value of every atom of the reference."""
        shared = self.family.split(self.embedded)[1]
        bases = []
        for atom in self.reference.atoms:
            eta = self.channels(atom, shared)
            rows = self._segment(eta, np.zeros_like(eta), 0)
            bases.append((eta, rows.a, rows.v))
        return bases

    @cached_property
    def embedded(self) -> FloatArray:
        """Packed parameters (P,) of the reference, up to its shares."""
        return self.family.join(self.reference.atoms, self.truth_family.split(self.truth)[1])

    @cached_property
    def _truth_rows(self) -> tuple[FloatArray, ...]:
        """Prior and posterior of the true atoms (k*, n), and the truth's log-density (n,)."""
        return self.truth_family.rowwise(self.truth, self.nodes.X, self.nodes.y)

    @property
    def prior(self) -> FloatArray:
        """Gate probabilities (k*, n) of the true atoms, 0 for those that are not active."""
        return self._truth_rows[0]

    @cached_property
    def factor(self) -> FloatArray:
        """Root of the weight (n,) of every row in the mean square."""
        nodes = self.nodes
        mass = nodes.mass[nodes.owner]
        if self.family.is_regression:
            return np.sqrt(mass)
        return np.sqrt(0.5 * mass * nodes.weight * np.exp(self._truth_rows[2]))

    def _move(self, i: int, deviation: Deviation) -> _Atom:
        """Changes of log-score and value of atom i, with derivatives at its new place."""
        eta, a0, v0 = self._bases[i]
        step = self.channels(deviation.atoms[i], deviation.shared)
        largest = float(np.max(np.abs(step), initial=0.0))
        count = next(count for limit, count in _STAGES if largest <= limit)
        end = self._segment(eta, step, count)
        changes = end.change_a, end.change_v
        pairs = (changes[0], end.a, a0), (changes[1], end.v, v0)
        for change, value, start in pairs:
            plain = value - start
            bent = np.abs(change - plain) > _KINK * (np.abs(start) + np.abs(value) + 1.0)
            change[bent] = plain[bent]
        return _Atom(*changes, end.da, end.dv)

    def _scatter(self, i: int, weights: list[FloatArray], out: Derivatives) -> None:
        """Add the derivatives in the channels of atom i, (n,) each, to those in parameters."""
        size = out.atoms.shape[1]
        both = np.zeros((size + len(out.shared), weights[0].size))
        for weight, (at, rows) in zip(weights, self.reads, strict=True):
            both[at] += weight * self.phi[rows]
        out.atoms[i] += both[:size]
        out.shared[:] += both[size:]

    def _blank(self, wanted: bool) -> Derivatives:
        k, n = len(self.reference.cells), self.nodes.X.shape[1] if wanted else 0
        size, true_k = self.family.n_atom_params, self.truth_family.n_experts
        sizes = (k, size), (self.family.n_params - k * size,), (k,), (true_k,)
        return Derivatives(*(np.zeros((*size, n)) for size in sizes))

    def residuals(
        self, deviation: Deviation, slopes: bool = True
    ) -> tuple[FloatArray, Derivatives]:
        """Residuals (n,), whose squares sum to the mean squared distance, with derivatives.

        They are NaN where a density rounds to 0, far outside of any interest.
        """
        if self.family.is_regression:
            change, derivatives = self.difference(deviation, slopes)
            return self.factor * change, _times(self.factor, derivatives) if slopes else derivatives
        with np.errstate(all="ignore"):
            rho, derivatives = self.relative(deviation, slopes)
            half = np.expm1(0.5 * np.log1p(np.where(rho > -1.0, rho, np.nan)))
            weight = 0.5 * self.factor / (1.0 + half)
            return self.factor * half, _times(weight, derivatives) if slopes else derivatives

    def values(self, deviation: Deviation) -> FloatArray:
        """The residuals (n,) only."""
        return self.residuals(deviation, slopes=False)[0]

    def relative(self, deviation: Deviation, slopes: bool = True) -> tuple[FloatArray, Derivatives]:
        """``p / p* - 1`` at every row (n,), with derivatives unless they are not wanted."""
        pi, tau, _ = self._truth_rows
        n_gate, first, _, _ = self.family.layout
        total, normaliser = deviation.mass @ tau, deviation.mass @ pi
        du, dz = self._blank(slopes), self._blank(slopes)
        zero = np.zeros_like(total)
        for i, j in enumerate(self.reference.cells):
            atom = self._move(i, deviation)
            s, m = deviation.share[i], 1.0 + deviation.mass[j]
            excess, gate = np.expm1(atom.a + atom.v), np.expm1(atom.a)
            total += m * s * tau[j] * excess
            normaliser += m * s * pi[j] * gate
            if not slopes:
                continue
            for out, weight, change in ((du, tau[j], excess), (dz, pi[j], gate)):
                out.share[i] += m * weight * change
                out.mass[j] += weight * (s * change)
            slope_u, slope_z = m * s * tau[j] * (1.0 + excess), m * s * pi[j] * (1.0 + gate)
            in_u, in_z = [], []
            for c in range(len(self.reads)):
                da = atom.da[c] if c < n_gate else zero
                dv = atom.dv[c - first] if c >= first else zero
                in_u.append(slope_u * (da + dv))
                in_z.append(slope_z * da)
            self._scatter(i, in_u, du)
            self._scatter(i, in_z, dz)
        rho = (total - normaliser) / (1.0 + normaliser)
        if not slopes:
            return rho, du
        du.mass[:] += tau
        dz.mass[:] += pi
        inverse = 1.0 / (1.0 + normaliser)
        slope = -(1.0 + rho) * inverse
        return rho, Derivatives(
            *(inverse * u + slope * z for u, z in zip(du, dz, strict=True)),
        )

    def difference(
        self, deviation: Deviation, slopes: bool = True
    ) -> tuple[FloatArray, Derivatives]:
        """``f - f*`` at every row (n,), with derivatives unless they are not wanted."""
        n_gate, first, _, _ = self.family.layout
        out = self._blank(slopes)
        change = np.zeros(self.nodes.X.shape[1])
        for i in range(len(self.reference.cells)):
            atom = self._move(i, deviation)
            _, a0, g0 = self._bases[i]
            weight = np.exp(a0)
            mean = g0 + atom.v
            change += weight * (np.expm1(atom.a) * mean + atom.v)
            if slopes:
                raised = weight * np.exp(atom.a)
                rows = [
                    raised * mean * atom.da[c] if c < n_gate else raised * atom.dv[c - first]
                    for c in range(len(self.reads))
                ]
                self._scatter(i, rows, out)
        return change, out

    def distance(self, deviation: Deviation) -> float:
        """``E_X d_H``, or the L2 distance of the regression functions."""
        squares = self.values(deviation) ** 2
        if self.family.is_regression:
            return float(np.sqrt(squares.sum()))
        mass = self.nodes.mass
        return float(np.sqrt(mass) @ np.sqrt(np.bincount(self.nodes.owner, squares, mass.size)))

    def total_variation(self, deviation: Deviation) -> float:
        """``E_X d_V``; changes of sign between nodes limit it to about three digits."""
        rho, _ = self.relative(deviation, slopes=False)
        weight = self.nodes.mass[self.nodes.owner] * self.nodes.weight
        return float(0.5 * np.sum(weight * np.exp(self._truth_rows[2]) * np.abs(rho)))

    def packed(self, deviation: Deviation) -> FloatArray:
        """Packed parameters (P,) of the point."""
        atoms = self.reference.atoms + deviation.atoms
        if self.reference.free:
            column, cells = self.family.mass_column, self.reference.cells
            assert column is not None
            atoms[:, column] += np.log(deviation.share * (1.0 + deviation.mass[cells]))
        shared = self.truth_family.split(self.truth)[1] + deviation.shared
        return self.family.join(atoms, shared)


def _times(factor: FloatArray, slopes: Derivatives) -> Derivatives:
    return Derivatives(*(factor * slope for slope in slopes))
