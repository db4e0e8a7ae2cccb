"""Tasks with a known truth: data that are drawn, never downloaded.  One file each."""

from __future__ import annotations

from collections.abc import Callable

from moestat.networks.smoe.settings import Settings
from moestat.networks.smoe.tasks.clusters import ClusterClasses, ClusterRegression
from moestat.networks.smoe.tasks.gaussian import GaussianCompetition
from moestat.networks.smoe.tasks.language import TopicLanguage
from moestat.networks.smoe.tasks.task import Task

__all__ = ["TASKS", "Task", "make_task"]

TASKS: dict[str, Callable[[Settings, int], Task]] = {
    "clusters": ClusterRegression,
    "cluster-classes": ClusterClasses,
    "gaussian": GaussianCompetition,
    "language": TopicLanguage,
    "upcycling": TopicLanguage,
}
"""Name -> class, called with settings and the seed of the data."""


def make_task(settings: Settings, seed: int) -> Task:
    """The task of some settings, its data drawn from `seed`."""
    return TASKS[settings.task](settings, seed)
