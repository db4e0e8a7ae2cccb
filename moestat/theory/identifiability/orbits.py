"""Other parameters with the law of a truth: found by search, followed as curves, and named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from moestat.base.types import FloatArray, Seed
from moestat.base.validate import as_floats, as_generator, positive_int, real_in
from moestat.metrics.information import named_basis
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.defaults import INPUTS, reporter
from moestat.theory.identifiability.curves import (
    Curve,
    Tangent,
    descend,
    follow,
    generic,
    joined,
    tangent,
)
from moestat.theory.identifiability.laws import Target
from moestat.theory.identifiability.names import name_direction, name_representation

_MOST_PERMUTED = 3


@dataclass(frozen=True)
class Direction:
    """One null direction of an orbit in the names of the parameters, followed as a curve."""

    text: str
    curve: Curve = field(repr=False)

    def __str__(self) -> str:
        if not self.curve.integrates:
            return f"{self.text}: of first order only"
        shape = "line" if self.curve.straight else "curve"
        ends = " and ".join(
            f"{length:.3g}{'' if end == 'length' else f' ({_ENDS[end]})'}"
            for length, end in zip(
                (self.curve.back, self.curve.forth), self.curve.ends, strict=True
            )
        )
        return f"{shape} {self.text}: followed for {ends}, discrepancy {self.curve.discrepancy:.1e}"


_ENDS = {"bound": "to the bound", "lost": "where it ends"}


@dataclass(frozen=True)
class Orbit:
    """A connected set of parameters with the law of the truth, as far as was found."""

    name: str
    """Description of the member by the true atoms."""
    dimension: int
    """Dimension of the null space of the information at `theta`."""
    gap: float
    """Smallest positive singular value of the scores there over the largest null one."""
    clear: bool
    """Whether the gap is above 1e4; otherwise the dimension rests on the curves."""
    theta: FloatArray = field(repr=False)
    """A member (P,)."""
    changes: str
    """For an isolated orbit, the parameters that differ from the truth's; empty for the truth."""
    directions: tuple[Direction, ...]
    """A basis of the null space, each followed."""
    discrepancy: float
    """Largest ``|log p - log p*|``, or ``|f - f*| / max |f*|``, at the member."""
    hits: int
    """Number of starts that ended in this orbit."""

    @property
    def isolated(self) -> bool:
        """Whether the orbit is a point."""
        return self.dimension == 0

    def __str__(self) -> str:
        size = "isolated" if self.isolated else f"dimension {self.dimension}"
        head = (
            f"{self.name}: {size}, gap {self.gap:.1e}{'' if self.clear else ' (not clear)'},"
            f" discrepancy {self.discrepancy:.1e}, {self.hits} start{'s' * (self.hits != 1)}"
        )
        below = [self.changes] if self.changes else []
        return "\n".join([head, *(f"    {line}" for line in [*below, *map(str, self.directions)])])


@dataclass(frozen=True)
class OrbitSearch:
    """Result of a search for other parameters with the same distribution."""

    title: str
    """Family, truth and design."""
    orbits: tuple[Orbit, ...]
    """The truth's own first, where the family holds the truth, then by the number of hits."""
    n_starts: int
    n_reached: int
    """Number of starts, and of those that reached the law of the truth."""

    @property
    def identified(self) -> bool:
        """Whether the truth came out alone, up to relabelling and known translations."""
        return len(self.orbits) == 1 and self.orbits[0].isolated

    def summary(self) -> str:
        """The orbits as plain text."""
        verdict = (
            "no parameters with this distribution were found"
            if not self.orbits
            else "no other parameters with this distribution were found"
            if self.identified
            else "not identified"
        )
        head = f"{self.title}: {verdict}; {self.n_reached} of {self.n_starts} starts reached it"
        return "\n".join([head, *(f"  {orbit}" for orbit in self.orbits)])


