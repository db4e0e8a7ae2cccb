"""A dask cluster outside the sweep, whose scheduler can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from tests.chaos.processes import children, workers_of

_CLI = "distributed.cli.dask_"


class Cluster:
    """A scheduler and a nanny with two workers, as processes of their own.

    Parameters
    ----------
    folder : Path
        Where they put their files.
    environment : mapping
        Environment of the processes.
    """

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.file = folder / "scheduler.json"
        self.scheduler = self.nannies = None

    def start(self):
        """Start whatever of it is not at work."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.close()  # workers of a scheduler that has gone wait for it
            self.file.unlink(missing_ok=True)
            self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
            ends = time.monotonic() + 120
            while not (self.file.exists() and self.file.stat().st_size):
                assert time.monotonic() < ends, "the scheduler does not start"
                time.sleep(0.05)
            self.nannies = self._start("worker", "--nthreads", "1", "--nworkers", "2")

    def _start(self, role, *options):
        common = ("--scheduler-file", self.file, "--host", "127.0.0.1")
        own = () if role == "scheduler" else ("--local-directory", self.folder, "--no-dashboard")
        return subprocess.Popen(
            [sys.executable, "-m", _CLI + role, *common, *own, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            start_new_session=True,
        )

    def workers(self):
        """Process ids of the workers."""
        return workers_of(self.nannies)

    def kill(self):
        """Kill the scheduler."""
        self.scheduler.kill()
        self.scheduler.wait()

    def close(self):
        """End every process of it."""
        for process in (self.nannies, self.scheduler):
            if process is not None:
                for pid in children(process):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.kill()
                process.wait()
        self.scheduler = self.nannies = None
