"""Sweeps killed at random, over and over: the final table stays the same, bit for bit.

Twenty times within one sweep of 400 cells, for each executor:

    python -m pytest -m slow -s tests/sweep/test_chaos.py
"""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from moestat.sweep import create_store, load_spec, open_cells, open_store, run_cells
from moestat.sweep.store.verification import verify
from tests.sweep.cells import stored_numbers
from tests.sweep.processes import count, final_table, start_run, wait_until, workers_of

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


class Chaos:
    """Runs a spec to its end, with kills at random moments on the way."""

    def __init__(self, spec, out, executor, seed):
        self.command = (spec, out, "--executor", executor)
        self.out, self.random = out, random.Random(seed)
        self.process, self.killed = None, []

    def kill_one(self, threshold, total):
        """Kill coordinator or worker once `threshold` results are there, a random moment later."""
        if self.process is None or self.process.poll() is not None:
            self.process = start_run(*self.command)
        wait_until(lambda: count(self.out) >= threshold or self.process.poll() is not None, 120)
        time.sleep(self.random.uniform(0.0, 0.1))
        workers = workers_of(self.process)
        if count(self.out) == total or self.process.poll() is not None:
            return
        if workers and self.random.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(workers), signal.SIGKILL)
            self.killed.append("worker")
        else:
            self.process.kill()
            self.process.communicate()
            self.killed.append("coordinator")

    def finish(self):
        """Let the last run end, and start one more if it was killed."""
        if self.process.poll() is not None:
            self.process = start_run(*self.command)
        _, errors = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, errors

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def chaos(tmp_path, text):
    """Kill so many times over a sweep of so many cells; compare with an undisturbed sweep."""
    started = []

    def run(executor, kills, replicates, seed):
        spec = tmp_path / "chaos.toml"
        spec.write_text(
            text.replace("[200, 400]", "[3000, 6000]").replace("= 3\n", f"= {replicates}\n", 1)
        )
        loaded, undisturbed = load_spec(spec), tmp_path / "undisturbed.sqlite"
        with create_store(undisturbed, loaded) as store:
            list(run_cells(loaded, store, open_cells(loaded, store), executor="serial"))
        chaotic = Chaos(spec, tmp_path / "killed.sqlite", executor, seed)
        started.append(chaotic)
        thresholds = sorted(chaotic.random.sample(range(loaded.n_cells * 9 // 10), kills))
        for threshold in thresholds:
            chaotic.kill_one(threshold, loaded.n_cells)
        chaotic.finish()
        with open_store(chaotic.out) as one, open_store(undisturbed) as other:
            assert verify(one) == []
            assert stored_numbers(one) == stored_numbers(other)
            assert len(one.statuses()) == loaded.n_cells
        assert final_table(chaotic.out) == final_table(undisturbed)
        return chaotic.killed

    yield run
    for chaotic in started:
        chaotic.stop()


@pytest.mark.slow  # in CI a worker is killed by test_interruptions, a dask run interrupted
def test_two_kills_change_nothing(chaos):
    pytest.importorskip("distributed")
    assert chaos("dask", kills=2, replicates=20, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["process", "dask"])
def test_twenty_kills_change_nothing(chaos, executor):
    killed = chaos(executor, kills=20, replicates=100, seed=1)
    counts = {who: killed.count(who) for who in ("coordinator", "worker")}
    print(f"{executor}: 400 cells, killed {counts}: the table of an undisturbed run")
    assert len(killed) >= 15
