"""A pair of measures with one density, and a sequence of measures near a truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.claims.kinds import PairEvidence, SequenceEvidence
from experiments.claims.rules import APART
from moestat.base.types import FloatArray
from moestat.metrics.distances import Distance, regression_error, total_variation
from moestat.metrics.losses import VoronoiLoss, voronoi_loss
from moestat.model.designs import Uniform
from moestat.model.family import Family
from moestat.model.measure import MixingMeasure

__all__ = ["Blocks", "Instance", "Pair", "Path"]

Blocks = Mapping[str, Any]
"""Parameters of a measure by block."""
_DRAWS = 4
_MOVED = 1e-9
"""Experts this far apart are two."""


def _distance(
    model: Family, theta: FloatArray, truth: Family, true_theta: FloatArray, design: Uniform
) -> Distance:
    """Total variation, or the L2 distance of regression functions."""
    measure = regression_error if model.is_regression else total_variation
    return measure(model, theta, truth, true_theta, design)


@dataclass(frozen=True)
class Instance:
    """One truth and one measure of a witness, with the loss between them.

    Parameters
    ----------
    truth, other : Family
        Families of the two measures.
    true_blocks, other_blocks : mapping
        Their parameters by block.
    loss : str or VoronoiLoss
        Voronoi loss of the claim.
    low, high : float
        The inputs' interval.
    options : mapping
        Options of the loss.
    least_loss : float
        Loss from which on the two count as different.
    over : bool
        Whether the other measure has more atoms than the truth needs.
    """

    truth: Family
    other: Family
    true_blocks: Blocks
    other_blocks: Blocks
    loss: str | VoronoiLoss
    low: float
    high: float
    options: Mapping[str, Any]
    least_loss: float
    over: bool

    def measures(self) -> tuple[MixingMeasure, MixingMeasure]:
        """The other measure and the truth."""
        return (
            self.other.measure(self.other.pack(self.other_blocks)),
            self.truth.measure(self.truth.pack(self.true_blocks)),
        )

    @property
    def experts_move(self) -> bool:
        """Whether some fitted expert is none of the true ones."""
        other, truth = self.measures()
        rows = [
            np.hstack([each.atoms[name].reshape(each.n_atoms, -1) for name in each.expert_blocks])
            for each in (other, truth)
        ]
        gaps = np.abs(rows[0][:, None] - rows[1]).max(axis=2).min(axis=1)
        return bool(gaps.max() > _MOVED)


@dataclass(frozen=True)
class Pair:
    """Two measures said to have one density.

    Parameters
    ----------
    name : str
        Name, by which evidence is kept.
    truth, other : Family
        Families of the two measures.
    true_blocks, other_blocks : mapping
        Their parameters by block.
    loss : str or VoronoiLoss
        Voronoi loss of the claim.
    about : str
        How the measures meet the assumptions of the claims, and why their densities agree.
    low, high : float
        The inputs' interval.
    options : mapping
        Options of the loss.
    draw : callable or None
        ``draw(rng)``: blocks of another truth and of its partner, where the pair is one of many;
        four are drawn, and the evidence is the worst of all.
    """

    name: str
    truth: Family
    other: Family
    true_blocks: Blocks
    other_blocks: Blocks
    loss: str | VoronoiLoss
    about: str
    low: float = -1.0
    high: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[np.random.Generator], tuple[Blocks, Blocks]] | None = None

    def evidence(self) -> PairEvidence:
        """Distance and loss of the two measures, the worst over the drawn truths."""
        rng = np.random.default_rng(0)
        pairs = [(self.true_blocks, self.other_blocks)]
        pairs += [self.draw(rng) for _ in range(_DRAWS)] if self.draw else []
        found = [self._at(*pair) for pair in pairs]
        return PairEvidence(
            distance=max(each.distance for each in found),
            error=max(each.error for each in found),
            loss=min(each.loss for each in found),
            n_truths=len(found),
        )

    def instance(self) -> Instance:
        """The two measures, for questions on the scope of a claim."""
        return Instance(
            self.truth,
            self.other,
            self.true_blocks,
            self.other_blocks,
            self.loss,
            self.low,
            self.high,
            self.options,
            APART,
            self.other.n_experts > self.truth.n_experts,
        )

    def _at(self, true_blocks: Blocks, other_blocks: Blocks) -> PairEvidence:
        theta, star = self.other.pack(other_blocks), self.truth.pack(true_blocks)
        design = Uniform(self.low, self.high)
        apart = _distance(self.other, theta, self.truth, star, design)
        measures = self.other.measure(theta), self.truth.measure(star)
        loss = float(voronoi_loss(*measures, self.loss, **self.options))
        return PairEvidence(apart.value, apart.error, loss)


@dataclass(frozen=True)
class Path:
    """Measures that run into a truth as epsilon falls.

    Parameters
    ----------
    name : str
        Name, by which evidence is kept.
    truth, other : Family
        Families of the truth and of the measures.
    true_blocks : mapping
        Parameters of the truth by block.
    at : callable
        ``at(epsilon)``: blocks of the measure.
    loss : str or VoronoiLoss
        Voronoi loss of the claim.
    about : str
        What moves, and how the assumptions are met.
    low, high : float
        The inputs' interval.
    radii : tuple of float
        Values of epsilon.
    represents : bool
        Whether the truth is given as an exact representation with more atoms than it needs.
    """

    name: str
    truth: Family
    other: Family
    true_blocks: Blocks
    at: Callable[[float], Blocks]
    loss: str | VoronoiLoss
    about: str
    low: float = -1.0
    high: float = 1.0
    radii: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01, 0.003)
    represents: bool = False

    def evidence(self) -> SequenceEvidence:
        """Losses and distances, one of each for every epsilon."""
        star = self.truth.pack(self.true_blocks)
        target, design = self.truth.measure(star), Uniform(self.low, self.high)
        losses, distances = [], []
        for epsilon in self.radii:
            theta = self.other.pack(self.at(epsilon))
            losses.append(float(voronoi_loss(self.other.measure(theta), target, self.loss)))
            distances.append(_distance(self.other, theta, self.truth, star, design).value)
        return SequenceEvidence(tuple(losses), tuple(distances), directions=self.about)

    def instance(self) -> Instance:
        """The truth and the measure nearest to it, for questions on the scope of a claim."""
        return Instance(
            self.truth,
            self.other,
            self.true_blocks,
            self.at(min(self.radii)),
            self.loss,
            self.low,
            self.high,
            {},
            0.0,
            self.represents or self.other.n_experts > self.truth.n_experts,
        )