def find_orbits(
    family: Family,
    truth: ArrayLike,
    design: Design | None = None,
    *,
    truth_family: Family | None = None,
    n_starts: int = 60,
    length: float = 5.0,
    rng: Seed = None,
    progress: bool | Callable[[str], None] | None = None,
) -> OrbitSearch:
    """Search for all parameters of a family with the law of a truth.

    Parameters
    ----------
    family : Family
        Family of densities or of regression functions in which parameters are looked for.
    truth : array_like of shape (P*,)
        Packed parameters of the truth.
    design : Design, optional
        Law of X; uniform on [-2, 2]^d by default.
    truth_family : Family, optional
        Family of the truth, `family` by default; with fewer experts the search is over-specified.
    n_starts : int
        Number of starts: a third random ones, a third from the truth with the signs of random
        blocks of random atoms turned, a third near the truth; further atoms are random, or copies.
        Before them the truth with an atom split into equal shares, in an over-specified search.
    length : float
        How far null directions are followed to either side, in Euclidean length.
    rng : numpy.random.Generator, int or None
        Source of the starts.
    progress : bool or callable, optional
        Whether to write lines to standard error, or what to call with them: what the search will
        take, from its first start, and how far it is; by default lines are written if standard
        error is a terminal.

    Returns
    -------
    OrbitSearch
        The orbits; ``summary()`` is a text.  What was not found may still exist.

    Raises
    ------
    ValueError
        If the truth has another length, the families do not go together, or a size is too small.

    Notes
    -----
    From each start the distance to the truth's law is minimised by least squares with bounds, and
    a minimum counts if the law agrees to 1e-8 at points that the fit did not see.  The null space
    of the scores there gives the dimension; its directions are followed with corrections back to
    the law.  Two members are one orbit if a path within the set joins them, after some
    relabelling of atoms.  Known translations of a softmax gate are pinned away.  Bounds matter:
    where a gate saturates its parameters are null to rounding, so keep the box within scores of
    about 20.

    Examples
    --------
    Two classes and one true expert whose probabilities do not depend on x: two experts can mix to
    it in many ways.

    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> one = F.with_experts(1)
    >>> found = find_orbits(F, [0, 0, 0.5, 0], truth_family=one, n_starts=4, length=0.5, rng=0)
    >>> found.identified, found.orbits[0].dimension > 0
    (False, True)
    """
    source = truth_family or family
    vector = as_floats("truth", truth, (source.n_params,))
    check_pair(family, source)
    count = positive_int("n_starts", n_starts)
    reach = real_in("length", length, 0.0, open_low=True)
    generator = as_generator(rng)
    target = Target(family, source, vector, design or INPUTS)
    members: list[_Member] = []
    if source == family:
        members.append(_member(target, family.pin(vector), vector, source))
    splits = split_starts(target)
    starts = [*splits, *(draw_start(target, generator, s % 3) for s in range(count))]
    reached, report, began = 0, reporter(progress, "orbits"), time.monotonic()
    report(f"{len(starts)} starts in {family.n_free_params} parameters")
    for at, start in enumerate(starts):
        if at:
            spent = time.monotonic() - began
            left = spent / at * (len(starts) - at)
            done = f"{at} of {len(starts)} starts, {reached} with the truth's distribution"
            report(f"{done}, about {left:.0f} s left")
        theta = descend(target, start)
        if theta is None:
            continue
        reached += 1
        theta = generic(target, theta, generator)
        _add(members, _member(target, theta, vector, source), target)
    title = (
        f"{family.gate.name} gate, {family.expert.name} expert, {family.likelihood.name},"
        f" k* = {source.n_experts}, k = {family.n_experts}, d = {family.n_features}"
    )
    true_orbit, others = (members[:1], members[1:]) if source == family else ([], members)
    others.sort(key=lambda member: -member.hits)
    report(f"{len(members)} orbits; their directions are followed")
    orbits = tuple(_orbit(target, member, reach) for member in [*true_orbit, *others])
    return OrbitSearch(title, orbits, len(starts), reached)


def check_pair(family: Family, source: Family) -> None:
    """Raise unless the two families can be compared, at a gate that does not jump."""
    if (source.n_features, source.n_classes) != (family.n_features, family.n_classes) or (
        source.likelihood != family.likelihood
    ):
        raise ValueError(
            "truth_family must have the likelihood, inputs and classes of family: got"
            f" {source.likelihood.name!r}, d = {source.n_features}, K = {source.n_classes}"
        )
    if family.gate.n_active is not None:
        raise ValueError(
            f"gate {family.gate.name!r} jumps: its distribution is not smooth in theta"
        )


@dataclass
class _Member:
    """A parameter with the law of the truth, and the number of starts that led to its orbit."""

    theta: FloatArray
    null: Tangent
    name: str
    hits: int = 0


def _member(target: Target, theta: FloatArray, truth: FloatArray, source: Family) -> _Member:
    name = name_representation(target.family, theta, source, truth, target.design_points)
    return _Member(theta, tangent(target, theta), name)


def split_starts(target: Target) -> list[FloatArray]:
    """The truth with each atom in turn split into equal shares, where masses can be shared."""
    family, source = target.family, target.truth_family
    extra = family.n_experts - source.n_experts
    mass = family.gate.mass
    same_atom = family.n_atom_params == source.n_atom_params
    if extra < 1 or mass is None or not family.gate.normalised or not same_atom:
        return []
    starts = []
    for j in range(source.n_experts):
        atoms, shared = source.split(target.truth)
        theta = family.join(np.vstack([atoms, *[atoms[[j]]] * extra]), shared)
        shares = [j, *range(source.n_experts, family.n_experts)]
        theta[family.blocks[mass][shares]] -= np.log(extra + 1)
        starts.append(family.pin(theta))
    return starts


