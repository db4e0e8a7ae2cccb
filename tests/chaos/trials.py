"""Numbered trials in processes of their own: one that dies or hangs ends only itself.

A trial is a function of its number alone, so that a run goes on where another was ended: what each
has come to is a line of a file, and trials in it are not made again.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["HANGS", "run_trials", "tell"]

HANGS = 60.0
"""Seconds of processor time after which a trial hangs."""

_MEMORY = 4 * 2**30


def _work(trial: Callable[[int], str], numbers: list[int], pipe: int) -> None:
    """The trials of a child: a line before and a line after each."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, size + _MEMORY))
    for number in numbers:
        os.write(pipe, f"{number}\n".encode())
        began = time.process_time()
        try:
            fate = trial(number)
        except BaseException:  # the trial itself is wrong
            fate = f"broken trial: {traceback.format_exc()[-1500:]}"
        took = time.process_time() - began
        fate = fate if took < HANGS else f"more than {HANGS:g} s: {fate}"
        os.write(pipe, (json.dumps([number, fate, round(took, 3)]) + "\n").encode())


def _child(trial: Callable[[int], str], numbers: list[int]) -> tuple[int, int]:
    """Process id of a child at work, and the pipe that it writes to."""
    there, here = os.pipe()
    pid = os.fork()
    if pid:
        os.close(here)
        return pid, there
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        if not os.environ.get("CHAOS_LOUD"):
            os.dup2(null, 2)
        if "torch" in sys.modules:  # its threads do not live on in a child, which would wait
            sys.modules["torch"].set_num_threads(1)
        _work(trial, numbers, here)
    finally:
        os._exit(0)


def _lines(pid: int, pipe: int) -> Iterable[str]:
    """Lines of a child until it ends; it is killed where it says nothing for too long."""
    # A trial ends by its own processor time; of that a busy machine may give it a twentieth.
    rest, patience = b"", 20 * HANGS
    while True:
        if not select.select([pipe], [], [], patience)[0]:
            os.kill(pid, signal.SIGKILL)
        got = os.read(pipe, 65536)
        if not got:
            return
        *whole, rest = (rest + got).split(b"\n")
        yield from (line.decode() for line in whole)


def run_trials(
    trial: Callable[[int], str],
    describe: Callable[[int], str],
    number: int,
    out: Path | None = None,
) -> Counter[str]:
    """How often each fate befell the trials 0, 1, ...; `describe` says of one what was tried."""
    found, done = Counter[str](), set[int]()
    if out is not None and out.exists():
        for line in out.read_text().splitlines():
            at, fate, _ = json.loads(line)
            done.add(at)
            found[fate] += at < number
    left = [at for at in range(number) if at not in done]
    with open(out or os.devnull, "a") as record:  # noqa: PTH123
        while left:
            pid, pipe = _child(trial, left)
            begun = None
            for line in _lines(pid, pipe):
                if line.isdigit():
                    begun = int(line)
                    continue
                at, fate, _ = json.loads(line)
                begun = None
                found[fate] += 1
                done.add(at)
                print(line, file=record, flush=True)
            os.close(pipe)
            _, status = os.waitpid(pid, 0)
            if begun is not None:
                killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                how = "hang" if killed == signal.SIGKILL else f"death by signal {killed}"
                fate = f"{how}: {describe(begun)}"
                found[fate] += 1
                done.add(begun)
                print(json.dumps([begun, fate, HANGS]), file=record, flush=True)
            left = [at for at in left if at not in done]
    return found


def tell(found: Counter[str], harmless: Iterable[str]) -> int:
    """Print how often each fate befell, the exit status."""
    for fate, times in found.most_common():
        print(f"{times} {fate}")
    bad = sum(times for fate, times in found.items() if fate not in harmless)
    print(f"{sum(found.values())} trials, {bad} failures", file=sys.stdout)
    return 1 if bad else 0
