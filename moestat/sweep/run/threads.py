"""One computing thread per process: a sweep is parallel over cells, and only over cells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@contextmanager
def one_thread() -> Iterator[None]:
    """Libraries that are loaded inside, here or in a process started here, use one thread.

    More would compete for the same cores, and a sum that is split over threads may round
    differently: results would depend on the machine.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
