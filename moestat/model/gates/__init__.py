"""Gates: each one file with the log-score of an atom; a new gate is registered here."""

from moestat.base.registry import Registry
from moestat.model.gates import (
    competition,
    dense_to_sparse,
    hierarchical,
    laplace,
    perturbed_cosine,
    quadratic,
    sigmoid,
    sigmoid_euclidean,
    sigmoid_inner,
    softmax,
)
from moestat.model.members import Gate

__all__ = ["GATES"]

GATES: Registry[Gate] = Registry("gate", "moestat.gates")
GATES.register(softmax.GATE)
GATES.register(softmax.TOP)
GATES.register(sigmoid.GATE)
GATES.register(sigmoid_inner.GATE)
GATES.register(sigmoid_euclidean.GATE)
GATES.register(competition.UNIT)
GATES.register(competition.NORMALISED)
GATES.register(competition.FREE)
GATES.register(competition.TOP)
for _member in quadratic.members(softmax.block):
    GATES.register(_member)
GATES.register(laplace.GATE)
GATES.register(dense_to_sparse.GATE)
GATES.register(perturbed_cosine.GATE)
GATES.register(hierarchical.GATE)


def __dir__() -> list[str]:
    return sorted(__all__)
