"""Orders that need no search: derivatives of the density at the truth decide them.

Let m atoms share the cell of the first true atom, each with a tenth of its mass at least, and let
the other true atom have one.  To second order the density changes by

    sum_j (mass and first derivatives of true atom j) + (1/2) M . (second derivatives of atom 1)

with any positive semidefinite M, the weighted sum of the products of displacements in the cell.
If no relation among these functions has a positive semidefinite M that is not 0, the change is at
least a multiple of trace M, so of D^2, for every m; two opposite displacements reach D^2: r = 2.
If the atom solves a heat equation, as a normal density with its mean and variance does, m atoms
that differ along it alone are a mixture of m normal laws at every input, whose distance can
be D^(2 m) (docs/theory/limit_law.md): r is 2 m at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray
from moestat.model.designs import Uniform
from moestat.model.family import Family
from moestat.theory.explorer._nodes import Nodes, make_nodes
from moestat.theory.identifiability.atoms import Atom, Jet
from moestat.theory.identifiability.cancellation import find_cancellation
from moestat.theory.identifiability.derivatives import Term
from moestat.theory.identifiability.rank import numerical_rank

__all__ = ["AT_LEAST", "BY_DERIVATIVES", "is_mixture", "order_by_derivatives"]

BY_DERIVATIVES = "by second derivatives"
"""What is told of a cell in which no displacements cancel to second order."""
AT_LEAST = "at least, by a heat equation"
"""What is told of a cell in which intercepts and variances alone make this order."""
_INPUTS, _NODES = Uniform(-5.0, 5.0), 40
"""Inputs at which derivatives are compared.  Whether analytic functions are independent does not
depend on where, but how clearly it shows does: more so where they are wide apart."""
_FEW = 400
"""Nodes at which a heat equation, of two functions only, is looked for."""
_SAME = 1e-9
"""Relative error of a relation between two derivatives that hold at every node."""

_Jets = tuple[Jet, Jet]
"""Derivatives of the weighted density and of the weight, each over its value."""


def is_mixture(model: Family) -> bool:
    """Whether the atoms of a cell share the mass of the true one, freely."""
    return not model.is_regression and model.gate.normalised and model.gate.mass is not None


def order_by_derivatives(model: Family, theta: FloatArray, size: int) -> tuple[float, str] | None:
    """The order of the worst deviation in a cell of the first true atom, without a search.

    Parameters
    ----------
    model : Family
        The family of the truth, whose gate is normalised and has free masses.
    theta : ndarray of shape (P,)
        The truth, packed, with nonsingular information.
    size : int
        Fitted atoms in the cell, 2 or more.

    Returns
    -------
    tuple of float and str, or None
        The order and what decides it; None where derivatives do not, or where the density is no
        analytic function of its parameters and inputs.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> blocks = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1], "b": [0, 1], "nu": [0.2, 0.3]}
    >>> order_by_derivatives(F, F.pack(blocks), 3)
    (6.0, 'at least, by a heat equation')
    """
    if not is_mixture(model):
        return None
    nodes = make_nodes(model, theta, _INPUTS, _NODES)
    atom = Atom(model.gate, model.expert, model.likelihood, model.n_features, model.n_classes)
    own = [_own(model, theta, i)[0] for i in range(model.n_experts)]
    free = np.flatnonzero(_own(model, theta, 0)[1]).tolist()
    few = slice(None, None, 1 + nodes.y.size // _FEW)
    at_few = [_jets(atom, each, nodes.X[:, few], nodes.y[few]) for each in own]
    if any(_is_heat(at_few, j, k) for j, k in permutations(free, 2)):
        return 2.0 * size, AT_LEAST
    if model.has_jumps or model.has_kinked_mean or model.gate.kink is not None:
        return None
    jets = [_jets(atom, each, nodes.X, nodes.y) for each in own]
    terms, columns = _functions(model, theta, atom, jets, nodes)
    rank = numerical_rank(columns)
    cancels = find_cancellation(terms, rank.relations(), atom.names)
    return (2.0, BY_DERIVATIVES) if rank.clear and cancels.status == "none" else None


def _own(model: Family, theta: FloatArray, i: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Parameters of atom i as `Atom` has them, and which are free.

    They are without its mass, and positive ones are not logs.
    """
    found, free = [], []
    for c, channel in enumerate(model.channels):
        is_mass = c < model.layout[0] and channel.intercept == model.gate.mass
        first = int(model.index[i, c])
        at = np.arange(first + is_mass, first + int(model.width[c]))
        found.append(np.exp(theta[at]) if channel.log else theta[at])
        free.append(model.lower[at] < model.upper[at])
    return np.concatenate(found), np.concatenate(free)


def _jets(atom: Atom, own: FloatArray, X: FloatArray, y: Any) -> _Jets:
    X = np.ascontiguousarray(X)
    return atom.functions(own, X, np.ascontiguousarray(y))[1], atom.weight(own, X)


def _functions(
    model: Family, theta: FloatArray, atom: Atom, jets: Sequence[_Jets], nodes: Nodes
) -> tuple[list[Term], FloatArray]:
    """Relative changes of the density by each term, in root mean square.

    Terms of the first atom keep their positions; those of others and of parameters that all atoms
    share are of first order, and what they are does not matter.
    """
    prior, posterior, log_density = model.rowwise(theta, nodes.X, nodes.y)

    def column(i: int, term: Term) -> FloatArray:
        density, weight = jets[i]
        return posterior[i] * term.column(density) - prior[i] * term.column(weight)

    is_shared = np.array([atom.channels[each.channel].shared for each in atom.parameters])
    free = _own(model, theta, 0)[1]
    shared, own = (np.flatnonzero(free & kind).tolist() for kind in (is_shared, ~is_shared))
    of_each = [Term(()), *(Term((j,)) for j in own)]
    of_first = [*of_each, *(Term(pair) for pair in combinations_with_replacement(own, 2))]
    terms, columns = list(of_first), [column(0, term) for term in of_first]
    for i in range(1, model.n_experts):
        terms += [Term(())] * len(of_each)
        columns += [column(i, term) for term in of_each]
    for j in shared:
        terms.append(Term(()))
        columns.append(np.sum([column(i, Term((j,))) for i in range(model.n_experts)], axis=0))
    root = np.sqrt(nodes.mass[nodes.owner] * nodes.weight * np.exp(log_density))
    return terms, np.stack(columns, axis=1) * root[:, None]


def _is_heat(jets: Sequence[_Jets], j: int, k: int) -> bool:
    """Whether a second derivative is one constant times a first one, at all atoms.

    The weight must solve the same equation; mostly it depends on neither parameter.
    """
    factors = np.array([_factor(density.second[j, j], density.first[k]) for density, _ in jets])
    if not np.ptp(factors) <= _SAME * abs(factors[0]):
        return False
    return all(
        np.allclose(weight.second[j, j], factors[0] * weight.first[k], rtol=0.0, atol=_SAME)
        for _, weight in jets
    )


def _factor(left: FloatArray, right: FloatArray) -> float:
    """The c with left = c right; NaN without one, or where one of them is 0."""
    scale, unit = float(np.linalg.norm(left)), float(right @ right)
    if not scale > 0.0 or not unit > 0.0:
        return np.nan
    factor = float(left @ right) / unit
    return factor if float(np.linalg.norm(left - factor * right)) <= _SAME * scale else np.nan
