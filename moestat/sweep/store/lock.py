"""One runner per store: an advisory lock that the system releases when its holder dies."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moestat.sweep.errors import SweepError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

_TRIES, _PAUSE = 5, 0.02  # a reader that asks who holds the lock has it for an instant


class Holder:
    """The runner's hold on a store, an open lock file, and what it says about itself in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._facts = {"process": os.getpid(), "host": platform.node()}
        self.say({})

    def say(self, facts: Mapping[str, object]) -> None:
        """Replace the facts in the lock file, which readers see; they need not survive a crash."""
        text = json.dumps({**self._facts, **facts}).encode()
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


@contextmanager
def exclusive(store: Path) -> Iterator[Holder]:
    """Hold the runner's lock of `store`, a file beside it that names the process.

    The lock belongs to the open file, not to the file's existence: a lock file that a killed
    runner left behind is taken over at once, and two runners can never both hold it.
    """
    if fcntl is None:
        raise SweepError(
            "writing a store needs the file locks of a POSIX system: on Windows, run sweeps under"
            " WSL; stores can be read anywhere"
        )
    path = _lock_file(store)
    descriptor = _acquire(path, store)
    try:
        yield Holder(descriptor)
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def holder_of(store: Path) -> dict[str, Any] | None:
    """What the process that holds a store says about itself; None if nobody holds it.

    ``process``, ``host`` and whatever the holder has said last.
    """
    try:
        descriptor = os.open(_lock_file(store), os.O_RDONLY)
    except OSError:
        return None
    try:
        free = fcntl is None or _lock(descriptor, shared=True)
        return None if free else _facts(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _lock_file(store: Path) -> Path:
    """Beside the file itself, wherever a symbolic link to it stands."""
    store = store.resolve()
    return store.with_name(store.name + ".lock")


def _acquire(path: Path, store: Path) -> int:
    tries = _TRIES
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise SweepError(f"cannot write beside the store {store}: {error.strerror}") from None
        try:
            is_held = not _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise SweepError(f"cannot lock the store {store}: {error.strerror}") from None
        if not is_held and _is_at(descriptor, path):
            return descriptor
        facts = _facts(descriptor) if is_held else {}
        os.close(descriptor)  # if not held: its last holder removed it before our lock
        tries -= is_held
        if tries == 0:
            who = f"process {facts['process']} on {facts['host']}" if facts else "unknown"
            raise SweepError(
                f"another runner ({who}) is at work on {store}; wait for it or stop it"
            )
        if is_held:
            time.sleep(_PAUSE)


def _lock(descriptor: int, shared: bool = False) -> bool:
    """Take the lock of an open file if it is free; closing the file releases it."""
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _facts(descriptor: int) -> dict[str, Any]:
    """What the lock file says; empty while its holder is writing it."""
    try:
        facts = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
