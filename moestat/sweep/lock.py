"""One runner per store: an advisory lock that the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moestat.sweep.errors import SweepError

__all__ = ["exclusive"]


@contextmanager
def exclusive(store: Path) -> Iterator[None]:
    """Hold the runner's lock of `store`, a file beside it that names the process.

    The lock belongs to the open file, not to the file's existence: a lock file that a killed
    runner left behind is taken over at once, and two runners can never both hold it.

    Parameters
    ----------
    store : Path
        The store.

    Raises
    ------
    SweepError
        If another process holds it.
    """
    path = store.with_name(store.name + ".lock")
    descriptor = _acquire(path, store)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, store: Path) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise SweepError(f"cannot write beside the store {store}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            os.close(descriptor)
            raise SweepError(
                f"another runner (process {holder}) is at work on {store}; wait for it or stop it"
            ) from None
        if _is_at(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)  # its last holder removed it between our open and our lock


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
