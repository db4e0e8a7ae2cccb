"""Linear dependencies among the derivatives of one atom, found and named as PDEs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations_with_replacement

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, short
from moestat.theory.identifiability.atoms import atom_of
from moestat.theory.identifiability.cancellation import Cancellation, find_cancellation
from moestat.theory.identifiability.derivatives import Derivatives, Term
from moestat.theory.identifiability.rank import Rank
from moestat.theory.identifiability.relations import (
    Relation,
    follow_from_first_order,
    number,
    sparse_relations,
    write_relation,
)


@dataclass(frozen=True)
class Dependencies:
    """Rank of a family of derivatives, and the relations in it by name."""

    title: str
    """Description of the functions."""
    functions: tuple[str, ...]
    """Labels of the functions."""
    rank: Rank
    """Numerical rank on a random design at random parameters."""
    exact_rank: int | None
    """Rank by exact arithmetic; None without sympy."""
    relations: tuple[Relation, ...]
    """One relation for each dependent function."""
    cancellation: Cancellation | None = None
    """Whether atoms that merge can cancel the function to second order; None where that was not
    asked for."""

    @property
    def settled(self) -> bool:
        """Whether the rank is clear, the exact one is the same, and all relations were found."""
        agree = self.exact_rank in (None, self.rank.rank)
        return self.rank.clear and agree and len(self.relations) == self.rank.nullity

    @property
    def independent(self) -> bool:
        """Whether the functions are linearly independent, by both ranks."""
        return self.rank.nullity == 0 and self.exact_rank in (None, self.rank.rank)

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
        if not self.settled:
            lines.append("  not settled: the rank is not clear, or not that of the relations")
        if self.independent:
            lines.append("  linearly independent")
        if self.cancellation is not None:
            lines.append(f"  {self.cancellation}")
        return "\n".join(lines)


def find_dependencies(
    gate: str | Mapping[str, object],
    expert: str | Mapping[str, object],
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
    gate, expert : str or mapping
        Names in ``moestat.model.gates.GATES`` and ``moestat.model.experts.EXPERTS``, or tables with
        ``name`` and options, as in `moestat.family`; here every gate goes with every expert.
    likelihood : str
        Name in ``moestat.model.likelihoods.LIKELIHOODS``; the function is u, weight times density.
        With ``"least-squares"`` it is F, weight times mean.
    n_features : int
        Number of inputs d.
    n_classes : int, optional
        Number of classes K, 2 by default; only where the response is a class.
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
        If a name is unknown, a size too small, `order` is not 1 or 2, a block in `at` does not
        exist, or the expert supplies one mean where the likelihood has a vector.
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
    PDE (8) of Pham et al. (2026):

    >>> found = find_dependencies("sigmoid-inner", "linear", "multinomial", order=1)
    >>> print(found.relations[0])
    ∂u/∂tau = -beta/tau·∂u/∂beta - alpha/tau·∂u/∂alpha
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {short(order)}")
    atom = atom_of(gate, expert, likelihood, n_features=n_features, n_classes=n_classes)
    every = range(len(atom.parameters))
    terms = [Term((j,)) for j in every]
    if order > 1:
        terms += [Term(pair) for pair in combinations_with_replacement(every, 2)]
    family = Derivatives(atom, terms, at or {})
    values = f" at {', '.join(f'{k} = {v}' for k, v in family.at.items())}" if at else ""
    title = (
        f"{_name(gate)} gate, {_name(expert)} expert, {likelihood}, d = {n_features}:"
        f" derivatives of {atom.symbol} to order {order}{values}"
    )
    dependencies = dependencies_among(family, title, exact=exact, seed=seed)
    return (
        dependencies
        if order < 2
        else replace(dependencies, cancellation=_cancellation(family, seed))
    )


def _cancellation(family: Derivatives, seed: int) -> Cancellation:
    """Whether merging atoms can cancel the function to second order.

    A mass adds the function itself.  Where weights are divided by their sum, numerator and
    denominator must cancel both: relations count that hold for the function and for the weight.
    """
    atom, rng = family.atom, np.random.default_rng(seed)
    if atom.has_mass:
        family = replace(family, terms=[*family.terms, Term(())])
    rank = family.generic(rng, with_weight=atom.has_mass).rank
    fixed = [
        j
        for j, p in enumerate(atom.parameters)
        if atom.channels[p.channel].shared or p.block == atom.gate.mass
    ]
    return find_cancellation(family.terms, rank.relations(), atom.names, fixed)


def _name(given: str | Mapping[str, object]) -> str:
    if isinstance(given, str):
        return given
    options = ", ".join(f"{k} {v}" for k, v in given.items() if k != "name")
    return f"{given['name']} ({options})" if options else str(given["name"])


def _use_sympy(exact: bool | None) -> bool:
    """Whether to use sympy: by default if it is installed, else as the caller wishes."""
    installed = find_spec("sympy") is not None
    if exact and not installed:
        raise ImportError("exact relations need sympy: pip install 'moestat[theory]'")
    return installed if exact is None else exact


def dependencies_among(
    family: Derivatives, title: str, *, exact: bool | None = None, seed: int = 0
) -> Dependencies:
    """Rank and relations of a family of derivatives; see `find_dependencies`."""
    draw = family.generic(np.random.default_rng(positive_int("seed", seed, 0, None)))
    approximate = sparse_relations(draw.columns, draw.rank)
    implied = follow_from_first_order(family.terms, approximate)
    if _use_sympy(exact):
        relations, exact_rank = _prove(family, approximate, draw.theta)
    else:
        relations, exact_rank = [number(relation, family.labels) for relation in approximate], None
    marked = tuple(
        replace(relation, implied=follows)
        for relation, follows in zip(relations, implied, strict=True)
        # Without a clear rank only what is proved is a relation.
        if relation.exact or draw.rank.clear
    )
    return Dependencies(title, tuple(family.labels), draw.rank, exact_rank, marked)


def _prove(
    family: Derivatives, approximate: Sequence[Mapping[int, float]], theta: FloatArray
) -> tuple[list[Relation], int]:
    """The relations, with exact coefficients where the registered functions confirm them.

    The second value is the exact rank.
    """
    import sympy

    from moestat.theory.identifiability.forms import SymbolicAtom

    forms = SymbolicAtom(family.atom, family.held)
    columns = [forms.collect(forms.derivatives(t, family.of_mean)) for t in family.terms]
    relations = []
    for relation in approximate:
        *others, last = relation
        exact = forms.solve(columns[last], [columns[i] for i in others])
        numbers = [-relation[i] / relation[last] for i in others]
        if exact is None or not np.allclose(
            [forms.value(c, theta) for c in exact], numbers, rtol=1e-5, atol=1e-9
        ):
            relations.append(number(relation, family.labels))
        else:
            coefficients = {**dict(zip(others, exact, strict=True)), last: sympy.Integer(-1)}
            relations.append(write_relation(coefficients, family.labels, _formula, exact=True))
    return relations, forms.rank(columns)


def _formula(value: object) -> str:
    import sympy

    return str(sympy.factor(value)).replace("**", "^")
