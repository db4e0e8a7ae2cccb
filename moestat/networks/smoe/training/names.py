"""Names of tasks, which can be read without PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from moestat.base.registry import Maker, Registry

__all__ = ["TASKS"]

_ROOM = "moestat.networks.smoe.training.tasks"


def _maker(module: str, name: str) -> Callable[..., Any]:
    def make(settings: object, seed: int) -> Any:
        return getattr(import_module(f"{_ROOM}.{module}"), name)(settings, seed)

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
