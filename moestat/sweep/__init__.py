"""Sweeps: fits over sample sizes and replicates, in parallel, into a store that survives anything.

One direction: `load_spec` reads a TOML file, `plan_cells` turns it into cells, an executor runs
`run_cell` on them, a store keeps one durable row per cell, `summarise` reads rates off the store.
`status_of` tells how far a sweep is, `merge` joins stores, `verify` checks one.
From a shell: ``python -m moestat.sweep --help``.

Public names are resolved on first use, so that ``import moestat.sweep`` stays cheap.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
