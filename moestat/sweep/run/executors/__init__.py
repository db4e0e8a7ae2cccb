"""Executors: how the cells of a sweep are scheduled; a new one is registered here."""

from moestat.base.registry import Registry
from moestat.sweep.run.executors import cuda, dask, process, serial
from moestat.sweep.run.executors._types import Executor, Lost
from moestat.sweep.run.executors.dask import dask_executor

__all__ = ["EXECUTORS", "Executor", "Lost", "dask_executor"]

EXECUTORS: Registry[Executor] = Registry("executor", "moestat.executors")
EXECUTORS.register(cuda.EXECUTOR)
EXECUTORS.register(dask.EXECUTOR)
EXECUTORS.register(process.EXECUTOR)
EXECUTORS.register(serial.EXECUTOR)
