# Public names and where they are; `__init__.py` loads each on first use.

from . import datasets as datasets, solvers as solvers, theory as theory
from .estimation import starts as starts
from .estimation.fitting.fit_blocks import fit_blocks as fit_blocks
from .estimation.rows.blocks import Blocks as Blocks
from .estimation.results.comparison import compare as compare
from .estimation.fitting.estimators import (
    MoEClassifier as MoEClassifier,
    MoERegressor as MoERegressor,
)
from .estimation.fitting.fit import fit as fit, fit_many as fit_many
from .estimation.fitting.fit_formula import fit_formula as fit_formula
from .estimation.inference.bootstrap import bootstrap as bootstrap
from .estimation.inference.dendrogram import dendrogram as dendrogram
from .estimation.studies.em_test import em_test as em_test
from .estimation.studies.lasso import lasso_path as lasso_path
from .estimation.inference.nested import lr_test as lr_test, score_test as score_test
from .estimation.studies.order import bootstrap_lrt as bootstrap_lrt
from .estimation.inference.profile import profile as profile
from .estimation.studies.required import required_n as required_n
from .estimation.inference.restricted import (
    RestrictedFit as RestrictedFit,
    fit_constrained as fit_constrained,
)
from .estimation.studies.selection import select as select
from .estimation.studies.stepwise import stepwise as stepwise
from .estimation.fitting.likelihood import (
    gate_probabilities as gate_probabilities,
    hessian as hessian,
    log_likelihood as log_likelihood,
    responsibilities as responsibilities,
    score as score,
)
from .estimation.data.priors import Prior as Prior
from .estimation.results.results import load as load
from .metrics import losses as losses
from .metrics.distances import (
    hellinger as hellinger,
    regression_error as regression_error,
    total_variation as total_variation,
)
from .metrics.information import (
    expected_information as expected_information,
    information_spectrum as information_spectrum,
)
from .metrics.losses import voronoi_loss as voronoi_loss, voronoi_terms as voronoi_terms
from .model import (
    attention as attention,
    designs as designs,
    experts as experts,
    gates as gates,
    likelihoods as likelihoods,
)
from .model.compression import compress as compress
from .model.designs import Lattice as Lattice, Uniform as Uniform
from .model.axes import family as family
from .model.family import Family as Family
from .model.generate import sample as sample, sample_weighted as sample_weighted
from .model.measure import MixingMeasure as MixingMeasure
from .rates.comparisons import compare_rates as compare_rates
from .rates.plots import plot_rates as plot_rates
from .rates.rate import fit_rate as fit_rate

__version__: str
