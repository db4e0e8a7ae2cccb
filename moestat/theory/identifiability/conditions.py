"""The identifiability conditions of the papers, checked as they are printed.

Each condition asks that derivatives of an atom, at any distinct parameters of any number of
atoms, are linearly independent functions of x.  A check looks at one atom in general position,
and at pairs of atoms that differ, but share blocks or have them with opposite sign: "any distinct
parameters" includes these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from moestat.base.registry import Registry
from moestat.base.types import FloatArray
from moestat.base.validate import positive_int
from moestat.theory.identifiability.atoms import Atom, atom_of
from moestat.theory.identifiability.dependencies import Dependencies, dependencies_among
from moestat.theory.identifiability.derivatives import Derivatives, Term, columns_of
from moestat.theory.identifiability.rank import Rank, numerical_rank
from moestat.theory.identifiability.relations import number, sparse_relations

_RESTS = ("same", "opposite")
_POINTS_PER_FUNCTION = 24
_DRAWS = 2  # of the parameters of two atoms; a coincidence must show in all


@dataclass(frozen=True)
class Part:
    """Derivatives of some orders in some blocks, at parameters some of which are held.

    `blocks` are the gate's; ``eta`` stands for all of the expert's.
    """

    blocks: tuple[str, ...]
    orders: tuple[int, ...]
    held: Mapping[str, int]


@dataclass(frozen=True)
class Condition:
    """A condition of a paper."""

    name: str
    """Name in `CONDITIONS`."""
    gate: str | None
    """The gate that it is about; None when it is about the expert alone."""
    parts: tuple[Part, ...]
    """The families of derivatives; empty for the expert's own derivatives and their products."""
    source: str
    """Paper and definition."""


_FULL = Part(("A", "b", "c", "eta"), (1,), {})
_PARTIAL = Part(("A", "c", "eta"), (1,), {})

CONDITIONS: Registry[Condition] = Registry("condition")
for _name, _gate, _parts, _source in (
    (
        "strong",
        "sigmoid-quadratic",
        (Part(("A", "b", "eta"), (1, 2), {"A": 0, "b": 0}), _FULL),
        "Yan et al. (2025), Definition 1",
    ),
    ("weak", "sigmoid-quadratic", (_FULL,), "Yan et al. (2025), Definition 2"),
    (
        "partial-strong",
        "sigmoid-partial",
        (Part(("A", "c"), (1, 2), {"A": 0}), _PARTIAL),
        "Yan et al. (2025), Definition 3, as printed: derivatives in (A, c)",
    ),
    (
        "partial-strong-eta",
        "sigmoid-partial",
        (Part(("A", "eta"), (1, 2), {"A": 0}), _PARTIAL),
        "Yan et al. (2025), Definition 3 with eta in place of c, as its exponents in N^q suggest",
    ),
    ("partial-weak", "sigmoid-partial", (_PARTIAL,), "Yan et al. (2025), Definition 4"),
    (
        "algebraic",
        None,
        (),
        "Nguyen et al. (2025), Sec. 3: first and second derivatives of g, products of first ones",
    ),
):
    CONDITIONS.register(Condition(_name, _gate, _parts, _source))


@dataclass(frozen=True)
class Coincidence:
    """Two atoms with distinct parameters whose functions are dependent."""

    pattern: Mapping[str, str]
    """Blocks of the expert, or ``"gate"`` for all of the gate's, in which the second atom has the
    ``"same"`` parameters as the first or ``"opposite"`` ones; all others are drawn anew."""
    extra: int
    """Dependencies beyond those that each of two such atoms has by itself."""
    example: str
    """One of them, with numbers where coefficients are not 1."""
    rank: Rank
    """Of the functions of both atoms."""

    def __str__(self) -> str:
        shared = ", ".join(f"{kind} {block}" for block, kind in self.pattern.items())
        return f"two atoms with {shared}: {self.extra} more, such as {self.example}"


