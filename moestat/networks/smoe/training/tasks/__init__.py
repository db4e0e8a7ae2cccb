"""Tasks: a law of data, the model that is trained on it, and their loss.  One file each.

Those of moestat have a known truth, and data that are drawn, never downloaded.  Names can be read
without PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moestat.base.door import door
from moestat.networks.smoe.training.names import TASKS

if TYPE_CHECKING:
    from moestat.networks.smoe.training.settings import Settings
    from moestat.networks.smoe.training.tasks.task import Task

__all__ = ["TASKS", "make_task"]


@door()
def make_task(settings: Settings, seed: int) -> Task:
    """The task of some settings, its data drawn from `seed`."""
    return TASKS[settings.task].make(settings, seed)


def __dir__() -> list[str]:
    return sorted(__all__)
