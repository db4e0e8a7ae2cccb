"""Labels of classes: their order, and the positions of labels in it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import check_kind, listed, short
from moestat.estimation.reading.table import Column, as_column

__all__ = ["NO_PART", "codes_of_labels", "order_labels", "plain_labels", "positions_of"]

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


def order_labels(
    labels: Labels,
    column: Column | None,
    n_classes: int | None,
    classes: Sequence[object] | None = None,
    ordered: bool = False,
) -> Labels:
    """Labels that occur, ascending, as the labels of the classes in order, the last one the last.

    The order is that of `classes`, else the one that the column declares, else ascending.  Of a
    family with K classes integer labels in 1..K are positions, whichever occur.  Words have no
    ascending order where the classes are `ordered`: they are refused without one, and so are
    categories in an order that nobody gave them.
    """
    declared = None if column is None else column.levels
    if classes is not None:
        check_kind("classes", classes, "__iter__", "the labels of the classes, in order")
        declared = plain_labels(as_column("classes", list(classes)))
        unknown = [label for label in labels.tolist() if label not in declared.tolist()]
        if unknown or len(set(declared.tolist())) < len(declared):
            raise ValueError(
                f"classes must hold every label of y once, got {short(declared.tolist())}"
                + (f" without {short(unknown[0])}" if unknown else "")
            )
    elif ordered and labels.dtype.kind in "US" and not (column is not None and column.ordered):
        examples = ", ".join(map(repr, labels[:5].tolist()))
        raise ValueError(
            f"y holds words, {examples}, whose order is not known; give the classes from the lowest"
            f" to the highest, classes=[...], or an ordered categorical column"
        )
    elif (
        n_classes is not None
        and declared is None
        and labels.dtype.kind in "iu"
        and 1 <= labels.min(initial=n_classes) <= labels.max(initial=1) <= n_classes
    ):
        return np.arange(1, n_classes + 1)
    if declared is not None:
        names = labels.tolist()
        order = [names.index(label) for label in np.asarray(declared).tolist() if label in names]
        labels = labels[order]
    if n_classes is not None and len(labels) != n_classes:
        examples = listed(labels, 5)
        raise ValueError(
            f"y must hold the labels 1..{n_classes} or {n_classes} labels of another kind;"
            f" got {len(labels)} labels: {examples}"
        )
    if n_classes is None and len(labels) < 2:
        raise ValueError(f"y must hold at least two classes, got {len(labels)}")
    return labels


def positions_of(labels: Labels, classes: Labels) -> IntArray:
    """Positions (n,), from 1, of labels (n,) in those of the classes."""
    names, places, unknown = np.asarray(classes), np.zeros(labels.shape, dtype=np.int64), labels
    if (names.dtype.kind in "US") == (labels.dtype.kind in "US"):
        order = np.argsort(names, kind="stable")
        places = order[np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)]
        unknown = labels[names[places] != labels]
    if unknown.size:
        raise ValueError(
            f"y has {np.unique(unknown).tolist()[0]!r}, which is not in the data of the fit; its"
            f" classes are {', '.join(map(str, names.tolist()))}"
        )
    return places + 1
