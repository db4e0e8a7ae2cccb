"""Targets other than the processor's cores."""

from moestat.devices.cuda import CudaTarget, device_name, missing
from moestat.devices.memory import MemoryPlan, plan_memory

__all__ = ["CudaTarget", "MemoryPlan", "device_name", "missing", "plan_memory"]
