"""Kinds of checks, a file each: evidence, rule, words and analysis."""

from experiments.claims.kinds.base import Check, Evidence, Missing
from experiments.claims.kinds.conditions import Condition, DependenceEvidence, judge_dependence
from experiments.claims.kinds.contrasts import (
    Contrast,
    ContrastEvidence,
    TunedContrast,
    judge_contrast,
)
from experiments.claims.kinds.far import Far, FarEvidence, judge_far
from experiments.claims.kinds.identities import Identity, IdentityEvidence, judge_identity
from experiments.claims.kinds.inequalities import Inequality, InequalityEvidence, judge_inequality
from experiments.claims.kinds.orbits import Orbit, OrbitEvidence, judge_orbit
from experiments.claims.kinds.orders import Order, OrderEvidence, judge_order
from experiments.claims.kinds.pairs import PairEvidence, Witness, judge_pair
from experiments.claims.kinds.printed import Printed, PrintedEvidence, judge_printed
from experiments.claims.kinds.quantiles import Floored, QuantileEvidence, judge_quantile
from experiments.claims.kinds.replays import Replayed, ReplayEvidence, judge_replay
from experiments.claims.kinds.sequences import (
    Bound,
    Exponent,
    Fit,
    Sequence,
    SequenceEvidence,
    judge_exponent,
    judge_infimum,
    judge_power,
    judge_sequence,
    sequence_exponent,
)
from experiments.claims.kinds.slopes import (
    FREE_MASSES,
    AsPrinted,
    Slope,
    SlopeEvidence,
    judge_slope,
)

__all__ = [
    "FREE_MASSES",
    "AsPrinted",
    "Bound",
    "Check",
    "Condition",
    "Contrast",
    "ContrastEvidence",
    "DependenceEvidence",
    "Evidence",
    "Exponent",
    "Far",
    "FarEvidence",
    "Fit",
    "Floored",
    "Identity",
    "IdentityEvidence",
    "Inequality",
    "InequalityEvidence",
    "Missing",
    "Orbit",
    "OrbitEvidence",
    "Order",
    "OrderEvidence",
    "PairEvidence",
    "Printed",
    "PrintedEvidence",
    "QuantileEvidence",
    "ReplayEvidence",
    "Replayed",
    "Sequence",
    "SequenceEvidence",
    "Slope",
    "SlopeEvidence",
    "TunedContrast",
    "Witness",
    "judge_contrast",
    "judge_dependence",
    "judge_exponent",
    "judge_far",
    "judge_identity",
    "judge_inequality",
    "judge_infimum",
    "judge_orbit",
    "judge_order",
    "judge_pair",
    "judge_power",
    "judge_printed",
    "judge_quantile",
    "judge_replay",
    "judge_sequence",
    "judge_slope",
    "sequence_exponent",
]
