"""Training: one loop for all methods, which can stop and go on with the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from moestat.base.door import door
from moestat.base.files import replacing
from moestat.base.validate import positive_int
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.layer import SMoE, auxiliary_loss, before_step
from moestat.networks.smoe.metrics import (
    Routing,
    evaluating,
    expert_change_rate,
    observe_routing,
    swapped_top,
)
from moestat.networks.smoe.schedule import CompetitionSchedule
from moestat.networks.smoe.training.settings import Settings
from moestat.networks.smoe.training.tasks import make_task
from moestat.networks.smoe.training.tasks.task import Sample, Task
from moestat.networks.smoe.upcycling import upcycle

__all__ = ["TrainingRun", "run_training"]

_OBSERVED = 512
"""Examples (or sequences) whose routing is observed."""


@dataclass
class TrainingRun:
    """A trained model and how it came about.

    Parameters
    ----------
    model : Module
        The model after the last step.
    curves : dict of str to list
        Values by step: ``step``, ``loss`` on the validation sample and, for layers of experts,
        ``change_rate`` since the point before.
    metrics : dict of str to float
        What is left at the end, of the test sample.
    """

    model: nn.Module = field(repr=False)
    curves: dict[str, list[float]] = field(repr=False)
    metrics: dict[str, float]


def learning_rate(settings: Settings, step: int) -> float:
    """The learning rate of a step, from 0."""
    if settings.decay == "cosine":
        return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / settings.n_steps))
    if settings.decay == "inverse-sqrt":
        return settings.learning_rate / math.sqrt(step + 1)
    return settings.learning_rate


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed) % 2**63)
        yield


def _begin(
    settings: Settings, task: Task, seed: int, progress: Callable[[int, float], object] | None
) -> nn.Module:
    with _seeded(seed):
        model = task.model()
    if settings.task == "upcycling":
        # The dense model has the hidden units of one expert, whose copies the experts are.
        first = replace(
            settings,
            task="language",
            method="dense",
            n_hidden=settings.n_hidden,
            top_k=1,
            n_steps=max(settings.dense_steps, 1),
        )
        dense = run_training(first, task.seed, seed, progress=progress).model
        if any(isinstance(module, DenseBlock) for module in model.modules()):
            raise ValueError("method must have experts for the task 'upcycling', got 'dense'")
        upcycle(dense, model)
    return model


@door()
def run_training(
    settings: Settings,
    data_seed: int,
    seed: int,
    *,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    stop_after: int | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> TrainingRun:
    """Train a model by Adam (Kingma and Ba, 2014) on a task.

    Parameters
    ----------
    settings : Settings
        The run.
    data_seed, seed : int
        Seeds of the data; and of initial weights and of the schedule of competitions.
    checkpoint : str or Path, optional
        File that holds the state of training; if it is there, training goes on from it and ends
        with the very bits it would have ended with.
    checkpoint_every : int
        Steps between two checkpoints.
    stop_after : int, optional
        Stop before this step, leaving a checkpoint.
    progress : callable, optional
        Called with the number of steps done and the last loss at every point of the curve.

    Returns
    -------
    TrainingRun
        The model, its learning curves and its metrics on the test sample.

    Raises
    ------
    ValueError
        If an argument is out of range.
    ArithmeticError
        If the loss is not finite; the message names the step.  The last checkpoint stays.
    """
    positive_int("checkpoint_every", checkpoint_every)
    task = make_task(settings, data_seed)
    path = None if checkpoint is None else Path(checkpoint)
    state = torch.load(path, weights_only=True) if path is not None and path.exists() else None
    if state is None:
        model = _begin(settings, task, seed, progress)
    else:
        with _seeded(seed):
            model = task.model()
        model.load_state_dict(state["model"])
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    layers = [module for module in model.modules() if isinstance(module, SMoE)]
    schedule = _schedule(settings, len(layers), seed)
    watch = _Watch(task, model, bool(layers))
    first = 0
    if state is not None:
        optimiser.load_state_dict(state["optimiser"])
        watch.curves, first = state["curves"], state["step"]
        watch.before = [Routing(*parts) for parts in state["routing"]]
    last = settings.n_steps if stop_after is None else min(stop_after, settings.n_steps)
    model.train()
    for step in range(first, last):
        if step % settings.look_every == 0:
            watch.look(step)
            if progress is not None:
                progress(step, watch.curves["loss"][-1])
        if path is not None and step > first and step % checkpoint_every == 0:
            _save(path, step, model, optimiser, watch)
        loss = _step(settings, task, model, optimiser, schedule, step, bool(layers))
        if not math.isfinite(loss):
            raise ArithmeticError(f"the loss is {loss} at step {step}; training stops")
    if last < settings.n_steps:
        if path is not None:
            _save(path, last, model, optimiser, watch)
        return TrainingRun(model, watch.curves, {})
    watch.look(settings.n_steps)
    return TrainingRun(model, watch.curves, watch.metrics())


def _schedule(settings: Settings, n_layers: int, seed: int) -> CompetitionSchedule | None:
    if n_layers == 0 or not settings.method.startswith("compete-"):
        return None
    limit = settings.limit or None
    shape = (n_layers, settings.n_steps)
    early = settings.reading == "code" and settings.method == "compete-v2"
    return CompetitionSchedule(
        *shape, settings.rate, limit, settings.warm_up, rng=seed, earlier_first=early
    )


def _step(
    settings: Settings,
    task: Task,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    schedule: CompetitionSchedule | None,
    step: int,
    sparse: bool,
) -> float:
    """One step; the loss of the task and of the layers before it."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(settings, step)
    if sparse:
        before_step(model, step, settings.n_steps, schedule)
    inputs, targets, _ = task.batch(step)
    optimiser.zero_grad()
    loss = task.loss(model(inputs), targets)
    if sparse:
        loss = loss + auxiliary_loss(model)
    value = loss.item()
    if math.isfinite(value):
        loss.backward()
        optimiser.step()
    return value


