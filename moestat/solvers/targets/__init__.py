"""Targets other than the processor's cores."""

from moestat.solvers.targets.cuda import CudaTarget, device_name, missing
from moestat.solvers.targets.memory import MemoryPlan, plan_memory

__all__ = ["CudaTarget", "MemoryPlan", "device_name", "missing", "plan_memory"]


def __dir__() -> list[str]:
    return sorted(__all__)
