"""Sweeps as processes of their own, to be watched, interrupted and killed."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from moestat.sweep import SweepError, open_store, summarise


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
    """All that the analysis makes of a store, every digit of it."""
    with open_store(path) as store:
        return json.dumps([summary.as_dict() for summary in summarise(store)])


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
