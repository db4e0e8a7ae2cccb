"""The same distance in arithmetic of any precision, from the registered functions themselves.

The functions of gates, experts and likelihoods are plain Python that also runs uncompiled. Here
they run on numbers of mpmath, as `moestat.theory.arithmetic` copies them, and what the fast path
computes from derivatives along a segment is compared with plain values of densities at 50 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

import numpy as np

from moestat.kernels.atom import build_atom
from moestat.theory.arithmetic import copier, mathematics
from moestat.theory.explorer._model import Deviation, Model

_Atom = tuple[np.ndarray, Any, int]
"""Parameters of an atom, the logarithm of its relative mass, and its cell."""


def exact_root(model: Model, deviation: Deviation, digits: int = 50) -> float:
    """Root mean square distance at the nodes of a model, in arithmetic of many digits.

    It is ``(E_X d_H^2)^(1/2)``, or the L2(mu) distance of regression functions.
    """
    import mpmath

    with mpmath.workdps(digits):
        return float(_Exact(model, mpmath.mp).root(deviation))


class _Exact:
    """One evaluation with the numbers of a context of mpmath."""

    def __init__(self, model: Model, mp: Any) -> None:
        self.model, self.mp = model, mp
        family, copy = model.family, _copier(mp)
        self.number = np.vectorize(mp.mpf, otypes=[object])
        if family.likelihood.block is None:
            self.gate = copy(family.gate.block)
            self.expert = copy(family.expert.block) if family.expert.block else None
        else:
            block, self.n_work = build_atom(
                family.gate.block,
                family.expert.block,
                family.likelihood.block,
                family.gate.reads_response,
            )
            self.block = copy(block)

    def root(self, deviation: Deviation) -> SupportsFloat:
        """Root of the mean square at the nodes."""
        model, nodes = self.model, self.model.nodes
        fitted = self._measure(deviation)
        truth_atoms, shared = model.truth_family.split(model.truth)
        true_atoms = [(atom, 0.0, j) for j, atom in enumerate(self.number(truth_atoms))]
        truth = true_atoms, self.number(shared)
        weight = self.number(nodes.weight) * self.number(nodes.mass)[nodes.owner]
        if model.family.is_regression:
            gap = self._function(*fitted) - self._function(*truth)
            return self.mp.sqrt(np.sum(weight * gap**2))
        roots = [np.array([self.mp.sqrt(v) for v in self._density(*m)]) for m in (fitted, truth)]
        return self.mp.sqrt(np.sum(weight * (roots[0] - roots[1]) ** 2) / 2)

    def _measure(self, deviation: Deviation) -> tuple[Sequence[_Atom], np.ndarray]:
        """Atoms with the logs of their relative masses and their cells, and shared parameters."""
        model, number = self.model, self.number
        reference = model.reference
        atoms = number(reference.atoms) + number(deviation.atoms)
        share = number(deviation.share)
        logs = []
        for i, j in enumerate(reference.cells):
            mine = share[reference.cells == j].sum()
            mass = share[i] / mine * (1 + number(deviation.mass[j])) if reference.free else 1
            logs.append(self.mp.log(mass))
        shared = number(model.truth_family.split(model.truth)[1]) + number(deviation.shared)
        return list(zip(atoms, logs, reference.cells, strict=True)), shared

    def _atom(self, atom: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-score and log-density, or mean, of one atom at every row."""
        model = self.model
        # Products of inputs keep their float coefficients.
        phi, both = self.number(model.phi), np.concatenate([atom, shared])
        eta = np.stack([both[at] @ phi[rows] for at, rows in model.reads])
        n, layout = eta.shape[1], model.family.layout
        low = phi[: 1 + model.family.n_features]

        def scratch(rows: int) -> np.ndarray:
            return np.full((rows, n), self.mp.mpf(0), dtype=object)

        a, value = scratch(1)[0], scratch(1)[0]
        pairs = len(eta) * (len(eta) + 1) // 2
        if model.family.is_regression:
            self.gate(eta[: layout[0]], low, n, 0, a, scratch(layout[0]), scratch(pairs))
            mean = eta[layout[1] : layout[1] + layout[2]]
            if self.expert is None:
                return a, mean[0]
            self.expert(mean, n, 0, value, scratch(len(mean)), scratch(pairs))
            return a, value
        work = scratch(self.n_work(len(eta), layout[2]))
        y = model.nodes.y
        y = self.number(y) if model.family.likelihood.support is None else y
        slopes = scratch(layout[0]), scratch(pairs), scratch(len(eta)), scratch(pairs)
        self.block(
            eta,
            layout,
            low,
            y,
            n,
            0,
            work,
            a,
            *slopes[:2],
            value,
            *slopes[2:],
        )
        return a, value

    def _function(self, atoms: Sequence[_Atom], shared: np.ndarray) -> np.ndarray:
        total = 0
        for atom, _, _ in atoms:
            a, mean = self._atom(atom, shared)
            total = total + np.array([self.mp.exp(v) for v in a]) * mean
        return np.asarray(total)

    def _density(self, atoms: Sequence[_Atom], shared: np.ndarray) -> np.ndarray:
        joint, gates = 0, 0
        for atom, log_mass, cell in atoms:
            a, value = self._atom(atom, shared)
            # As everywhere here, a top-K gate has the truth's active atoms.
            active = self.model.prior[cell] > 0.0
            gate = np.array([self.mp.exp(v + log_mass) for v in a]) * active
            gates = gates + gate
            joint = joint + gate * np.array([self.mp.exp(v) for v in value])
        return np.asarray(joint / gates)


def _copier(mp: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function that copies functions, with all that they call, to the arithmetic of mpmath."""
    one = mp.mpf(1)
    lowest: dict[str, Any] = {
        "exp": mp.exp,
        "decay": mp.exp,
        "decay_less_one": mp.expm1,
        "log": mp.log,
        "log1p_unit": lambda y: mp.log(one + y),
        "log1p_inverse": lambda y: (mp.log(one + y), one / (one + y)),
    }
    return copier(lowest, mathematics({"sqrt": mp.sqrt, "erfc": mp.erfc}))
