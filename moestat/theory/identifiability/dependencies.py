"""Linear dependencies among the derivatives of one atom, found and named as PDEs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from moestat._types import FloatArray
from moestat._validate import positive_int
from moestat.theory.identifiability.atoms import Atom, atom_of
from moestat.theory.identifiability.cancellation import Cancellation, find_cancellation
from moestat.theory.identifiability.rank import Rank, numerical_rank
from moestat.theory.identifiability.terms import Term

__all__ = ["Dependencies", "Relation", "Term", "dependencies_among", "find_dependencies"]

_POINTS_PER_FUNCTION = 12
_LEAST_POINTS = 240
_DRAWS = 3
_RESIDUAL = 1e-8  # of a column of length 1 that counts as a combination of others
_ORDERS = 12  # random orders of the columns in the search for short relations
_SMALL = 1e-7  # share of the largest coefficient below which one is left out


@dataclass(frozen=True)
class Relation:
    """A linear relation ``left = sum of coefficient times function``, the same for all x.

    Parameters
    ----------
    left : str
        The function that depends on the others.
    right : mapping of str to str
        Coefficients of the others as text: exact functions of the parameters where sympy found
        them, numbers at one random point otherwise; empty where the left one is zero.
    exact : bool
        Whether the relation is proved, for all parameters.
    implied : bool
        Whether it follows by differentiating a relation of first order.
    """

    left: str
    right: Mapping[str, str]
    exact: bool
    implied: bool = False

    def __str__(self) -> str:
        sign = "=" if self.exact else "≈"
        return f"{self.left} {sign} {_sum_text(self.right)}"


def _sum_text(right: Mapping[str, str]) -> str:
    text = ""
    for label, coefficient in right.items():
        negative = coefficient.startswith("-")
        size = coefficient.lstrip("-") if negative else coefficient
        if any(mark in size[1:] for mark in "+-") and not size.startswith("("):
            # A sum: its sign stays inside.
            negative, size = False, f"({coefficient})"
        part = label if size == "1" else f"{size}·{label}"
        join = (" - " if negative else " + ") if text else ("-" if negative else "")
        text += join + part
    return text or "0"


@dataclass(frozen=True)
class Dependencies:
    """Rank of a family of derivatives, and the relations in it by name.

    Parameters
    ----------
    title : str
        Which functions these are.
    functions : tuple of str
        Labels of the functions.
    rank : Rank
        Numerical rank on a random design at random parameters.
    exact_rank : int or None
        Rank by exact arithmetic; None without sympy.
    relations : tuple of Relation
        One for each dependent function.
    cancellation : Cancellation or None
        Whether atoms that merge can cancel the function to second order; None where that was not
        asked for.
    """

    title: str
    functions: tuple[str, ...]
    rank: Rank
    exact_rank: int | None
    relations: tuple[Relation, ...]
    cancellation: Cancellation | None = None

    @property
    def independent(self) -> bool:
        """Whether the functions are linearly independent."""
        return self.rank.nullity == 0

    @property
    def primitive(self) -> tuple[Relation, ...]:
        """Relations that do not follow from those of first order."""
        return tuple(r for r in self.relations if not r.implied)

    def summary(self) -> str:
        """Rank, gap and relations as plain text."""
        exact = "" if self.exact_rank is None else f"; exact rank {self.exact_rank}"
        lines = [self.title, f"  {self.rank}{exact}"]
        lines += [f"  {relation}" for relation in self.primitive]
        implied = len(self.relations) - len(self.primitive)
        if implied:
            lines.append(f"  and {implied} more that follow by differentiating these")
        if self.independent:
            lines.append("  linearly independent")
        if self.cancellation is not None:
            lines.append(f"  {self.cancellation}")
        return "\n".join(lines)


def find_dependencies(
    gate: str | Mapping[str, Any],
    expert: str | Mapping[str, Any],
    likelihood: str = "least-squares",
    *,
    n_features: int = 1,
    n_classes: int | None = None,
    order: int = 2,
    at: Mapping[str, int] | None = None,
    exact: bool | None = None,
    seed: int = 0,
) -> Dependencies:
    """The linear PDEs with coefficients constant in x that an atom satisfies, found from scratch.

    Parameters
    ----------
    gate, expert, likelihood, n_features, n_classes
        As in `atom_of`.  With a likelihood the function is u, weight times density; without it
        is F, weight times mean.
    order : {1, 2}
        Highest order of the derivatives.
    at : mapping of str to int, optional
        Blocks held at a number at which the derivatives are taken, such as ``{"A": 0, "b": 0}``;
        all others are random.
    exact : bool, optional
        Whether to prove the relations with sympy; by default if it is installed.
    seed : int
        Of the random design and parameters.

    Returns
    -------
    Dependencies
        Rank, gap and relations; ``summary()`` is a text.

    Raises
    ------
    ValueError
        If a name is unknown, `order` is not 1 or 2, or a block in `at` does not exist.
    ImportError
        If `exact` is true and sympy is not installed.

    Notes
    -----
    Columns of a collocation matrix are the derivatives at samples of a random design, at random
    parameters.  Its null space by singular values gives the number of relations; each dependent
    column is then expressed by as few others as the order of the columns allows, and the
    coefficients, as functions of the parameters, are solved for exactly.

    Examples
    --------
    PDE (8) of mlmoe (003):

    >>> found = find_dependencies("sigmoid-inner", "linear", "multinomial", order=1)
    >>> print(found.relations[0])
    ∂u/∂tau = -beta/tau·∂u/∂beta - alpha/tau·∂u/∂alpha
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    atom = atom_of(gate, expert, likelihood, n_features=n_features, n_classes=n_classes)
    every = range(len(atom.parameters))
    terms = [Term((j,)) for j in every]
    if order > 1:
        terms += [Term(pair) for pair in combinations_with_replacement(every, 2)]
    held = held_parameters(atom, at or {})
    where = f" at {', '.join(f'{k} = {v}' for k, v in (at or {}).items())}" if at else ""
    title = (
        f"{_name(gate)} gate, {_name(expert)} expert, {likelihood}, d = {n_features}:"
        f" derivatives of {atom.symbol} to order {order}{where}"
    )
    found = dependencies_among(atom, terms, title, held, exact=exact, seed=seed)
    if order < 2:
        return found
    return replace(found, cancellation=_cancellation(atom, terms, held, seed))


