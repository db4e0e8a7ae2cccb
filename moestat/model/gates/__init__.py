"""Gates: each one file with the log-score of an atom; a new gate is registered here."""

from moestat.base.registry import Registry
from moestat.base.types import Gate
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
GATES.register(quadratic.SIGMOID)
GATES.register(quadratic.SIGMOID_PARTIAL)
GATES.register(quadratic.RAW)
GATES.register(quadratic.SOFTMAX)
GATES.register(quadratic.SOFTMAX_PARTIAL)
GATES.register(laplace.GATE)
GATES.register(dense_to_sparse.GATE)
GATES.register(perturbed_cosine.GATE)
GATES.register(hierarchical.GATE)
