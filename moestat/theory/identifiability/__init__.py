"""Identifiability found by the machine: PDEs among derivatives, conditions, orbits of truths."""

from moestat.theory.identifiability.cancellation import Cancellation
from moestat.theory.identifiability.conditions import (
    CONDITIONS,
    Coincidence,
    Condition,
    ConditionCheck,
    check_condition,
)
from moestat.theory.identifiability.dependencies import Dependencies, find_dependencies
from moestat.theory.identifiability.orbits import Orbit, OrbitSearch, find_orbits
from moestat.theory.identifiability.rank import Rank
from moestat.theory.identifiability.relations import Relation

__all__ = [
    "CONDITIONS",
    "Cancellation",
    "Coincidence",
    "Condition",
    "ConditionCheck",
    "Dependencies",
    "Orbit",
    "OrbitSearch",
    "Rank",
    "Relation",
    "check_condition",
    "find_dependencies",
    "find_orbits",
]


def __dir__() -> list[str]:
    return sorted(__all__)