def _cancellation(
    atom: Atom, terms: Sequence[Term], held: Mapping[str, int], seed: int
) -> Cancellation:
    """What merging atoms can cancel.

    A mass adds the function itself.  Where weights are divided by their sum, numerator and
    denominator must cancel both: relations count that hold for the function and for the weight.
    """
    all_terms = [*terms, Term(())] if atom.has_mass else list(terms)
    rng = np.random.default_rng(seed)
    rows = _with_weights if atom.has_mass else _collocation
    rank = _generic(atom, all_terms, held, atom.symbol, rng, rows)[2]
    shared = [
        j
        for j, p in enumerate(atom.parameters)
        if atom.channels[p.channel].shared or p.block == atom.gate.mass
    ]
    kept = rank.scale > 0.0
    null = np.where(kept[:, None], rank.null_space / np.where(kept, rank.scale, 1.0)[:, None], 0.0)
    null = np.column_stack([null, np.eye(len(all_terms))[:, ~kept]])
    return find_cancellation(all_terms, null, atom.names, shared)


def _name(given: str | Mapping[str, Any]) -> str:
    if isinstance(given, str):
        return given
    options = ", ".join(f"{k} {v}" for k, v in given.items() if k != "name")
    return f"{given['name']} ({options})" if options else str(given["name"])


def held_parameters(atom: Atom, at: Mapping[str, int]) -> dict[str, int]:
    """Names of the parameters of the blocks in `at`, with their values.

    Raises
    ------
    ValueError
        If there is no such block.
    """
    blocks = list(dict.fromkeys(p.block for p in atom.parameters))
    unknown = sorted(set(at) - set(blocks))
    if unknown:
        raise ValueError(f"at: unknown block {unknown[0]!r}; known: {', '.join(blocks)}")
    return {p.name: at[p.block] for p in atom.parameters if p.block in at}


def use_sympy(exact: bool | None) -> bool:
    """Whether to use sympy, given the caller's wish.

    Raises
    ------
    ImportError
        If it is wanted and not installed.
    """
    installed = find_spec("sympy") is not None
    if exact and not installed:
        raise ImportError("exact relations need sympy: pip install 'moestat[theory]'")
    return installed if exact is None else exact


def dependencies_among(
    atom: Atom,
    terms: Sequence[Term],
    title: str,
    held: Mapping[str, int],
    *,
    exact: bool | None = None,
    seed: int = 0,
    symbol: str | None = None,
) -> Dependencies:
    """Rank and relations of the given terms; see `find_dependencies`.

    `symbol` "g" stands for the expert's mean in place of the atom's function.
    """
    rng = np.random.default_rng(positive_int("seed", seed, 0))
    symbol = symbol or atom.symbol
    labels = [term.label(symbol, atom.names) for term in terms]
    theta, columns, rank = _generic(atom, terms, held, symbol, rng, _collocation)
    found = _relations(columns, rank)
    implied = _implied(terms, found)
    if use_sympy(exact):
        relations, exact_rank = _proved(atom, terms, labels, held, symbol, found, theta)
    else:
        relations, exact_rank = relations_among(columns, rank, labels), None
    marked = tuple(
        Relation(r.left, r.right, r.exact, follows)
        for r, follows in zip(relations, implied, strict=True)
    )
    return Dependencies(title, tuple(labels), rank, exact_rank, marked)


