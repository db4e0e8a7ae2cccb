"""The sweeps that claims rest on: stores that are there are used as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.spec import Curve, Spec, as_fits
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import open_store

__all__ = ["CurveRecords", "gather_curves", "records_digest"]


@dataclass(frozen=True)
class CurveRecords:
    """The records of one curve.

    Parameters
    ----------
    curve : Curve
        The curve.
    records : sequence of Record
        Its records.
    source : str
        The store, its cells and their digest.
    """

    curve: Curve
    records: Sequence[Record]
    source: str


def gather_curves(
    experiment: str, curves: Iterable[str], folder: Path
) -> dict[str, CurveRecords] | None:
    """The records of curves of a shipped experiment.

    What counts is the identity of a cell: of a store that belongs to another version of the
    experiment the cells that are the same are used.

    Parameters
    ----------
    experiment : str
        Name of the experiment; its store is ``folder/experiment.sqlite``.
    curves : iterable of str
        Names of curves.
    folder : Path
        Where stores are.

    Returns
    -------
    dict of str to CurveRecords, or None
        Curve -> its records; None where there is no store.

    Raises
    ------
    SweepError
        If the store cannot be read, or holds no cell of these curves.
    """
    path = folder / f"{experiment}.sqlite"
    if not path.exists():
        return None
    spec = as_fits(load_spec(find_spec(experiment)))
    records = _own_records(spec, path, set(curves))
    if not any(records.values()):
        raise SweepError(f"{path} holds no cell of the experiment {experiment} as it is shipped")

    def planned(name: str) -> int:
        return len(spec.sizes_of(spec.curve(name))) * spec.replicates

    return {
        name: CurveRecords(
            spec.curve(name),
            own,
            f"{path.name}, {len(own)} of {planned(name)} cells, digest {records_digest(own)}",
        )
        for name, own in records.items()
    }


def records_digest(records: Iterable[Record]) -> str:
    """Twelve digits of the SHA-256 of what records say, in the order of their keys."""
    digest = sha256()
    for record in sorted(records, key=lambda each: each.key):
        said = (record.key, record.identity, record.status, record.certified, record.loss)
        digest.update(repr((*said, record.losses)).encode())
    return digest.hexdigest()[:12]


def _own_records(spec: Spec, path: Path, wanted: set[str]) -> dict[str, list[Record]]:
    """By curve, the records of cells that are the spec's own, whatever else a store holds."""
    identities = {cell.identity for cell in plan_cells(spec) if cell.curve in wanted}
    records: dict[str, list[Record]] = {name: [] for name in wanted}
    with open_store(path) as store:
        for record in store.records():
            if record.curve in wanted and record.identity in identities:
                records[record.curve].append(record)
    return records
