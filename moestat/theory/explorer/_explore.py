"""The bound explorer: the least distance of densities at a given Voronoi loss, without noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int, short
from moestat.metrics.losses import VoronoiLoss, make_loss, voronoi_terms
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.defaults import INPUTS
from moestat.theory.explorer._coordinates import Coordinates
from moestat.theory.explorer._exact import exact_root
from moestat.theory.explorer._model import Model
from moestat.theory.explorer._nodes import Nodes, make_nodes
from moestat.theory.explorer._reference import Reference, references
from moestat.theory.explorer._result import Exploration, Rung
from moestat.theory.explorer._search import Point, least, search

# Nodes per input and panel, by the number of inputs, for y integrated, summed, or not there.
_ORDERS = {"density": {1: 20, 2: 8}, "classes": {1: 48, 2: 12}, "regression": {1: 96, 2: 24}}
_MOST_INPUTS = 2
_SAME = 1e-10  # a loss below is 0


def deviation_loss(loss: str | Mapping[str, object] | VoronoiLoss) -> VoronoiLoss:
    """The loss with all exponents 1: a sum of deviations, whatever the cells.

    The exponent r of d against it is the order of the worst deviation: an estimate whose density
    converges at ``n^(-1/2)`` has deviations as large as ``n^(-1/(2r))``.

    Parameters
    ----------
    loss : str, mapping or VoronoiLoss
        As `moestat.metrics.losses.make_loss` takes it.

    Returns
    -------
    VoronoiLoss
        The loss with exponents 1 in cells of any size.

    Examples
    --------
    >>> deviation_loss("gaussian-softmax-D").over_exponent
    1.0
    """
    chosen = make_loss(loss)
    terms = tuple(replace(term, over_share=1.0) for term in chosen.terms)
    name = f"{chosen.name}, exponents 1"
    return replace(chosen, name=name, terms=terms, exact_exponent=1.0, over_exponent=1.0)


def explore(
    family: Family,
    truth_family: Family,
    truth: ArrayLike,
    loss: str | Mapping[str, object] | VoronoiLoss,
    radii: Sequence[float],
    *,
    design: Design | None = None,
    starts: int = 3,
    seed: int = 0,
    cells: Sequence[Sequence[int]] | None = None,
    expert_splits: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Exploration:
    """The least distance d between densities at decreasing values of a Voronoi loss D.

    It looks for the worst measures: ``inf {d(p_G, p_G*) : D(G, G*) = eps}`` for every eps in
    `radii`, by deterministic quadrature and least squares from many starts.  A theorem
    ``d >~ D`` says that ``d / D`` stays away from 0; the measures that come back refute it when it
    does not, and can be evaluated again.

    Parameters
    ----------
    family : Family
        The fitted family, with k atoms.
    truth_family : Family
        The family of the truth, the same with k* <= k atoms.
    truth : array_like of shape (P*,)
        Packed parameters of the truth.
    loss : str, mapping or VoronoiLoss
        D, as `moestat.metrics.losses.make_loss` takes it.
    radii : sequence of float
        Decreasing positive values of D.
    design : Design, optional
        Law of X; uniform on [-2, 2]^d by default.
    starts : int
        Random starts for every deviation that is pinned, per sign, in cells of several atoms.
    seed : int
        Seed of the starts; the result depends on nothing else.
    cells : sequence of sequence of int, optional
        Sizes of the Voronoi cells of the true atoms, such as ``[(2, 1), (1, 2)]``; all without
        an empty cell by default.
    expert_splits : bool
        For raw sigmoid gates: also look near measures that share a true atom out through its
        expert, one of ``t eta*`` and ``(1 - t) eta*`` under one gate.
    progress : callable, optional
        Called with a line of text after every radius.

    Returns
    -------
    Exploration
        The worst measure at each radius, with exponent, residual, verdict and directions.

    Raises
    ------
    ValueError
        If the families differ in more than the number of atoms, the radii do not decrease or are
        not positive, or no measure of `family` has the truth's density.

    Notes
    -----
    d is ``E_X d_H`` for densities and the L2(mu) norm of the difference for regression functions;
    what is minimised is the root mean square.  How the constraint is met is told in
    `moestat.theory.explorer._search`, how cancellation is avoided in
    `moestat.theory.explorer._model`.  The infimum is searched, not bounded: the ratios are upper
    bounds of the infimum, so that a refutation is certain and a confirmation is as good as the
    search.  Directions are searched at the first radius and followed from there: begin where D is
    wide.  A top-K gate is taken with the truth's active atoms: what a shift of their borders adds
    to d is left out, so that a bound that holds for the rest holds, but nothing is refuted.

    Examples
    --------
    One Gaussian expert, exactly specified: the bound holds, d is proportional to D.

    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> truth = F.pack({"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [0.25]})
    >>> found = explore(F, F, truth, "gaussian-softmax-D", [1e-2, 1e-3])
    >>> round(found.exponent, 2), found.verdict
    (1.0, 'bounded')
    """
    chosen = make_loss(loss)
    vector = as_floats("truth", truth, (truth_family.n_params,))
    ladder = as_floats("radii", radii, (None,))
    if ladder.size < 2 or not np.all(ladder > 0.0) or not np.all(np.diff(ladder) < 0.0):
        raise ValueError(f"radii must be two or more, positive and decreasing, got {short(radii)}")
    if family != truth_family.with_experts(family.n_experts):
        raise ValueError("family must be truth_family with another number of experts")
    if family.n_experts < truth_family.n_experts:
        raise ValueError(
            f"family must have the truth's {truth_family.n_experts} experts at least, got"
            f" {family.n_experts}"
        )
    chosen.check_gate(family.gate)
    if family.is_regression and family.gate.normalised:
        raise ValueError("family: regression functions with a softmax gate are not supported")
    positive_int("starts", starts)
    if family.n_features > _MOST_INPUTS:
        raise ValueError(
            f"family: quadrature is for {_MOST_INPUTS} inputs at most, got {family.n_features}"
        )
    candidates = references(family, vector, truth_family, expert_splits)
    wanted: list[tuple[int, ...]] = []
    if cells is not None:
        wanted = [tuple(sizes) for sizes in cells]
        candidates = [reference for reference in candidates if tuple(reference.sizes) in wanted]
    if not candidates:
        raise ValueError(
            f"no measure of {family.n_experts} atoms of gate {family.gate.name!r} has the density"
            f" of this truth with {truth_family.n_experts}"
            + (f" and cells of {wanted}" if cells is not None else "")
        )
    design = design or INPUTS
    order = _order(family)
    nodes = make_nodes(truth_family, vector, design, order)
    rng = np.random.default_rng(seed)
    found_near: list[list[Point | None]] = []
    for reference in candidates:
        model = Model(family, truth_family, vector, reference, nodes)
        witness = _at_reference(model, chosen)
        if witness is not None:
            return Exploration(family, truth_family, vector, chosen.name, (witness,))
        with ONE_THREAD:  # the matrices are long and narrow: threads would only wait
            points = search(Coordinates(model), chosen, ladder, starts, rng, progress)
        found_near.append(points)
    rungs = []
    fine = make_nodes(truth_family, vector, design, 2 * order)
    for at in range(ladder.size):
        best = least([point for points in found_near if (point := points[at]) is not None])
        if best is not None:
            rungs.append(_rung(best, fine))
    return Exploration(family, truth_family, vector, chosen.name, tuple(rungs))


def _order(family: Family) -> int:
    """Nodes per input and panel."""
    kind = "density" if family.likelihood.support is None else "classes"
    return _ORDERS["regression" if family.is_regression else kind][family.n_features]


def _at_reference(model: Model, loss: VoronoiLoss) -> Rung | None:
    """The reference itself, when the loss tells it from the truth although the density does not."""
    coordinates = Coordinates(model)
    deviation = coordinates.unpack(np.zeros(coordinates.size))
    params = model.packed(deviation)
    measures = model.family.measure(params), model.truth_family.measure(model.truth)
    value = voronoi_terms(*measures, loss).value
    if value < _SAME:
        return None
    d = 0.0
    return Rung(
        value, d, d, d, params, 0.0, model.reference.name, "nothing", {}, True, lambda _: (d, d)
    )


def _rung(point: Point, fine: Nodes) -> Rung:
    """A point as a rung, its distance taken at finer nodes."""
    coordinates = point.coordinates
    model = coordinates.model
    deviation = coordinates.unpack(point.z)
    refined = replace(model, nodes=fine)
    root = float(np.linalg.norm(refined.values(deviation)))
    regression = model.family.is_regression
    return Rung(
        loss=point.loss,
        distance=refined.distance(deviation),
        root=root,
        total_variation=float("nan") if regression else refined.total_variation(deviation),
        params=model.packed(deviation),
        error=abs(root - point.root) / max(root, 1e-300),
        reference=model.reference.name,
        pinned=coordinates.names[coordinates.pin],
        moves=_moves(coordinates, point.z, model.reference),
        converged=point.converged,
        exactly=lambda digits: (point.root, exact_root(model, deviation, digits)),
    )


def _moves(coordinates: Coordinates, z: FloatArray, reference: Reference) -> dict[str, float]:
    """Largest deviation of each block in each cell."""
    moves: dict[str, float] = {}
    values, cells = coordinates.deviations(z), coordinates.cells_by_name()
    for name, value, cell, is_deviation in zip(
        coordinates.names, values, cells, coordinates.is_deviation, strict=True
    ):
        if not is_deviation:
            continue
        block = name.split("[")[0].removeprefix("log ")
        size = reference.sizes[cell] if cell >= 0 else 0
        key = f"{block}, cell of {size}" if cell >= 0 else name
        moves[key] = max(moves.get(key, 0.0), abs(float(value)))
    return moves