def _collocation(
    atom: Atom,
    terms: Sequence[Term],
    held: Mapping[str, int],
    symbol: str,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Random parameters (p,), and functions (n, q) on a random design there."""
    theta = atom.draw(rng)
    for j, name in enumerate(atom.names):
        theta[j] = held.get(name, theta[j])
    X, y = atom.samples(max(_LEAST_POINTS, _POINTS_PER_FUNCTION * len(terms)), rng, theta)
    jet = atom.mean(theta, X) if symbol == "g" else atom.functions(theta, X, y)[1]
    return theta, np.stack([term.column(jet) for term in terms], axis=1)


def _with_weights(
    atom: Atom,
    terms: Sequence[Term],
    held: Mapping[str, int],
    symbol: str,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The functions and below them the same derivatives of the weight."""
    theta, columns = _collocation(atom, terms, held, symbol, rng)
    X, _ = atom.samples(columns.shape[0], rng, theta)
    jet = atom.weight(theta, X)
    return theta, np.vstack([columns, np.stack([term.column(jet) for term in terms], axis=1)])


def _generic(
    atom: Atom,
    terms: Sequence[Term],
    held: Mapping[str, int],
    symbol: str,
    rng: np.random.Generator,
    rows: Callable[..., tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray, Rank]:
    """The draw of parameters with the largest rank, which is the one in general position."""
    draws = []
    for _ in range(_DRAWS):
        theta, columns = rows(atom, terms, held, symbol, rng)
        draws.append((theta, columns, numerical_rank(columns)))
    return max(draws, key=lambda draw: (draw[2].rank, draw[2].gap))


def _relations(columns: FloatArray, rank: Rank) -> list[dict[int, float]]:
    """A basis of the null space, as sparse as found: zeros, multiples, combinations.

    Each relation holds the coefficients of its functions, which add up to zero.
    """
    scaled = np.where(rank.scale > 0.0, columns / np.where(rank.scale > 0.0, rank.scale, 1.0), 0.0)
    scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    found: list[dict[int, float]] = []
    heads: list[int] = []
    for j in range(scaled.shape[1]):
        if rank.scale[j] == 0.0:
            found.append({j: 1.0})
            continue
        cosines = scaled[:, heads].T @ scaled[:, j]
        distances = np.linalg.norm(scaled[:, heads] * cosines - scaled[:, [j]], axis=0)
        if heads and distances.min() < _RESIDUAL:
            i = int(np.argmin(distances))
            found.append({heads[i]: float(cosines[i]), j: -1.0})
        else:
            heads.append(j)
    found += _circuits(scaled, heads, rank.nullity - len(found))
    if len(found) != rank.nullity:
        raise ArithmeticError(
            f"{len(found)} relations but a null space of dimension {rank.nullity}:"
            f" the rank is not clear (gap {rank.gap:.1e})"
        )
    return [
        {i: w / (rank.scale[i] or 1.0) for i, w in sorted(relation.items())}
        for relation in sorted(found, key=lambda relation: (max(relation), min(relation)))
    ]


def _circuits(scaled: FloatArray, heads: Sequence[int], count: int) -> list[dict[int, float]]:
    """`count` independent relations among the heads with few functions each.

    A column as a combination of independent ones before it is a relation from which no function
    can be left out.  Different orders of the columns give different ones; the shortest are kept.
    """
    if count <= 0:
        return []
    rng = np.random.default_rng(0)
    orders = [
        list(heads),
        list(heads)[::-1],
        *(list(rng.permutation(heads)) for _ in range(_ORDERS)),
    ]
    candidates: dict[tuple[int, ...], dict[int, float]] = {}
    for order in orders:
        for relation in _in_order(scaled, order):
            candidates.setdefault(tuple(sorted(relation)), relation)
    chosen: list[dict[int, float]] = []
    basis = np.zeros((scaled.shape[1], 0))
    for support in sorted(candidates, key=lambda support: (len(support), support)):
        relation = candidates[support]
        vector = np.zeros(scaled.shape[1])
        vector[list(relation)] = list(relation.values())
        vector /= np.linalg.norm(vector)
        rest = vector - basis @ (basis.T @ vector)
        if np.linalg.norm(rest) > 1e-6:
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            chosen.append(relation)
        if len(chosen) == count:
            break
    return chosen


def _in_order(scaled: FloatArray, order: Sequence[int]) -> list[dict[int, float]]:
    """The relation of each column that depends on those before it."""
    found = []
    pivots: list[int] = []
    for j in order:
        basis = scaled[:, pivots]
        weights = np.linalg.lstsq(basis, scaled[:, j], rcond=None)[0] if pivots else np.empty(0)
        if not pivots or np.linalg.norm(basis @ weights - scaled[:, j]) >= _RESIDUAL:
            pivots.append(j)
            continue
        used = np.flatnonzero(np.abs(weights) > _SMALL * np.abs(weights).max())
        weights = np.linalg.lstsq(basis[:, used], scaled[:, j], rcond=None)[0]
        relation = {int(pivots[i]): float(w) for i, w in zip(used, weights, strict=True)}
        found.append({**relation, int(j): -1.0})
    return found


def _implied(terms: Sequence[Term], found: Sequence[Mapping[int, float]]) -> list[bool]:
    """Which relations follow by differentiating those of first order.

    Differentiating ``sum c_j d_j u = 0`` once more gives ``sum c_j d_j d_k u`` and terms of first
    order; so the parts of second order tell.
    """
    p = 1 + max((j for term in terms for j in term.at), default=0)
    if any(term.product for term in terms):
        return [False] * len(found)
    first, parts = [], []
    for relation in found:
        vector, square = np.zeros(p), np.zeros((p, p))
        for i, weight in relation.items():
            at = terms[i].at
            if len(at) == 1:
                vector[at[0]] += weight
            elif len(at) == 2:
                square[at] += 0.5 * weight
                square[at[::-1]] += 0.5 * weight
        parts.append(square)
        if not square.any():
            first.append(vector)
    known = []
    for vector in first:
        for k in range(p):
            outer = np.outer(vector, np.eye(p)[k])
            known.append((outer + outer.T).ravel())
    follows = []
    for square in parts:
        if not square.any():
            follows.append(False)
            continue
        target = square.ravel() / np.linalg.norm(square)
        basis = np.stack(known, axis=1) if known else np.zeros((p * p, 0))
        rest = target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0] if known else target
        inside = bool(np.linalg.norm(rest) < 1e-6)
        follows.append(inside)
        if not inside:
            known.append(target)
    return follows


def relations_among(columns: FloatArray, rank: Rank, labels: Sequence[str]) -> list[Relation]:
    """Numerical relations among columns (n, q) of a given rank."""
    return [_written(r, labels, _number, exact=False) for r in _relations(columns, rank)]


def _written(
    relation: Mapping[int, Any], labels: Sequence[str], text: Callable[[Any], str], exact: bool
) -> Relation:
    """A relation solved for the function that gives the shortest text, the last one of equals."""
    best: Relation | None = None
    for j in sorted(relation, reverse=True):
        right = {labels[i]: text(-c / relation[j]) for i, c in relation.items() if i != j}
        one = Relation(labels[j], right, exact)
        if best is None or len(str(one)) < len(str(best)):
            best = one
    assert best is not None
    return best


def _proved(
    atom: Atom,
    terms: Sequence[Term],
    labels: Sequence[str],
    held: Mapping[str, int],
    symbol: str,
    found: Sequence[Mapping[int, float]],
    theta: FloatArray,
) -> tuple[list[Relation], int]:
    """The relations with exact coefficients where these are those of the registered functions."""
    import sympy as sp

    from moestat.theory.identifiability.forms import SymbolicAtom

    forms = SymbolicAtom(atom, dict(held))

    def expressions(term: Term) -> list[Any]:
        if symbol != "g":
            return forms.derivatives(term.at)
        if term.product:
            return [forms.mean_derivative(term.at[:1]) * forms.mean_derivative(term.at[1:])]
        return [forms.mean_derivative(term.at)]

    columns = [forms.collect(expressions(term)) for term in terms]
    relations = []
    for relation in found:
        *others, last = relation
        exact = forms.solve(columns[last], [columns[i] for i in others])
        numbers = [-relation[i] / relation[last] for i in others]
        if exact is None or not np.allclose(
            [forms.value(c, theta) for c in exact], numbers, rtol=1e-5, atol=1e-9
        ):
            relations.append(_written(relation, labels, _number, exact=False))
        else:
            whole = {**dict(zip(others, exact, strict=True)), last: sp.Integer(-1)}
            relations.append(_written(whole, labels, _formula, exact=True))
    return relations, forms.rank(columns)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _formula(value: Any) -> str:
    import sympy as sp

    return str(sp.factor(value)).replace("**", "^")
