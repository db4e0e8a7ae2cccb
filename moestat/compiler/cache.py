"""Where compiled kernels are kept: a directory named by everything that determines them.

numba keys its disk cache on the file of the *outermost* function only: it sees neither an edit of
an inlined function nor a change of compiler options.  The directory's name is therefore a digest
of every source of the package that can be inlined into a kernel, of the compiler options and of the
versions that generate the code.  Stale code cannot be found, because its directory has another
name; what is inlined from elsewhere is part of a loop's name (`moestat.compiler.identity`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config

_KERNEL_SOURCES = (
    "compiler",
    "model/activations.py",
    "model/by_expert.py",
    "model/censoring.py",
    "model/components.py",
    "model/experts",
    "model/gates",
    "model/likelihoods",
    "model/random_effects.py",
    "model/recombination.py",
    "kernels",
    "networks/expert_count/activations.py",
    "networks/expert_count/experts",
    "networks/expert_count/rows",
    "solvers/bfgs.py",
    "solvers/line_search.py",
    "solvers/merging_atoms",
    "solvers/spring.py",
    "solvers/trust_region",
)


_ROOT = Path(__file__).parents[1]


def kernel_sources() -> Iterator[Path]:
    """Every file of the package that can be inlined into a kernel."""
    for name in _KERNEL_SOURCES:
        path = _ROOT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def _digest(*options: str) -> str:
    """Digest of everything that determines the machine code of a kernel."""
    digest = hashlib.sha256()
    facts = (
        sys.implementation.cache_tag,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        *options,
    )
    digest.update("\0".join(facts).encode())
    for path in kernel_sources():
        digest.update(path.relative_to(_ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


@functools.cache
def cache_directory(*options: str) -> Path:
    """Directory of the compiled kernels of exactly these sources, versions and options.

    It is ``$MOESTAT_CACHE_DIR`` (default: the user's cache directory) followed by the digest.  If
    that cannot be written, a directory of the same name among the system's temporary files: numba
    would put the code beside the sources then, where an edit of an inlined function goes unseen.
    """
    digest = _digest(*options)
    base = os.environ.get("MOESTAT_CACHE_DIR")
    if base is None:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "moestat"
    directory = Path(base) / digest
    _check_owner(Path(base))
    if _is_writable(directory):
        return directory
    # The user's own folder: code found among the temporary files of somebody else is not run.
    user = os.getuid() if hasattr(os, "getuid") else 0
    home = Path(tempfile.gettempdir()) / f"moestat-{user}"
    directory = home / digest
    if _is_writable(directory) and (not user or home.stat().st_uid == user):
        return directory
    return Path(tempfile.mkdtemp(prefix=f"moestat-{digest}-"))


def _check_owner(base: Path) -> None:
    """Refuse a directory of compiled code in which other users can put code of theirs."""
    if not hasattr(os, "getuid") or not base.is_dir():
        return
    status = base.stat()
    if status.st_mode & 0o002 or status.st_uid not in (0, os.getuid()):
        raise PermissionError(
            f"the cache directory {str(base)!r} belongs to another user or can be written by all,"
            " who could put code there that this program runs; set MOESTAT_CACHE_DIR to a directory"
            " of your own (chmod 700)"
        )


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def numba_cache_at(directory: Path) -> Iterator[None]:
    """Point numba's cache at `directory` while a function is decorated, and only then.

    numba reads the setting once, when the dispatcher is made; the user's own functions keep
    theirs.
    """
    settings: Any = config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(directory)
    try:
        yield
    finally:
        settings.CACHE_DIR = before
