"""Sweeps as processes of their own, to be watched, interrupted and killed."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from moestat.sweep import SweepError, open_store
from moestat.sweep.kinds.kind import kind_of


def start_run(spec, out, *options, workers=2, environment=None):
    """Start the command line in its own process group, as a shell does."""
    command = [sys.executable, "-W", "error", "-m", "moestat.sweep", "run", spec, "--out", out]
    return subprocess.Popen(
        [*command, "--workers", str(workers), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        # A script's background jobs ignore interrupts, and so would whatever they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def final_table(path):
    """All that the analysis makes of a store, every digit of it but how long things took."""
    with open_store(path) as store:
        found = [summary.as_dict() for summary in kind_of(store.spec.kind).summarise(store)]
    return json.dumps(json.loads(json.dumps(found), object_hook=_timeless))


def _timeless(found):
    return {name: value for name, value in found.items() if name != "processor_seconds"}


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("timed out")


def count(path):
    """Number of results in a store, 0 while it is being made."""
    with contextlib.suppress(SweepError), open_store(path) as store:
        return len(store.statuses())
    return 0


def children(process):
    """Process ids of the children of `process`."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return {
            int(child)
            for task in Path(f"/proc/{process.pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        }
    return set()


def workers_of(process):
    """Process ids of the workers, of the process and of the dask executor."""
    return sorted(pid for pid in children(process) if b"spawn_main" in _command_line(pid))


def _command_line(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
