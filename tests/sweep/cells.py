"""Stand-ins for the cell function: no fit, known numbers."""

from moestat.sweep import parse_spec
from moestat.sweep.kinds.fit.spec import loss_label
from moestat.sweep.store.record import DONE, FAILED, Record


def identity(cell):
    return {
        "key": cell.key,
        "curve": cell.curve,
        "n": cell.n,
        "replicate": cell.replicate,
        "identity": cell.identity,
    }


def exact_rate(text, cell):
    """Loss n^(-1/2), spread over replicates; every third replicate is not certified.

    The first true atom's Voronoi cell holds one fitted atom, the second's two, at n^(-1/4); in
    the second replicate it is empty.  Further losses are n^(-1).
    """
    spread = 1.0 + 0.1 * cell.replicate
    loss, slow = spread * cell.n**-0.5, spread * cell.n**-0.25
    empty = cell.replicate == 1
    return Record(
        **identity(cell),
        status=DONE,
        loss=loss,
        log_likelihood=-0.1 * cell.n,
        certified=cell.replicate != 2,
        params=[0.1, 1.0 / 3.0],
        losses={
            "cell_sizes": [1, 0 if empty else 2],
            "mass_errors": [0.0, loss / 2],
            "block_errors": {"a": [loss / 4, loss / 4]},
            "empty_cells": int(empty),
            "coverage": loss,
            "hellinger": loss / 10,
            "also": {
                loss_label(also): spread / cell.n
                for also in parse_spec(text).curve(cell.curve).also
            },
            "cells": [
                {"size": 1, "mass_error": loss / 2, "errors": {"a": loss}, "expert_error": loss},
                {
                    "size": 0 if empty else 2,
                    "mass_error": slow,
                    "errors": {"a": None if empty else slow},
                    "expert_error": None if empty else slow**2,
                },
            ],
        },
        certificate={
            "status": "converged",
            "certified": cell.replicate != 2,
            "gain": 10.0**-cell.replicate,
            "condition": None if cell.replicate == 1 else 10.0**cell.replicate,
            "active": ["a[0]"] * (cell.replicate == 0),
            "agreement": 1.0 / (1 + cell.replicate),
            "n_starts": 3,
            "n_optima": 1 + cell.replicate,
        },
        seconds=0.01,
        versions={"moestat": "test"},
    )


def always_fails(text, cell):
    return Record(**identity(cell), status=FAILED, message="ValueError: as asked")


def stored_numbers(store):
    """Everything in a store that must not depend on how, where and when it was computed."""
    return {record.key: record.numbers for record in store.records()}
