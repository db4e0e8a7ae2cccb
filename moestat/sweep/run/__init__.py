"""Who computes: the runner, executors, progress and cost."""
