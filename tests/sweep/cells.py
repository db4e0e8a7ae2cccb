"""Stand-ins for the cell function: no fit, known numbers."""

from moestat.sweep.record import DONE, FAILED, Record


def _identity(cell):
    return {"key": cell.key, "curve": cell.curve, "n": cell.n, "replicate": cell.replicate}


def exact_rate(text, cell):
    """Loss n^(-1/2), spread over replicates; every third replicate is not certified."""
    loss = (1.0 + 0.1 * cell.replicate) * cell.n**-0.5
    return Record(
        **_identity(cell),
        status=DONE,
        loss=loss,
        log_likelihood=-0.1 * cell.n,
        certified=cell.replicate != 2,
        params=[0.1, 1.0 / 3.0],
        losses={
            "cell_sizes": [1, 1],
            "mass_errors": [0.0, loss / 2],
            "block_errors": {"a": [loss / 4, loss / 4]},
            "empty_cells": int(cell.replicate == 1),
            "coverage": loss,
            "hellinger": loss / 10,
        },
        certificate={"certified": cell.replicate != 2, "active": ["a[0]"] * (cell.replicate == 0)},
        seconds=0.01,
        versions={"moestat": "test"},
    )


def always_fails(text, cell):
    return Record(**_identity(cell), status=FAILED, message="ValueError: as asked")


def stored_numbers(store):
    """Everything in a store that must not depend on how, where and when it was computed."""
    return {
        record.key: (
            record.status,
            record.loss,
            record.log_likelihood,
            record.certified,
            record.params,
            record.losses,
            {k: v for k, v in record.certificate.items() if k != "seconds"},
            record.message,
        )
        for record in store.records()
    }