def _save(
    path: Path, step: int, model: nn.Module, optimiser: torch.optim.Optimizer, watch: _Watch
) -> None:
    """Write a checkpoint beside the old one, then put it in its place."""
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "curves": watch.curves,
        "routing": [tuple(vars(routing).values()) for routing in watch.before],
    }
    with replacing(path) as file:
        torch.save(state, file)


class _Watch:
    """Learning curves on the validation sample, and metrics on the test sample."""

    def __init__(self, task: Task, model: nn.Module, sparse: bool) -> None:
        self.task, self.model, self.sparse = task, model, sparse
        self.validation = task.held_out(0)
        names = ("step", "loss", "change_rate") if sparse else ("step", "loss")
        self.curves: dict[str, list[float]] = {name: [] for name in names}
        self.before: list[Routing] = []

    def _loss(self, sample: Sample) -> float:
        with evaluating(self.model):
            return self.task.loss(self.model(sample.inputs), sample.targets).item()

    def look(self, step: int) -> None:
        self.curves["step"].append(step)
        self.curves["loss"].append(self._loss(self.validation))
        if self.sparse:
            now = observe_routing(self.model, self.validation.inputs[:_OBSERVED])
            changed = expert_change_rate(self.before, now) if self.before else 1.0
            self.curves["change_rate"].append(changed)
            self.before = now

    def metrics(self) -> dict[str, float]:
        test = self.task.held_out(1)
        loss = self._loss(test)
        metrics = {
            "loss": loss,
            "excess": loss - test.best,
            "validation_loss": self.curves["loss"][-1],
            **self.task.truths(self.model),
        }
        if not self.sparse:
            return metrics
        routing = observe_routing(self.model, test.inputs[:_OBSERVED])
        for name in ("router_entropy", "load_entropy", "weight_entropy", "overlap"):
            values = [getattr(layer, name) for layer in routing]
            metrics[name] = sum(values) / len(values)
        # Of the second half: the first points say more about the start than about the method.
        late = self.curves["change_rate"][len(self.curves["change_rate"]) // 2 :]
        metrics["change_rate"] = sum(late) / len(late)
        layers = [module for module in self.model.modules() if isinstance(module, SMoE)]
        if all(x.router.ranks_all and x.top_k < x.experts.n_experts for x in layers):
            with swapped_top(self.model):
                metrics["swap"] = self._loss(test) - loss
        return metrics
