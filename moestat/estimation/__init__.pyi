from . import starts as starts
from .fitting.estimators import MoEClassifier as MoEClassifier, MoERegressor as MoERegressor
from .fitting.fit import fit as fit, fit_many as fit_many
from .results.results import MoEResults as MoEResults, load as load
from .starts import (
    ClusterStarts as ClusterStarts,
    GivenStarts as GivenStarts,
    MeasureStarts as MeasureStarts,
    RandomStarts as RandomStarts,
    SplitStarts as SplitStarts,
    TruthStarts as TruthStarts,
)
