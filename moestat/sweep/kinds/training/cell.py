"""The cell of a sweep of training runs: draw the data, train, and measure."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from moestat.sweep.kinds.training.spec import TrainingSpec
from moestat.sweep.spec.plan import Cell


def measure_training(spec: TrainingSpec, cell: Cell) -> dict[str, object]:
    """Train and measure the model of one cell: values of its record."""
    import torch

    from moestat.networks.smoe.training import run_training

    settings = spec.run(spec.curve(cell.curve), cell.n)
    began = time.process_time()
    with _single_thread():
        runs = (
            run_training(settings, cell.data_seed, cell.fit_seed + start)
            for start in range(settings.starts)
        )
        trained = min(runs, key=lambda run: run.metrics["validation_loss"])
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
