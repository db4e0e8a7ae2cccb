"""The command line of sweeps; each command imports what it needs, so that help is instant."""

from moestat.sweep.cli import _cells, _rates, _run, _stores  # noqa: F401 - they register commands
from moestat.sweep.cli._app import app

__all__ = ["app"]


def __dir__() -> list[str]:
    return sorted(__all__)
