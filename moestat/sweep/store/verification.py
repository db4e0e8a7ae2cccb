"""Verification: whether a store is sound and holds what its spec asks for."""

from __future__ import annotations

from collections.abc import Iterator

from moestat.base.door import door
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.identity import digest
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.store import Store


@door()
def verify(store: Store) -> list[str]:
    """Everything that is wrong with a store.

    Checked are: the file, by SQLite's own integrity check; the head, whose digest and canonical
    text must follow from the spec's text; the number of rows and the sum of their checksums; and
    each row, which must be a cell of the spec, with the identity that follows from it, and hold
    the values that were written.

    Parameters
    ----------
    store : Store
        An open store.

    Returns
    -------
    list of str
        One line for each finding; none for a sound store.
    """
    problems = store.integrity()
    try:
        return [*problems, *_head(store), *store.damage(), *_rows(store)]
    except SweepError as error:  # what can no longer be read has no rows to judge
        return [*problems, str(error)]


def _head(store: Store) -> Iterator[str]:
    spec = parse_spec(store.meta("spec"))
    if store.head_is_damaged():
        yield "head: what it says about the spec is not what was written"
    if store.meta("canonical") != spec.canonical:
        yield "head: the canonical text is not that of the spec"
    if store.meta("digest") != digest(store.meta("canonical")):
        yield "head: the digest is not that of the canonical text"


def _rows(store: Store) -> Iterator[str]:
    spec = parse_spec(store.meta("spec"))
    n_replicates = {curve.name: spec.most_replicates for curve in spec.curves}
    places = {name: frozenset(spec.sizes_of(spec.curve(name))) for name in n_replicates}
    stamps = {curve.name: spec.stamp(curve) for curve in spec.curves}
    for record in store.records():
        name, n, replicate = record.curve, record.n, record.replicate
        if name not in places or n not in places[name] or replicate >= n_replicates[name]:
            yield f"{record.key}: no cell of the spec"
        elif stamps[name](n, replicate)[2] != record.identity:
            yield f"{record.key}: made for another spec"
