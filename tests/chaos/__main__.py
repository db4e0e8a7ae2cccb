"""Chaos: sweeps of a few hundred cells, disturbed at random, must end like an undisturbed one.

    python -m tests.chaos --minutes 30 [--executor process|dask|scheduler] [--kind fit|network|...]
        [--kills 200] [--seed 0]

Sweeps of all kinds follow each other until the time is over, or until there were so many kills.
They run in turn on the executor `process`, on `dask` with a cluster of the run's own, and on
`scheduler`: dask with a scheduler outside the run.  While one runs, a random schedule kills its
coordinator, its workers and the scheduler, stops and pauses it, lets the clock of all its processes
jump by up to a year, fills the disk, starts second runners, deletes the store (what the run saves
takes its place), and flips bytes while nothing runs.  At the end every column that must not depend
on how a cell was computed is compared, and the store is verified.
"""

import argparse
import contextlib
import os
import random
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from moestat.sweep import create_store, load_spec, open_cells, open_store, run_cells
from moestat.sweep.store.verification import verify
from tests.chaos.cluster import Cluster
from tests.chaos.damage import flip_file
from tests.chaos.kinds import SPECS
from tests.chaos.processes import final_table, start_run, workers_of
from tests.sweep.cells import stored_numbers

EXECUTORS = ("process", "dask", "scheduler")
KILLS = ("coordinator", "worker", "scheduler")
ACTIONS = (
    *("coordinator", "coordinator", "worker", "worker", "stop", "terminate", "pause"),
    *("clock", "disk", "second", "delete"),
)
_CODES = {0, 2, 130, 143, -signal.SIGKILL}
_YEAR = 365 * 86400.0
_PATIENCE = 300.0
_SIZES = {"inference": "[200, 400]"}
"""Where rows of the kind's own number take long enough to be disturbed."""


class Chaos:
    """One sweep and what befalls it."""

    def __init__(self, spec, out, executor, pick, actions=None):
        self.out, self.pick, self.done = out, pick, Counter()
        self.process, self.failures = None, []
        self.clock = out.with_name("clock")
        paths = (
            str(Path(__file__).with_name("clock")),
            os.environ.get("PYTHONPATH", str(Path.cwd())),
        )
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "CHAOS_CLOCK": str(self.clock),
        }
        self.command = (spec, out, "--executor", "process" if executor == "process" else "dask")
        self.actions, self.cluster = ACTIONS, None
        if executor == "scheduler":
            self.actions += ("scheduler", "scheduler", "scheduler")
            self.cluster = Cluster(out.parent, self.environment)
            self.command += ("--scheduler", str(self.cluster.file))
        if actions is not None:
            self.actions = tuple(each for each in self.actions if each in actions)

    def run(self):
        return start_run(*self.command, environment=self.environment)

    def start(self):
        if self.process is None or self.process.poll() is not None:
            self.end()
            if self.cluster is not None:
                self.cluster.start()
            self.process = self.run()

    def end(self):
        """Read what the last run said; anything but a clear end is a failure."""
        if self.process is None:
            return
        try:
            _, errors = self.process.communicate(timeout=_PATIENCE)
        except Exception:
            self.process.kill()
            _, errors = self.process.communicate()
            self.failures.append(f"did not end: {errors}")
        if self.process.returncode not in _CODES or "Traceback" in errors:
            self.failures.append(f"exit {self.process.returncode}: {errors}")
        self.process = None
        for saved in self.out.parent.glob("*.saved-*.sqlite"):
            saved.replace(self.out)

    def workers(self):
        return workers_of(self.process) if self.cluster is None else self.cluster.workers()

    def disturb(self, action):
        """Do one thing to the run that is at work."""
        process = self.process
        if action == "coordinator":
            process.kill()
        elif action == "scheduler":
            self.cluster.kill()
        elif action in ("worker", "pause"):
            chosen = self.workers() + [process.pid] * (action == "pause")
            if not chosen:
                return
            pid = self.pick.choice(chosen)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if action == "worker" else signal.SIGSTOP)
                if action == "pause":
                    time.sleep(2.0)
                    os.kill(pid, signal.SIGCONT)
        elif action in ("stop", "terminate"):
            number = signal.SIGINT if action == "stop" else signal.SIGTERM
            os.kill(process.pid, number)
        elif action == "clock":
            self.clock.write_text(str(self.pick.uniform(-_YEAR, _YEAR)))
        elif action == "disk":
            limit = sum(path.stat().st_size for path in self.out.parent.glob("*.sqlite*")) + 20_000
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        elif action == "second":
            second = self.run()
            _, errors = second.communicate(timeout=_PATIENCE)
            if second.returncode not in (0, 2) or "Traceback" in errors:
                self.failures.append(f"second runner, exit {second.returncode}: {errors}")
        elif action == "delete":
            for path in self.out.parent.glob(f"{self.out.name}*"):
                if not path.name.endswith(".lock"):
                    path.unlink(missing_ok=True)
        self.done[action] += 1

    def flip(self):
        """Change a byte of a row while nothing runs."""
        if self.out.exists() and flip_file(self.out, self.pick):
            self.done["flip"] += 1