@dataclass(frozen=True)
class ConditionCheck:
    """Whether an expert satisfies a condition."""

    condition: Condition
    """What was checked."""
    title: str
    """The expert and the number of inputs."""
    parts: tuple[Dependencies, ...]
    """One atom in general position, family by family."""
    coincidences: tuple[Coincidence, ...]
    """The least coincidences of two atoms that make their functions dependent."""

    @property
    def holds_generically(self) -> bool:
        """Whether the functions of one atom in general position are independent."""
        return all(part.independent for part in self.parts)

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the condition as printed."""
        return self.holds_generically and not self.coincidences

    def summary(self) -> str:
        """Verdict, ranks and relations as plain text."""
        verdict = (
            "no dependency found"
            if self.holds
            else "fails for one atom already"
            if not self.holds_generically
            else "holds for one atom in general position, fails for two"
        )
        lines = [f"{self.condition.name} ({self.condition.source}), {self.title}: {verdict}"]
        for part in self.parts:
            lines += [f"  {line}" for line in part.summary().splitlines()]
        lines += [f"  {coincidence}" for coincidence in self.coincidences]
        return "\n".join(lines)


def check_condition(
    condition: str,
    expert: str | Mapping[str, object],
    *,
    n_features: int = 1,
    exact: bool | None = None,
    seed: int = 0,
) -> ConditionCheck:
    """Check a condition of a paper for an expert.

    Parameters
    ----------
    condition : str
        Name in `CONDITIONS`: ``"strong"``, ``"weak"``, ``"partial-strong"``,
        ``"partial-strong-eta"``, ``"partial-weak"`` (Yan et al. (2025), Definitions 1 to 4) or
        ``"algebraic"`` (Nguyen et al. (2025), Sec. 3).
    expert, n_features, exact, seed
        As in `find_dependencies`.

    Returns
    -------
    ConditionCheck
        Ranks, relations by name and coincidences; ``summary()`` is a text.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    The feed-forward network that Nguyen et al. (2025) names as an example does not satisfy its
    condition:

    >>> found = check_condition("algebraic", {"name": "ffn", "hidden": 1}, exact=False)
    >>> print(found.parts[0].relations[2])
    ∂²g/∂W2² ≈ 0
    """
    chosen = CONDITIONS[condition]
    start = positive_int("seed", seed, 0, None)
    atom = atom_of(chosen.gate or "softmax", expert, n_features=n_features)
    title = f"{atom.expert.name} expert{_options(atom)}, d = {n_features}"
    if chosen.gate is None:
        family = Derivatives(atom, _algebraic(atom), of_mean=True)
        text = "derivatives of g and products"
        dependencies = dependencies_among(family, text, exact=exact, seed=seed)
        return ConditionCheck(chosen, title, (dependencies,), ())
    parts = []
    for part in chosen.parts:
        values = ", ".join(f"{k} = {v}" for k, v in part.held.items())
        text = (
            f"orders {' and '.join(map(str, part.orders))} in {', '.join(part.blocks)}"
            f"{f' at {values}' if values else ''}"
        )
        family = Derivatives(atom, _terms(atom, part), part.held)
        parts.append(dependencies_among(family, text, exact=exact, seed=seed))
    last = chosen.parts[-1]
    coincidences = _coincidences(atom, _terms(atom, last), start)
    return ConditionCheck(chosen, title, tuple(parts), tuple(coincidences))


def _options(atom: Atom) -> str:
    given = ", ".join(str(v) for v in atom.expert.options.values())
    return f" ({given})" if given else ""


def _expert_positions(atom: Atom) -> list[int]:
    """Parameters of the expert's mean."""
    n_gate = len(atom.gate.channels(atom.n_features))
    return [j for j, p in enumerate(atom.parameters) if p.channel >= n_gate]


def _terms(atom: Atom, part: Part) -> list[Term]:
    expert_positions = _expert_positions(atom)
    used = [
        j
        for j, p in enumerate(atom.parameters)
        if ("eta" in part.blocks if j in expert_positions else p.block in part.blocks)
    ]
    return [Term(at) for order in part.orders for at in combinations_with_replacement(used, order)]


def _algebraic(atom: Atom) -> list[Term]:
    positions = _expert_positions(atom)
    pairs = list(combinations_with_replacement(positions, 2))
    return (
        [Term((j,)) for j in positions] + [Term(p) for p in pairs] + [Term(p, True) for p in pairs]
    )


def _coincidences(atom: Atom, terms: Sequence[Term], seed: int) -> list[Coincidence]:
    """Least coincidences that add dependencies: of the whole gate and of the expert's blocks."""
    expert_positions = set(_expert_positions(atom))
    groups: dict[str, list[int]] = {}
    for j, parameter in enumerate(atom.parameters):
        groups.setdefault(parameter.block if j in expert_positions else "gate", []).append(j)
    coincidences: list[Coincidence] = []
    for size in range(1, len(groups) + 1):
        for chosen in combinations(groups, size):
            for kinds in product(_RESTS, repeat=size):
                pattern = dict(zip(chosen, kinds, strict=True))
                if size == len(groups) and "opposite" not in kinds:
                    continue
                if any(known.pattern.items() <= pattern.items() for known in coincidences):
                    continue
                draws = [_pair(atom, terms, groups, pattern, seed + k) for k in range(_DRAWS)]
                least = min(draws, key=lambda one: one.extra)
                if least.extra > 0 and least.rank.clear:
                    coincidences.append(least)
    return coincidences


def _pair(
    atom: Atom,
    terms: Sequence[Term],
    groups: Mapping[str, Sequence[int]],
    pattern: Mapping[str, str],
    seed: int,
) -> Coincidence:
    """The dependencies of two atoms, less those that each has by itself."""
    rng = np.random.default_rng(seed)
    theta, second = atom.draw(rng), atom.draw(rng)
    for name, kind in pattern.items():
        at = list(groups[name])
        second[at] = theta[at] if kind == "same" else -theta[at]
    X, y = atom.samples(_POINTS_PER_FUNCTION * len(terms), rng, theta)

    def columns(point: FloatArray) -> FloatArray:
        factor, jet = atom.functions(point, X, y)
        return np.exp(factor)[:, None] * columns_of(terms, jet)

    each = [columns(point) for point in (theta, second)]
    together = np.hstack(each)
    rank = numerical_rank(together)
    extra = rank.nullity - sum(numerical_rank(one).nullity for one in each)
    example = ""
    if extra > 0 and rank.clear:
        labels = [t.label(f"{atom.symbol}{mark}", atom.names) for mark in "₁₂" for t in terms]
        texts = [str(number(each, labels)) for each in sparse_relations(together, rank)]
        example = min((t for t in texts if "₁" in t and "₂" in t), key=len)
    return Coincidence(pattern, extra, example, rank)
