"""Losses that suit a family: they compare its measures and respect its invariances."""

from __future__ import annotations

from collections.abc import Iterator

from moestat.metrics.losses import LOSSES, make_loss, voronoi_terms
from moestat.model.family import Family


def suitable_losses(family: Family) -> list[str | dict[str, object]]:
    """The losses that fit a family: names, or tables with options of its gate, as in a spec.

    Examples
    --------
    >>> from moestat import family
    >>> suitable_losses(family("multinomial", gate="sigmoid"))
    ['D1', 'block-exponents']
    >>> suitable_losses(family("multinomial", gate="softmax"))
    ['softmax-D1', 'softmax-D2r']
    """
    measure = family.measure(family.typical(0))
    losses: list[str | dict[str, object]] = []
    for name in LOSSES:
        for table in _tables(name, family):
            try:
                make_loss(table).check_gate(family.gate)
                voronoi_terms(measure, measure, table)
            except ValueError:
                continue
            losses.append(table)
            break
    return losses


def _tables(name: str, family: Family) -> Iterator[str | dict[str, object]]:
    """The name of the loss, then its table with the option that top-K gates need."""
    yield name
    if family.gate.n_active is not None:
        yield {"name": name, "active": family.gate.n_active}
