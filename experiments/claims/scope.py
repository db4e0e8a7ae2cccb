"""What a claim quantifies over, as data: models, parameter set, conditions, truths.

A claim that nothing refutes must have no witness inside its scope; `inside` asks a witness of a
fact whether it lies there, condition by condition, on its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from experiments.claims.fact import EVERY, ZERO, Fact
from experiments.claims.kinds import Sequence, Witness
from experiments.claims.witnesses.witness import Instance, Pair, Path
from moestat.base.registry import table_of
from moestat.base.types import FloatArray
from moestat.metrics.losses import make_loss, voronoi_loss
from moestat.model.family import Family

__all__ = [
    "ALL",
    "ALMOST_ALL",
    "BOTH",
    "CONDITIONS",
    "DENSITY",
    "EQUATION",
    "EXACT",
    "EXPERTS",
    "NO_ESTIMATOR",
    "OVER",
    "PARAMETERS",
    "SOME",
    "Condition",
    "Models",
    "Scope",
    "contradicts",
    "expert_kind",
    "inside",
    "instances",
]

ALL, ALMOST_ALL, SOME = "all", "almost all", "some"
"""Of which truths a claim speaks."""
EXACT, OVER, BOTH = "exact", "over", "both"
"""As many fitted atoms as the truth has, more, or either."""
PARAMETERS, EXPERTS, DENSITY = "parameters", "experts", "density"
NO_ESTIMATOR, EQUATION = "no estimator", "equation"
"""What is said to converge or to be identified; or that no estimator converges, or an equation."""
_ASSERTED = {
    PARAMETERS: "on parameters",
    EXPERTS: "on experts",
    DENSITY: "on the density",
    NO_ESTIMATOR: "that no estimator converges, or none faster",
    EQUATION: "an equation or a definition",
}
"""The same in words."""
AWAY = 0.05
"""A slope at least this far from 0 counts as bounded away from it: witnesses that run into 0 end
below."""
_CLOSE = 1e-9


@dataclass(frozen=True)
class Models:
    """Families of a claim: None for any.

    Parameters
    ----------
    likelihood : str
        Name of the likelihood.
    gates : tuple of str
        Names of gates.
    experts : tuple of str or None
        Kinds of experts as `expert_kind` tells them.
    """

    likelihood: str
    gates: tuple[str, ...]
    experts: tuple[str, ...] | None = None

    def hold(self, model: Family) -> bool:
        """Whether a family is one of these."""
        table = table_of(model.gate)
        gate = table if isinstance(table, str) else str(table["name"])
        return (
            model.likelihood.name == self.likelihood
            and gate in self.gates
            and (self.experts is None or expert_kind(model) in self.experts)
        )


def expert_kind(model: Family) -> str:
    """The kind of a family's experts, such as ``"gelu"`` or ``"weighted gelu"``.

    Examples
    --------
    >>> from moestat import family
    >>> expert_kind(family("gaussian", gate="softmax", n_experts=2))
    'linear'
    """
    table = table_of(model.expert)
    if isinstance(table, str):
        return table
    if table["name"] != "activation":
        return str(table["name"])
    weighted = "weighted " if table.get("weighted", True) else ""
    return f"{weighted}{table['activation']}"


@dataclass(frozen=True)
class Condition:
    """A condition of a claim, and whether a witness meets it.

    Parameters
    ----------
    text : str
        The condition in words.
    holds : callable
        ``holds(instance)``: whether the truth and the other measure of a witness meet it.
    """

    text: str
    holds: Callable[[Instance], bool]


def _apart(values: FloatArray) -> bool:
    """Whether no two numbers of a vector are equal."""
    flat = np.sort(np.ravel(values))
    return bool(flat.size < 2 or np.diff(flat).min() > _CLOSE)


def _slopes(instance: Instance) -> FloatArray:
    """Slopes of the true gates, one row each."""
    return np.atleast_1d(np.asarray(instance.true_blocks["alpha"], float)).reshape(
        instance.truth.n_experts, -1
    )


def _no_slope_is_zero(instance: Instance) -> bool:
    return bool(np.abs(_slopes(instance)).max(axis=1).min() > _CLOSE)


def _neither_equal_nor_opposite(instance: Instance) -> bool:
    rows = _slopes(instance)
    first, second = np.triu_indices(len(rows), 1)
    equal = np.abs(rows[first] - rows[second]).max(axis=1) <= _CLOSE
    opposite = np.abs(rows[first] + rows[second]).max(axis=1) <= _CLOSE
    return not bool((equal | opposite).any())


def _class_slopes_apart(instance: Instance) -> bool:
    return all(_apart(row) for row in np.asarray(instance.true_blocks["a"], float))


def _masses_up_to_a_factor(instance: Instance) -> bool:
    """Whether the two differ by more than a common factor of their masses."""
    loss = make_loss(instance.loss) if isinstance(instance.loss, str) else instance.loss
    options = {key: value for key, value in instance.options.items() if key != "masses"}
    if loss.masses == "given":
        loss = replace(loss, masses="normalised")
    return float(voronoi_loss(*instance.measures(), loss, **options)) >= instance.least_loss


def _alpha_away_from_zero(instance: Instance) -> bool:
    sets = (instance.true_blocks, instance.other_blocks)
    sizes = [np.abs(np.ravel(np.asarray(blocks["alpha"], float))).min() for blocks in sets]
    return bool(min(sizes) >= AWAY)


def _no_constant_line(instance: Instance) -> bool:
    return bool(np.abs(np.ravel(np.asarray(instance.true_blocks["a"], float))).min() > _CLOSE)


def _positions_inside(instance: Instance) -> bool:
    places = np.ravel(_slopes(instance))
    return bool(((places > instance.low) & (places < instance.high)).all())


def _temperature_fixed(instance: Instance) -> bool:
    one, two = (np.ravel(b["tau"]) for b in (instance.true_blocks, instance.other_blocks))
    return bool(np.allclose(one, two))


def _each_is_active(instance: Instance) -> bool:
    x = np.linspace(instance.low, instance.high, 401)
    a, b = (np.ravel(np.asarray(instance.true_blocks[name], float)) for name in "ab")
    size = np.abs(np.outer(a, x) + b[:, None])
    active = int(instance.options.get("active", 1))
    return bool((np.argsort(np.argsort(-size, axis=0), axis=0) < active).any(axis=1).all())


def _flat_gates(instance: Instance) -> bool:
    return all(
        np.abs(np.ravel(np.asarray(blocks["A"], float))).max() <= _CLOSE
        for blocks in (instance.true_blocks, instance.other_blocks)
    )


CONDITIONS: Mapping[str, Condition] = {
    "two experts": Condition("k* >= 2", lambda found: found.truth.n_experts >= 2),
    "slopes not 0": Condition("slopes of gates are not 0", _no_slope_is_zero),
    "slopes neither equal nor opposite": Condition(
        "slopes of gates are pairwise neither equal nor opposite", _neither_equal_nor_opposite
    ),
    "class slopes distinct": Condition(
        "class slopes of each expert are pairwise distinct", _class_slopes_apart
    ),
    "masses up to a factor": Condition("masses up to a common factor", _masses_up_to_a_factor),
    "alpha away from 0": Condition("alpha bounded away from 0", _alpha_away_from_zero),
    "no constant line": Condition("no line is constant", _no_constant_line),
    "positions inside": Condition("positions inside the inputs", _positions_inside),
    "temperature fixed": Condition("tau fixed", _temperature_fixed),
    "each is active": Condition(
        "every expert is among the top K on a set of positive measure", _each_is_active
    ),
    "A = 0": Condition("gates of over-specified atoms at A = 0", _flat_gates),
}
"""By name."""


@dataclass(frozen=True)
class Scope:
    """What a claim quantifies over.

    Parameters
    ----------
    models : Models
        Families.
    theta : str
        The parameter set: ``"compact"``, or ``"closed"`` where its closure holds what an open
        condition leaves out.
    place : str
        Where the paper prints set and conditions.
    conditions : tuple of str
        Names in `CONDITIONS`.
    specified : str
        ``"exact"``, ``"over"`` or ``"both"``.
    sense : str
        ``"worst case"`` over the truths, or ``"pointwise"``.
    truths : str
        ``"all"``, ``"almost all"`` or ``"some"`` truths that meet the conditions.
    near : bool
        Whether only measures near the truth are meant.
    asserts : str
        What converges or is identified, ``"parameters"``, ``"experts"`` or ``"density"``; or ``"no
        estimator"``, or ``"equation"``.
    """

    models: Models
    theta: str = "compact"
    place: str = ""
    conditions: tuple[str, ...] = ()
    specified: str = BOTH
    sense: str = "worst case"
    truths: str = ALL
    near: bool = False
    asserts: str = PARAMETERS

    def __post_init__(self) -> None:
        unknown = set(self.conditions) - set(CONDITIONS)
        if unknown:
            known = ", ".join(CONDITIONS)
            raise ValueError(f"unknown conditions {sorted(unknown)}; known: {known}")

    @property
    def text(self) -> str:
        """The scope in words."""
        said = [
            f"{self.truths} truths, {self.sense}",
            {EXACT: "as many atoms as the truth", OVER: "more atoms than the truth", BOTH: ""}[
                self.specified
            ],
            f"{self.theta} set" + (f" ({self.place})" if self.place else ""),
            *(CONDITIONS[name].text for name in self.conditions),
            "measures near the truth only" if self.near else "",
            _ASSERTED[self.asserts],
        ]
        return "; ".join(each for each in said if each)

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        models = self.models
        return {
            "likelihood": models.likelihood,
            "gates": list(models.gates),
            "experts": None if models.experts is None else list(models.experts),
            "theta": self.theta,
            "place": self.place,
            "conditions": [CONDITIONS[name].text for name in self.conditions],
            "specified": self.specified,
            "sense": self.sense,
            "truths": self.truths,
            "near": self.near,
            "asserts": self.asserts,
        }


def instances(fact: Fact) -> tuple[Instance, ...]:
    """The witnesses of a fact that are explicit measures."""
    subjects: list[object] = [check.pair for check in fact.checks if isinstance(check, Witness)]
    subjects += [check.sequence for check in fact.checks if isinstance(check, Sequence)]
    return tuple(each.instance() for each in subjects if isinstance(each, (Pair, Path)))


def inside(scope: Scope, found: Instance, fact: Fact) -> bool:
    """Whether a witness lies in a scope and shows what the scope denies."""
    if scope.asserts not in (PARAMETERS, EXPERTS):
        return False
    if not (scope.models.hold(found.truth) and scope.models.hold(found.other)):
        return False
    if scope.specified != BOTH and found.over != (scope.specified == OVER):
        return False
    if scope.near and not fact.near:
        return False
    if scope.asserts == EXPERTS and not found.experts_move:
        return False
    return all(CONDITIONS[name].holds(found) for name in scope.conditions)


def contradicts(scope: Scope, fact: Fact) -> bool:
    """Whether a fact has a witness that a claim of this scope denies.

    A claim of all truths is denied by one, a claim of almost all by truths that are no set of
    measure zero, a claim of some by every truth.
    """
    if scope.truths == ALMOST_ALL and fact.measure == ZERO:
        return False
    if scope.truths == SOME and fact.measure != EVERY:
        return False
    return any(inside(scope, found, fact) for found in instances(fact))
