"""Tasks: a law of data, the model that is trained on it, and their loss.  One file each.

Those of moestat have a known truth, and data that are drawn, never downloaded.  Names can be read
without PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from moestat.base.door import door
from moestat.base.registry import Maker, Registry

if TYPE_CHECKING:
    from moestat.networks.smoe.training.settings import Settings
    from moestat.networks.smoe.training.tasks.task import Task

__all__ = ["TASKS", "make_task"]


def _maker(module: str, name: str) -> Callable[[Settings, int], Task]:
    def make(settings: Settings, seed: int) -> Task:
        return getattr(import_module(f"{__name__}.{module}"), name)(settings, seed)

    return make


TASKS: Registry[Maker] = Registry("task", "moestat.networks.tasks")
"""Name -> class, called with settings and the seed of the data."""
for _name, _module, _class in (
    ("clusters", "clusters", "ClusterRegression"),
    ("cluster-classes", "clusters", "ClusterClasses"),
    ("gaussian", "gaussian", "GaussianCompetition"),
    ("language", "language", "TopicLanguage"),
    ("upcycling", "language", "TopicLanguage"),
):
    TASKS.register(Maker(_name, _maker(_module, _class)))


@door()
def make_task(settings: Settings, seed: int) -> Task:
    """The task of some settings, its data drawn from `seed`."""
    return TASKS[settings.task].make(settings, seed)


def __dir__() -> list[str]:
    return sorted(__all__)
