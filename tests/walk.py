"""Walks through the code: which files a question enters, and how deep its calls are.

    python -m tests.walk [fit | predict | figure | claim] [--calls]

A reader who follows a question from its entry point to its answer opens these files.  Each walk is
taken warm: loops are compiled and modules imported before it begins.  With ``--calls`` the first
call into each file is listed with its depth.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import moestat

ROOT = Path(__file__).parents[1]
OWN = (str(ROOT / "moestat"), str(ROOT / "experiments"))


def walk(question: Callable[[], Any]) -> tuple[dict[tuple[str, str], int], int, int]:
    """Functions called, with their files and depths in order; the deepest call; number of calls."""
    entered: dict[tuple[str, str], int] = {}
    depth, deepest, calls = 0, 0, 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest, calls
        path = frame.f_code.co_filename
        if not path.startswith(OWN):
            return
        if event == "call":
            depth, calls = depth + 1, calls + 1
            deepest = max(deepest, depth)
            entered.setdefault((str(Path(path).relative_to(ROOT)), frame.f_code.co_qualname), depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(note)
    try:
        question()
    finally:
        sys.setprofile(None)
    return entered, deepest, calls


def _data() -> tuple[Any, Any]:
    truth = moestat.family("gaussian", gate="softmax", n_experts=2)
    theta = truth.pack(
        {"beta0": [0, 0], "beta1": [4, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.1]}
    )
    return moestat.sample(truth, theta, 500, rng=0, design=moestat.Uniform(-1.0, 1.0))


def _fit() -> Callable[[], Any]:
    X, y = _data()
    return lambda: moestat.fit("gaussian", X, y, rng=0, threads=1)


def _predict() -> Callable[[], Any]:
    result = _fit()()
    X = np.linspace(-1.0, 1.0, 7)[:, None]
    return lambda: result.predict(X)


def _figure() -> Callable[[], Any]:
    from moestat.sweep import create_store, load_spec, open_cells, run_cells
    from moestat.sweep.report.writing import write_report
    from moestat.sweep.spec.experiments import shipped

    spec = load_spec(shipped()["quickstart"])

    def question() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            create_store(Path(folder) / "store.sqlite", spec) as store,
        ):
            cells = open_cells(spec, store)[:4]
            list(run_cells(spec, store, cells, executor="serial"))
            write_report(store)

    return question


def _claim() -> Callable[[], Any]:
    from experiments.verify.page import markdown
    from experiments.verify.verification import verify

    def question() -> None:
        with tempfile.TemporaryDirectory() as folder:
            markdown(verify(["attention.equation-8"], folder=Path(folder), workers=1))

    return question


QUESTIONS: dict[str, Callable[[], Callable[[], Any]]] = {
    "fit": _fit,
    "predict": _predict,
    "figure": _figure,
    "claim": _claim,
}


def main(words: list[str]) -> None:
    """Print the walks."""
    chosen = [w for w in words if not w.startswith("--")] or [*QUESTIONS]
    warnings.simplefilter("ignore")
    for name in chosen:
        question = QUESTIONS[name]()
        question()
        entered, deepest, calls = walk(question)
        first: dict[str, tuple[str, int]] = {}
        for (path, call), depth in entered.items():
            first.setdefault(path, (call, depth))
        rooms = {str(Path(path).parent) for path in first}
        print(
            f"{name:10s} {len(first):4d} files in {len(rooms)} folders, "
            f"{deepest} calls deep, {calls} calls"
        )
        if "--calls" in words:
            for path, (call, depth) in first.items():
                print(f"  {depth:3d}  {path:55s} {call}")


if __name__ == "__main__":
    main(sys.argv[1:])