def draw_start(target: Target, rng: np.random.Generator, kind: int) -> FloatArray:
    """A random start (kind 0), one with signs turned (1), or one near the truth (2)."""
    family, source = target.family, target.truth_family
    spread = np.maximum(1.5, np.abs(target.truth).max())
    theta = rng.normal(size=family.n_params) * rng.uniform(0.3, 1.0) * min(spread, 5.0)
    if kind > 0:
        atoms, shared = family.split(theta)
        true_atoms, true_shared = source.split(target.truth)
        copies = min(family.n_experts, source.n_experts)
        chosen = rng.permutation(source.n_experts)[:copies]
        if true_atoms.shape[1] == atoms.shape[1]:
            atoms[:copies] = true_atoms[chosen]
            if rng.random() < 0.5:
                atoms[copies:] = true_atoms[rng.integers(source.n_experts)]
        if shared.size == true_shared.size:
            shared[:] = true_shared
        theta = family.join(atoms, shared)
        if kind == 1:
            for i in range(family.n_experts):
                theta = _turned(family, theta, i, rng)
        theta = theta + (0.5 if kind == 1 else 0.2) * rng.normal(size=theta.size)
    margin = 1e-6 * (family.upper - family.lower)
    return family.pin(np.clip(theta, family.lower + margin, family.upper - margin))


def _turned(family: Family, theta: FloatArray, i: int, rng: np.random.Generator) -> FloatArray:
    """Theta with signs of atom i turned: of its gate, its expert or both, or block by block."""
    groups: dict[str, list[int]] = {}
    by_block = rng.random() < 0.5
    for name, positions in family.blocks.items():
        if positions.ndim == 0 or any(c.log and c.intercept == name for c in family.channels):
            continue
        at = positions[i].ravel().tolist()
        owner = "gate" if at[0] < family.index[i, family.first_expert_channel] else "expert"
        groups.setdefault(name if by_block else owner, []).extend(at)
    out = theta.copy()
    for at in groups.values():
        if rng.random() < 0.5:
            out[at] = -out[at]
    return out


def _relabelled(family: Family, theta: FloatArray, like: FloatArray) -> list[FloatArray]:
    """Theta with its atoms in every order, or in the one nearest to `like` where k is large."""
    atoms, shared = family.split(theta)
    k = family.n_experts
    if k <= _MOST_PERMUTED:
        orders: Sequence[Sequence[int]] = list(permutations(range(k)))
    else:
        other = family.split(like)[0]
        orders = [linear_sum_assignment(((other[:, None] - atoms) ** 2).sum(axis=-1))[1]]
    permuted = [family.pin(family.join(atoms[list(order)], shared)) for order in orders]
    return sorted(permuted, key=lambda one: float(np.linalg.norm(one - like)))


def _add(members: list[_Member], member: _Member, target: Target) -> None:
    """Count the member for the orbit that it belongs to, or open a new one.

    Orbits of one dimension are compared, and those of one name: where sets meet or touch, the
    dimension is not clear.
    """
    for known in members:
        if known.null.dimension != member.null.dimension and known.name != member.name:
            continue
        rank = target.free.size - known.null.dimension
        for theta in _relabelled(target.family, member.theta, known.theta):
            if joined(target, theta, known.theta, rank):
                known.hits += 1
                return
    member.hits = 1
    members.append(member)


def _orbit(target: Target, member: _Member, length: float) -> Orbit:
    family, free = target.family, target.free
    names = [family.param_names[j] for j in free]
    rank = free.size - member.null.dimension
    directions = []
    for column in named_basis(member.null.basis).T:
        # The first parameter by name goes up.
        column = column * np.sign(column[np.abs(column) > 1e-3 * np.abs(column).max()][0])
        curve = follow(target, member.theta, column, length, rank)
        text = name_direction(names, column, member.theta[free], curve.straight)
        directions.append(Direction(text, curve))
    return Orbit(
        member.name,
        member.null.dimension,
        member.null.gap,
        member.null.clear,
        member.theta,
        _changes(target, member),
        tuple(directions),
        target.discrepancy(member.theta),
        member.hits,
    )


def _changes(target: Target, member: _Member) -> str:
    """Parameters of an isolated member that differ from the truth's, with the atoms matched."""
    family = target.family
    if member.null.dimension > 0 or family != target.truth_family:
        return ""
    truth = family.pin(target.truth)
    theta = _relabelled(family, member.theta, truth)[0]
    return ", ".join(
        f"{family.param_names[j]} {truth[j]:.4g} -> {theta[j]:.4g}"
        for j in np.flatnonzero(np.abs(theta - truth) > 1e-4 * (1.0 + np.abs(truth)))
    )
