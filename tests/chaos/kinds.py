"""One small sweep of each kind, whose cells take milliseconds."""

from tests.sweep.conftest import SPEC as FIT
from tests.sweep.inference.test_inference_sweeps import SPEC as INFERENCE
from tests.sweep.networks.test_networks import SPEC as NETWORK
from tests.sweep.training.test_trainings import SPEC as TRAINING

SPECS = {"fit": FIT, "network": NETWORK, "training": TRAINING, "inference": INFERENCE}
