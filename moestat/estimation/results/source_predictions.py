"""Predictions for the rows of a source, written as Parquet part by part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from moestat.base.files import replacing
from moestat.base.threads import available_cpus
from moestat.base.types import FloatArray
from moestat.base.validate import as_path, short
from moestat.estimation.progress import LOG
from moestat.estimation.reading.table import Table, as_table
from moestat.estimation.rows.sources import MemorySource, as_source

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["predict_to"]

_RECORD = "_predictions.json"
"""The file that describes the fit and the source of the predictions."""


def predict_to(
    result: Fitted,
    predict: Callable[..., Any],
    X: Any,
    to: str | Path,
    which: str,
    q: float | Sequence[float] | FloatArray,
) -> Path:
    """Write predictions for a source to a folder, and return the folder.

    Each part of the source is one file, with the columns that hold the index of the source and
    those of the predictions, in the order of the source.  Each file is complete or
    does not exist; if a call is stopped, a repeated call writes the missing files.

    Parameters
    ----------
    result : Fitted
        The fit.
    predict : callable
        Its method `MoEResults.predict`, of the fit without its rows.
    X : table, or source of rows
        Inputs, as `moestat.fit_formula` reads them.
    to : str or Path
        The folder.
    which, q
        As of `MoEResults.predict`.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If the folder holds something else, or a part cannot be read.
    """
    _check_parquet()
    source = as_source(X)
    if source is None:
        table = as_table("X", X)
        if table is None or not table.named:
            raise ValueError(f"to: is for a source or a table with names, got {short(X)}")
        source = MemorySource(table)
    names = _inputs_of(result)
    absent = [name for name in names if name not in source.names]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}; it has {', '.join(source.names)}")
    folder = as_path("to", to)
    rows = source.rows()
    files = [f"part-{number:05d}.parquet" for number in range(len(rows))]
    parts = [
        {"file": file, "of": source.label(number), "rows": count}
        for number, (file, count) in enumerate(zip(files, rows, strict=True))
    ]
    record = {
        "fit": _digest_of(result),
        "source": source.state(),
        "which": which,
        "q": np.asarray(q).tolist(),
        "parts": parts,
    }
    _open(folder, record)
    missing = [number for number, file in enumerate(files) if not (folder / file).exists()]
    n_complete = len(files) - len(missing)
    LOG.info("predictions for %d parts, of which %d are there", len(files), n_complete)
    chosen = source.chosen([*names, *(name for name in source.index if name not in names)])
    write = partial(
        _write,
        result,
        predict,
        folder,
        which,
        q,
        [*names],
        {number: files[number] for number in missing},
    )
    for _ in chosen.map(write, available_cpus(), missing):
        pass
    return folder


def _check_parquet() -> None:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError("to: Parquet files need pyarrow: pip install 'moestat[parquet]'") from None
    del pyarrow


def _inputs_of(result: Fitted) -> Sequence[str]:
    """Columns of new rows that the fit needs."""
    data = result.data
    if data is not None and data.formula is not None:
        return data.formula.names
    if data is None or data.features is None:
        raise ValueError("to: the inputs of the fit have no names, by which a source is read")
    return data.features


def _digest_of(result: Fitted) -> str:
    """A digest of everything that predictions depend on."""
    data = result.data
    assert data is not None  # `_inputs_of` has refused results without names of the inputs
    digest = hashlib.sha256(np.ascontiguousarray(result.theta).tobytes())
    formula = None if data.formula is None else [data.formula.formula, data.formula.states]
    classes = (
        None if data.class_labels is None else [*map(str, np.ravel(data.class_labels).tolist())]
    )
    experts = result.experts.labels  # in names of columns
    words = [repr(result.family), formula, data.features, classes, experts]
    digest.update(json.dumps(words).encode())
    return digest.hexdigest()


def _open(folder: Path, record: Mapping[str, object]) -> None:
    """Begin in an empty folder, or resume in a folder with the same predictions."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _RECORD
    if path.exists():
        if json.loads(path.read_text(encoding="utf-8")) != record:
            raise ValueError(
                f"to: {str(folder)!r} holds predictions of another fit or of another source; give"
                " an empty folder"
            )
        for old in folder.glob(".part-*.tmp"):
            old.unlink()
        return
    if any(folder.iterdir()):
        raise ValueError(f"to: the folder {str(folder)!r} is not empty")
    with _writing(path) as file:
        file.write(json.dumps(record, indent=1).encode())


def _write(
    result: Fitted,
    predict: Callable[..., Any],
    folder: Path,
    which: str,
    q: float | Sequence[float] | FloatArray,
    names: Sequence[str],
    files: dict[int, str],
    number: int,
    table: Table,
) -> None:
    """Write the predictions of one part if it is among `files`."""
    if number not in files:
        return
    import pyarrow as pa
    from pyarrow import parquet

    for name in names:
        table[name].check_missing(f"data: column {name!r}")
    columns: dict[str, Any] = {
        str(column.name): pa.array(column.values, from_pandas=True)
        for column in table.columns
        if column.name not in names
    }
    if table.index is not None:
        for level, called in enumerate(table.index.names):
            name = str(called or ("index" if table.index.nlevels == 1 else f"index_{level}"))
            columns[name] = pa.array(np.asarray(table.index.get_level_values(level)))
    inputs = {name: table[name].values for name in names}
    predicted = predict(inputs, which, q=q) if table.n_rows else np.empty(0)
    columns |= _named(result, np.asarray(predicted), which, q)
    with _writing(folder / files[number]) as file:
        parquet.write_table(pa.table(columns), file)


@contextmanager
def _writing(path: Path) -> Generator[BinaryIO]:
    """A file that is written completely or not at all; a failure raises a `ValueError`."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise ValueError(
            f"to: {path.name} cannot be written: {error.strerror or error}; the same call goes on"
            " with the parts that are missing"
        ) from None


def _named(
    result: Fitted, predicted: np.ndarray, which: str, q: float | Sequence[float] | FloatArray
) -> dict[str, np.ndarray]:
    """Predictions (n,) or (n, m) as columns with names."""
    if predicted.ndim == 1:
        return {which: predicted.astype(str) if predicted.dtype.kind == "O" else predicted}
    if predicted.ndim > 2:
        raise ValueError(
            f"to: {which!r} of classes has several values for each row, which cannot be one"
            " column; predict rows in memory"
        )
    labels: Sequence[object] = range(predicted.shape[1])
    if which == "quantile":
        labels = np.atleast_1d(q).tolist()
    elif which == "proba" and result.data is not None and result.data.class_labels is not None:
        labels = np.asarray(result.data.class_labels).tolist()
    elif which in ("gate", "experts"):
        labels = result.experts.keys
    return {f"{which}[{label}]": predicted[:, j] for j, label in enumerate(labels)}
