"""The cell of a sweep of training runs: draw the data, train, and measure."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.training.spec import TrainingSpec
from moestat.sweep.run.cell import attempt, settle
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record

__all__ = ["run_training"]


def run_training(text: str, cell: Cell) -> Record:
    """Train and measure the model of one cell; a pure function of its arguments.

    Parameters
    ----------
    text : str
        TOML text of the spec.
    cell : Cell
        The cell.

    Returns
    -------
    Record
        Metrics under ``losses``, with their curves; or a failed record with the reason.
    """
    began = time.perf_counter()
    found = attempt(cell, lambda: _metrics(text, cell))
    return settle(cell, found, time.perf_counter() - began)


def _metrics(text: str, cell: Cell) -> dict[str, Any]:
    spec: Any = parse_spec(text)
    assert isinstance(spec, TrainingSpec)
    if find_spec("torch") is None:
        raise SweepError("training needs PyTorch: pip install 'moestat[torch]'")
    import torch

    from moestat.networks.smoe.training import train

    settings = spec.run(spec.curve(cell.curve), cell.n)
    began = time.process_time()
    with _single_thread():
        trained = train(settings, cell.data_seed, cell.fit_seed)
    metrics = trained.metrics
    if not all(map(math.isfinite, metrics.values())):
        raise ArithmeticError(f"a metric is not finite: {metrics}")
    losses = {
        **{name: value for name, value in metrics.items() if name != "loss"},
        "test_loss": metrics["loss"],
        "curve": trained.curves,
        "processor_seconds": time.process_time() - began,
        "torch": torch.__version__,
    }
    return {"loss": metrics["loss"], "losses": losses}


@contextmanager
def _single_thread() -> Iterator[None]:
    """PyTorch in one thread: sums that are split over threads may round differently."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
