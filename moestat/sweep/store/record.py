"""Records: what one cell leaves behind, as plain data."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import moestat
from moestat import __version__
from moestat.sweep.spec.plan import Cell

_log = logging.getLogger(__name__)

T = TypeVar("T")

DONE = "done"
FAILED = "failed"


@dataclass(frozen=True)
class Record:
    """The outcome of one cell: an estimate with its losses, or the reason why there is none.

    Parameters
    ----------
    key, curve, n, replicate : str, str, int or float, int
        Identity of the cell.
    status : str
        ``"done"`` or ``"failed"``.
    loss : float or None
        The curve's Voronoi loss.
    log_likelihood : float or None
        Natural-log likelihood of the sample.
    certified : bool
        Whether the fit is a certified local maximum.
    params : sequence of float
        Packed parameters.
    losses : mapping
        Terms of the loss: cell sizes, errors by block, empty cells, coverage, Hellinger; values
        of further losses (``also``) and errors of each true atom's cell (``cells``).
    certificate : mapping
        The fit's certificate.
    seconds : float
        Time of the whole cell.
    versions : mapping of str to str
        Versions of everything that made the numbers.
    message : str
        Why the cell failed; empty when done.
    identity : str
        Digest of all that the numbers depend on, as `moestat.sweep.spec.plan.Cell` has it.
    machine : mapping of str to str
        What the numbers were made on.
    """

    key: str
    curve: str
    n: float
    replicate: int
    status: str
    loss: float | None = None
    log_likelihood: float | None = None
    certified: bool = False
    params: Sequence[float] = ()
    losses: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    identity: str = ""
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_bound(self) -> bool:
        """Whether a parameter of the fit lies on a bound of the parameter space."""
        return bool(self.certificate.get("active"))

    @property
    def empty_cells(self) -> int:
        """Number of true atoms that no fitted atom is nearest to."""
        return int(self.losses.get("empty_cells", 0))

    @property
    def numbers(self) -> dict[str, object]:
        """The fields that must not depend on how, where and when the cell was run."""
        certificate = {key: v for key, v in self.certificate.items() if key != "seconds"}
        losses = {key: v for key, v in self.losses.items() if key != "processor_seconds"}
        left_out = ("certificate", "losses", "seconds", "versions", "machine")
        values = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**values, "params": list(self.params), "certificate": certificate, "losses": losses}


def record_of(cell: Cell, status: str, **values: Any) -> Record:
    """The record of a cell, with the present versions and machine."""
    return Record(
        key=cell.key,
        curve=cell.curve,
        n=cell.n,
        replicate=cell.replicate,
        status=status,
        identity=cell.identity,
        versions=versions(),
        machine=machine(),
        **values,
    )


@lru_cache(maxsize=1)
def machine() -> dict[str, str]:
    """Host, system and processor; compiled code depends on the processor."""
    from llvmlite.binding import get_host_cpu_name

    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": get_host_cpu_name(),
        "processors": str(os.cpu_count()),
    }


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of moestat with a digest of its sources, Python and what makes the numbers."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    return {
        "moestat": f"{__version__}+{_sources()}",
        "python": platform.python_version(),
        **packages,
    }


def _sources() -> str:
    """Digest of the package's sources: code of one version may differ between two commits."""
    root, digest = Path(moestat.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def plain(value: object) -> Any:
    """Arrays, tuples and mappings as lists and dicts of JSON values; NaN and inf as None.

    Examples
    --------
    >>> plain({"sizes": np.array([2, 1]), "condition": np.inf})
    {'sizes': [2, 1], 'condition': None}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def settle(cell: Cell, outcome: Mapping[str, Any] | Exception, seconds: float) -> Record:
    """The record of a cell from its values, or from the exception that was raised instead."""
    if isinstance(outcome, Exception):
        message = f"{type(outcome).__name__}: {outcome}"
        return record_of(cell, FAILED, message=message, seconds=seconds)
    return record_of(cell, DONE, **outcome, seconds=seconds)


def attempt(cell: Cell, compute: Callable[[], T]) -> T | Exception:
    """What `compute` returns, or the exception that it raises."""
    try:
        return compute()
    except Exception as error:
        _log.debug("the cell %s failed", cell.key, exc_info=True)
        return error