def written(path):
    """Number of rows of a store as its head has it; 0 while there is none."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as store:
            return int(store.execute("SELECT value FROM meta WHERE key = 'rows'").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return 0


def disturbed(spec, out, executor, pick, over, total, actions=None):
    """Run a sweep to its end with disturbances until it is `over`; returns the `Chaos`."""
    chaos = Chaos(spec, out, executor, pick, actions)
    try:
        while written(out) < total and not over(chaos.done):
            chaos.start()
            action = pick.choice(chaos.actions)
            early = action in KILLS and pick.random() < 0.5  # a run may die while it starts, too
            before, waited = written(out), time.monotonic() + (pick.uniform(0, 10) if early else 60)
            while chaos.process.poll() is None and written(out) < before + 5:
                if time.monotonic() > waited:
                    break
                time.sleep(0.05)
            time.sleep(pick.uniform(0.0, 0.5))
            if chaos.process.poll() is None:
                chaos.disturb(action)
            if pick.random() < 0.2 and chaos.process.poll() is not None:
                chaos.end()
                if out.exists() and not out.with_name(out.name + "-wal").exists():
                    chaos.flip()
        for _ in range(3):
            chaos.end()
            chaos.start()
            chaos.process.wait(600)
            if chaos.process.returncode == 0:
                break
        chaos.end()
    finally:
        if chaos.cluster is not None:
            chaos.cluster.close()
    return chaos


def _undisturbed(path, kind, replicates, sizes):
    """The spec of a kind, written to a path, the numbers of its sweep, and its final table."""
    text = re.sub("(?m)^replicates = .*", f"replicates = {replicates}", SPECS[kind])
    path.write_text(text.replace("[200, 400]", _SIZES.get(kind, sizes)))
    loaded, there = load_spec(path), path.with_suffix(".sqlite")
    with create_store(there, loaded) as store:
        list(run_cells(loaded, store, open_cells(loaded, store), executor="serial"))
        expected = stored_numbers(store)
    return loaded, expected, final_table(there)


def run(
    minutes,
    executor,
    seed,
    replicates=100,
    sizes="[3000, 6000]",
    kills=None,
    tell=None,
    actions=None,
    kind=None,
):
    """Disturbances by kind, number of cells compared, and failures."""
    pick, done, failures, compared, ends = random.Random(seed), Counter(), [], 0, None

    def over(more=()):
        enough = kills is not None and sum((done + Counter(more))[each] for each in KILLS) >= kills
        return enough or time.monotonic() > ends

    with tempfile.TemporaryDirectory() as name:
        folder, undisturbed = Path(name), {}
        sweep = 0
        while ends is None or not over():
            chosen = executor or EXECUTORS[sweep % len(EXECUTORS)]
            which = kind or list(SPECS)[sweep % len(SPECS)]
            spec = folder / f"{which}.toml"
            if which not in undisturbed:
                undisturbed[which] = _undisturbed(spec, which, replicates, sizes)
            ends = ends or time.monotonic() + 60 * minutes
            loaded, expected, table = undisturbed[which]
            sweep += 1
            out = folder / str(sweep) / "a.sqlite"
            out.parent.mkdir()
            chaos = disturbed(spec, out, chosen, pick, over, loaded.n_cells, actions)
            done += chaos.done
            found_here = list(chaos.failures)
            with open_store(out) as store:
                found_here += verify(store)
                found = stored_numbers(store)
            found_here += [key for key in expected if found.get(key) != expected[key]]
            found_here += ["the final table"] * (final_table(out) != table)
            compared += len(expected)
            failures += found_here
            if tell is not None:
                tell(f"{which}, {chosen}: {dict(chaos.done)}; {len(found_here)} fail {found_here}")
    return done, compared, failures


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--executor", choices=EXECUTORS)
    parser.add_argument("--kind", choices=SPECS)
    parser.add_argument("--kills", type=int, help="end after so many kills, too")
    parser.add_argument(
        "--actions", nargs="*", choices=sorted({*ACTIONS, *KILLS}), help="only these"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replicates", type=int, default=100, help="a quarter of the cells")
    options = parser.parse_args()
    done, compared, failures = run(
        options.minutes,
        options.executor,
        options.seed,
        replicates=options.replicates,
        kills=options.kills,
        actions=options.actions,
        kind=options.kind,
        tell=lambda line: print(line, flush=True),
    )
    print(
        f"{sum(done.values())} disturbances {dict(done)}; {compared} cells compared;"
        f" {len(failures)} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
