"""The command line of sweeps; each command imports what it needs, so that help is instant."""

from moestat.sweep.cli._app import app
from moestat.sweep.cli._cells import cell, failures, status
from moestat.sweep.cli._new import new
from moestat.sweep.cli._rates import compare, plot, rates, report, score
from moestat.sweep.cli._run import run
from moestat.sweep.cli._stores import backup, export, list_experiments, merge, verify_store

__all__ = [
    "app",
    "backup",
    "cell",
    "compare",
    "export",
    "failures",
    "list_experiments",
    "merge",
    "new",
    "plot",
    "rates",
    "report",
    "run",
    "score",
    "status",
    "verify_store",
]
