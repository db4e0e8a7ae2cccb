"""Second derivatives of two classes under sigmoid gates: independent, with tiny singular values.

Behind the fact second-order-classes on Theorem 1 of Pham et al. (2026).  Of two atoms on two
classes and one input the functions are those by which the densities of all measures near the
truth differ from it, up to second order; see "Two classes, cells of any size" in
docs/theory/short_proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.claims.kinds import InequalityEvidence
from experiments.claims.trial import Trial

__all__ = ["SECOND_ORDER", "least_singular_value"]

_DIGITS, _NODES, _REACH = 60, 48, 2.0
_TRUTHS = 3
_LEAST = 1e-30
"""Singular values from which on functions are independent: that of dependent ones is rounding,
1e-60."""
_ATLAS = (
    (-0.373086, 1.700089, 1.081748, -1.699249, -0.840710),
    (0.0, -0.968578, 1.306597, 0.879978, -0.211105),
)
"""The truth of the atlas of rates, at which a search in double precision takes d for 0."""

Atom = Sequence[float]
"""gamma, alpha, beta, a, b."""


def _powers(function: Any, x: Any, degree: int) -> list[Any]:
    return [function * x**power for power in range(degree + 1)]


def _functions(atoms: Sequence[Atom], x: Any, mp: Any) -> list[Any]:
    """Values of all functions at one input."""

    def sigmoid(s: Any) -> Any:
        return 1 / (1 + mp.exp(-s))

    gates = [sigmoid(alpha * x + beta) for _, alpha, beta, _, _ in atoms]
    experts = [sigmoid(a * x + b) for *_, a, b in atoms]
    masses = [mp.exp(gamma) for gamma, *_ in atoms]
    weights = [mass * gate for mass, gate in zip(masses, gates, strict=True)]
    total = sum(weights)
    share = sum(w * f for w, f in zip(weights, experts, strict=True)) / total
    found = [weights[0] / total * (experts[0] - share)]  # the other atom's is minus this one
    for mass, gate, expert in zip(masses, gates, experts, strict=True):
        slope, steep = gate * (1 - gate), expert * (1 - expert)
        factor = mass / total
        found += _powers(factor * slope * (expert - share), x, 1)
        found += _powers(factor * gate * steep, x, 1)
        found += _powers(factor * slope * (1 - 2 * gate) * (expert - share), x, 2)
        found += _powers(factor * slope * steep, x, 2)
        found += _powers(factor * gate * steep * (1 - 2 * expert), x, 2)
    return found


def least_singular_value(atoms: Sequence[Atom], digits: int = _DIGITS) -> float:
    """Least singular value of the functions up to second order, inputs uniform on [-2, 2].

    Parameters
    ----------
    atoms : sequence of two sequences of five floats
        gamma, alpha, beta, a and b of each atom.
    digits : int
        Decimal digits of the arithmetic.

    Returns
    -------
    float
        Least singular value of the functions in L2, each with norm 1.

    Examples
    --------
    Where a gate has no slope its derivative in beta is a multiple of the gate.

    >>> least_singular_value([(0.0, 0.0, 0.5, 1.5, 0.3), (0.0, 1.1, -0.2, -0.7, 0.4)]) < 1e-50
    True
    """
    import mpmath

    with mpmath.workdps(digits):
        mp = mpmath.mp
        nodes, mass = np.polynomial.legendre.leggauss(_NODES)
        exact = [[mp.mpf(float(value)) for value in atom] for atom in atoms]
        rows = [
            [mp.sqrt(mp.mpf(weight) / 2) * value for value in _functions(exact, mp.mpf(x), mp)]
            for x, weight in zip((_REACH * nodes).tolist(), mass.tolist(), strict=True)
        ]
        matrix = mp.matrix(rows)
        for column in range(matrix.cols):
            norm = mp.norm(matrix[:, column])
            for row in range(matrix.rows):
                matrix[row, column] /= norm
        return float(min(mp.svd_r(matrix, compute_uv=False)))


def _second_order() -> InequalityEvidence:
    """Independent at the atlas's truth and at random ones: a singular value is at least 1e-30."""
    rng = np.random.default_rng(0)
    truths = [_ATLAS]
    for _ in range(_TRUTHS):
        drawn = rng.uniform(0.5, 1.5, (2, 5)) * rng.choice([-1.0, 1.0], (2, 5))
        truths.append(drawn.tolist())
    values = [least_singular_value(atoms) for atoms in truths]
    detail = (
        f"least singular values {min(values[1:]):.0e} to {max(values[1:]):.0e}, at the atlas's"
        f" truth {values[0]:.0e}, in {_DIGITS} digits"
    )
    # In decades: what counts is how far a value is above rounding.
    return InequalityEvidence(math.log10(_LEAST) - math.log10(min(values)), len(values), detail)


SECOND_ORDER = Trial("mlmoe second-order", _second_order)
