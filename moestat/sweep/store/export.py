"""Export: a store as one flat table, in CSV or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from moestat.base.validate import as_path
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.store.dictionary import describe
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import Store

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(store: Store, path: str | Path) -> tuple[int, Path]:
    """Write every record of a store as one row of a table, with a data dictionary beside it.

    The suffix, .csv or .parquet, decides the format.  Scalars of the certificate and the losses
    become columns ``certificate.gain``, ``losses.hellinger``; lists become JSON text.  Floats keep
    every digit.  In CSV, text that a spreadsheet would take for a formula begins with an
    apostrophe.  The dictionary, a CSV file, says what each column holds; in Parquet the columns
    carry it, too.  Returns the number of rows and the dictionary.
    """
    path = as_path("path", path)
    write = {".csv": _write_csv, ".parquet": _write_parquet}.get(path.suffix.lower())
    if write is None:
        raise SweepError(f"--out must end in .csv or .parquet, got {path.name!r}")
    seeds = _seeds(store)
    rows = [
        {**dict(_flat(record)), **seeds.get(record.key, dict.fromkeys(_SEEDS, ""))}
        for record in store.records()
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["key"]
    dictionary = path.with_name(f"{path.stem}.dictionary.csv")
    explained = [{"column": name, "description": describe(name)} for name in columns]
    try:
        write(path, columns, rows)
        _write_csv(dictionary, ["column", "description"], explained)
    except OSError as error:
        raise SweepError(f"cannot write {path}: {error.strerror or error}") from None
    return len(rows), dictionary


_SEEDS = ("data_seed", "fit_seed")


def _seeds(store: Store) -> dict[str, dict[str, str]]:
    """The seeds of every cell, as text: they have more digits than numbers of tables."""
    spec = store.spec
    replicates = {curve.name: spec.most_replicates for curve in spec.curves}
    return {
        cell.key: {name: str(getattr(cell, name)) for name in _SEEDS}
        for cell in plan_cells(spec, replicates)
    }


def _flat(record: Record) -> Iterator[tuple[str, object]]:
    """Columns of one record."""
    for name in ("key", "curve", "n", "replicate", "status", "message"):
        yield name, getattr(record, name)
    for name in ("loss", "log_likelihood", "certified", "on_bound", "seconds", "identity"):
        yield name, getattr(record, name)
    yield "params", json.dumps(list(record.params))
    for group in ("losses", "certificate", "versions", "machine"):
        yield from _flat_group(group, getattr(record, group))


def _flat_group(prefix: str, values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat_group(f"{prefix}.{name}", value)
        else:
            yield f"{prefix}.{name}", json.dumps(value) if isinstance(value, list) else value


def _write_csv(path: Path, columns: list[str], rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(
            {name: _spreadsheet_text(value) for name, value in row.items()} for row in rows
        )


def _write_parquet(path: Path, columns: list[str], rows: Sequence[Mapping[str, object]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SweepError(
            "writing Parquet needs pyarrow: pip install 'moestat[parquet]', or export to .csv"
        ) from None
    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    fields = [field.with_metadata({"description": describe(field.name)}) for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), path)


def _spreadsheet_text(value: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula; numbers stay as they are.

    Examples
    --------
    >>> _spreadsheet_text("=1+1"), _spreadsheet_text(-1.5), _spreadsheet_text("em")
    ("'=1+1", -1.5, 'em')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
