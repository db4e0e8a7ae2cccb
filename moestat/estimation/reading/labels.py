"""Labels of classes: their order, and the positions of labels in it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import check_kind, listed, short
from moestat.estimation.reading.table import Column, as_column

__all__ = ["NO_PART", "codes_of_labels", "plain_labels", "positions_of", "read_labels"]

NO_PART = -1.0
"""The code of labels that are not given."""


def codes_of_labels(labels: Labels) -> FloatArray:
    """Numbers (n,) in [0, 1), one for each label: the first 53 bits of its hash.

    They need no table of the labels, so that rows of any data are read alike.
    """
    distinct, index = np.unique(labels, return_inverse=True)
    texts = (repr(float(each)) if labels.dtype.kind in "biuf" else str(each) for each in distinct)
    hashes = (blake2b(text.encode(), digest_size=8).digest() for text in texts)
    codes = np.array([(int.from_bytes(each, "big") >> 11) * 2.0**-53 for each in hashes])
    return codes[index.reshape(-1)]


def plain_labels(column: Column) -> Labels:
    """Labels (n,) of one type: integers, words or truth values."""
    labels = column.values
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    if labels.dtype.kind == "O":
        kinds = {type(label).__name__ for label in labels}
        labels = np.array(labels.tolist())
        if labels.dtype.kind not in "biufUS" or (len(kinds) > 1 and labels.dtype.kind in "US"):
            raise ValueError(f"y must hold labels of one type, got {', '.join(sorted(kinds))}")
    if labels.dtype.kind == "f":
        if not np.all(np.isfinite(labels)):
            raise ValueError("y holds NaN or infinite values; every sample must have a class label")
        if np.any(labels != np.floor(labels)):
            fraction = labels[labels != np.floor(labels)][0]
            raise ValueError(
                f"y must hold class labels: integers, words or truth values; got {fraction:g}"
            )
        labels = labels.astype(np.int64)
    return labels


def read_labels(
    column: Column,
    n_classes: int | None,
    classes: Sequence[object] | None = None,
    ordered: bool = False,
) -> tuple[IntArray, Labels]:
    """Positions of the labels, from 1, and the labels of the classes in order, the last one first.

    The order is that of `classes`, else the one that the column declares, else ascending.  Of a
    family with K classes integer labels in 1..K are these positions, whichever occur.  Words have
    no ascending order where the classes are `ordered`: they are refused without one, and so are
    categories in an order that nobody gave them.
    """
    labels = plain_labels(column)
    distinct, position = np.unique(labels, return_inverse=True)
    declared = column.levels
    if classes is not None:
        check_kind("classes", classes, "__iter__", "the labels of the classes, in order")
        declared = plain_labels(as_column("classes", list(classes)))
        unknown = [label for label in distinct.tolist() if label not in declared.tolist()]
        if unknown or len(set(declared.tolist())) < len(declared):
            raise ValueError(
                f"classes must hold every label of y once, got {short(declared.tolist())}"
                + (f" without {short(unknown[0])}" if unknown else "")
            )
    elif ordered and not column.ordered and labels.dtype.kind in "US":
        examples = ", ".join(map(repr, distinct[:5].tolist()))
        raise ValueError(
            f"y holds words, {examples}, whose order is not known; give the classes from the lowest"
            f" to the highest, classes=[...], or an ordered categorical column"
        )
    elif (
        n_classes is not None
        and declared is None
        and labels.dtype.kind in "iu"
        and 1 <= distinct.min(initial=n_classes) <= distinct.max(initial=1) <= n_classes
    ):
        return labels.astype(np.int64), np.arange(1, n_classes + 1)
    if declared is not None:
        names = distinct.tolist()
        order = [names.index(label) for label in np.asarray(declared).tolist() if label in names]
        position = np.argsort(order)[position]
        distinct = distinct[order]
    if n_classes is not None and len(distinct) != n_classes:
        examples = listed(distinct, 5)
        raise ValueError(
            f"y must hold the labels 1..{n_classes} or {n_classes} labels of another kind;"
            f" got {len(distinct)} labels: {examples}"
        )
    if n_classes is None and len(distinct) < 2:
        raise ValueError(f"y must hold at least two classes, got {len(distinct)}")
    return position.astype(np.int64).reshape(-1) + 1, distinct


def positions_of(column: Column, classes: Labels) -> IntArray:
    """Positions (n,), from 1, of labels in those of a fit."""
    labels = plain_labels(column)
    distinct, position = np.unique(labels, return_inverse=True)
    names = np.asarray(classes).tolist()
    unknown = [label for label in distinct.tolist() if label not in names]
    if unknown:
        raise ValueError(
            f"y has {unknown[0]!r}, which is not in the data of the fit; its classes are"
            f" {', '.join(map(str, names))}"
        )
    return (
        np.array([names.index(label) for label in distinct.tolist()], dtype=np.int64)[position] + 1
    )
