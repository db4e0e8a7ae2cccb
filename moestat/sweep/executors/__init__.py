"""Executors: how the cells of a sweep are scheduled; a new one is registered here."""

from moestat._registry import Registry
from moestat.sweep.executors import process, serial
from moestat.sweep.executors._types import Executor, Lost

__all__ = ["EXECUTORS", "Executor", "Lost"]

EXECUTORS: Registry[Executor] = Registry("executor")
EXECUTORS.register(process.EXECUTOR)
EXECUTORS.register(serial.EXECUTOR)
