"""Chaos: a sweep of 400 cells, disturbed at random, must end like an undisturbed one.

    python -m tests.chaos --minutes 30 [--executor process|dask] [--seed 0]

Sweeps follow each other until the time is over.  While one runs, a random schedule kills and stops
its coordinator and its workers, fills the disk, starts second runners, deletes the store (what the
run saves takes its place), and flips bytes while nothing runs.  At the end every column that must
not depend on how a cell was computed is compared, and the store is verified.
"""

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from moestat.sweep import create_store, load_spec, open_cells, open_store, run_cells
from moestat.sweep.verification import verify
from tests.sweep.cells import stored_numbers
from tests.sweep.conftest import SPEC
from tests.sweep.processes import count, start_run, workers_of

ACTIONS = ("kill", "kill", "worker", "worker", "stop", "terminate", "disk", "second", "delete")
_CODES = {0, 2, 130, 143, -signal.SIGKILL}


class Chaos:
    """One sweep and what befalls it."""

    def __init__(self, spec, out, executor, pick):
        self.command = (spec, out, "--executor", executor)
        self.out, self.pick, self.done = out, pick, Counter()
        self.process, self.failures = None, []

    def start(self):
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.process = start_run(*self.command)

    def end(self):
        """Read what the last run said; anything but a clear end is a failure."""
        if self.process is None:
            return
        try:
            _, errors = self.process.communicate(timeout=120)
        except Exception:
            self.process.kill()
            _, errors = self.process.communicate()
            self.failures.append(f"did not end: {errors}")
        if self.process.returncode not in _CODES or "Traceback" in errors:
            self.failures.append(f"exit {self.process.returncode}: {errors}")
        self.process = None
        for saved in self.out.parent.glob("*.saved-*.sqlite"):
            saved.replace(self.out)

    def disturb(self, action):
        """Do one thing to the run that is at work."""
        process = self.process
        if action == "kill":
            process.kill()
        elif action == "worker":
            workers = workers_of(process)
            if not workers:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pick.choice(workers), signal.SIGKILL)
        elif action in ("stop", "terminate"):
            number = signal.SIGINT if action == "stop" else signal.SIGTERM
            os.kill(process.pid, number)
        elif action == "disk":
            limit = sum(path.stat().st_size for path in self.out.parent.glob("*.sqlite*")) + 20_000
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        elif action == "second":
            second = start_run(*self.command)
            _, errors = second.communicate(timeout=120)
            if second.returncode not in (0, 2) or "Traceback" in errors:
                self.failures.append(f"second runner, exit {second.returncode}: {errors}")
        elif action == "delete":
            for path in self.out.parent.glob(f"{self.out.name}*"):
                if not path.name.endswith(".lock"):
                    path.unlink(missing_ok=True)
        self.done[action] += 1

    def flip(self):
        """Change a byte of a row's text while nothing runs."""
        whole = bytearray(self.out.read_bytes())
        at = whole.find(b'"cell_sizes"', self.pick.randrange(len(whole)))
        if at > 0:
            whole[at + self.pick.randrange(40)] ^= 1
            self.out.write_bytes(whole)
            self.done["flip"] += 1


def disturbed(spec, out, executor, pick, ends, total):
    """Run a sweep to its end with disturbances until the time is over; returns the `Chaos`."""
    chaos = Chaos(spec, out, executor, pick)
    while count(out) < total and time.monotonic() < ends:
        chaos.start()
        before, waited = count(out), time.monotonic() + 60
        while chaos.process.poll() is None and count(out) < before + 5:
            if time.monotonic() > waited:
                break
            time.sleep(0.05)
        time.sleep(pick.uniform(0.0, 0.5))
        if chaos.process.poll() is None:
            chaos.disturb(pick.choice(ACTIONS))
        if pick.random() < 0.2 and chaos.process.poll() is not None:
            chaos.end()
            if out.exists() and not out.with_name(out.name + "-wal").exists():
                chaos.flip()
    for _ in range(3):
        chaos.end()
        chaos.process = start_run(*chaos.command)
        chaos.process.wait(600)
        if chaos.process.returncode == 0:
            break
    chaos.end()
    return chaos


def run(minutes, executor, seed, replicates=100, sizes="[3000, 6000]"):
    """Disturbances by kind, number of cells compared, and failures."""
    pick, done, failures, compared = random.Random(seed), Counter(), [], 0
    ends = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "chaos.toml"
        text = SPEC.replace("[200, 400]", sizes).replace("= 3\n", f"= {replicates}\n", 1)
        spec.write_text(text)
        loaded, undisturbed = load_spec(spec), folder / "undisturbed" / "a.sqlite"
        undisturbed.parent.mkdir()
        with create_store(undisturbed, loaded) as store:
            list(run_cells(loaded, store, open_cells(loaded, store), executor="serial"))
            expected = stored_numbers(store)
        sweep = 0
        while sweep == 0 or time.monotonic() < ends:
            sweep += 1
            out = folder / str(sweep) / "a.sqlite"
            out.parent.mkdir()
            chosen = executor or pick.choice(("process", "dask"))
            chaos = disturbed(spec, out, chosen, pick, ends, loaded.n_cells)
            done += chaos.done
            failures += chaos.failures
            with open_store(out) as store:
                failures += verify(store)
                found = stored_numbers(store)
            failures += [key for key in expected if found.get(key) != expected[key]]
            compared += len(expected)
    return done, compared, failures


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--executor", choices=("process", "dask"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done, compared, failures = run(options.minutes, options.executor, options.seed)
    print(
        f"{sum(done.values())} disturbances {dict(done)}; {compared} cells compared;"
        f" {len(failures)} failures"
    )
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
