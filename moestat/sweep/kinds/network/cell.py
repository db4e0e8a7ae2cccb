"""The cell of a sweep of networks: draw the data, train, and measure."""

from __future__ import annotations

import numpy as np

from moestat.networks import Weights, evaluate, expert_errors, train
from moestat.networks.expert_count.metrics import evaluate_on
from moestat.networks.expert_count.passes import Passes
from moestat.networks.expert_count.training import PRECISIONS
from moestat.sweep.kinds.network.spec import NetworkSpec
from moestat.sweep.spec.plan import Cell

_MARGINS = {"smallest": 0.0, "lower": 0.05, "median": 0.5}


def measure_network(spec: NetworkSpec, cell: Cell) -> dict[str, object]:
    """Train and measure the network of one cell: values of its record."""
    run = spec.run(spec.curve(cell.curve), cell.n)
    data_rng, test_rng = np.random.default_rng(cell.data_seed).spawn(2)
    data, test = run.law.sample(run.n, data_rng), run.law.sample(run.n_test, test_rng)
    testing = Passes(run.network, test, PRECISIONS[run.precision])
    curve: dict[str, list[float]] = {
        name: [] for name in ("step", "test_accuracy", "test_loss", "entropy")
    }

    def look(step: int, now: Weights) -> None:
        measured = evaluate_on(testing, now)
        values = (step, measured.accuracy, measured.loss, measured.entropy)
        for values_so_far, value in zip(curve.values(), values, strict=True):
            values_so_far.append(value)

    trained = train(
        run.network,
        data,
        run.n_steps,
        optimiser=run.optimiser,
        rng=cell.fit_seed,
        precision=run.precision,
        look=look,
        look_every=run.look_every,
    )
    weights = trained.weights
    after, errors = evaluate_on(testing, weights), expert_errors(run.network, weights, test)
    before = evaluate(run.network, weights, data)
    # The cluster of an expert is the one with its smallest error, the first one if several tie.
    best_cluster = errors.argmin(axis=0)
    return {
        "loss": after.loss,
        "losses": {
            "test_accuracy": after.accuracy,
            "test_loss": after.loss,
            "train_accuracy": before.accuracy,
            "train_loss": before.loss,
            "entropy": after.entropy,
            "train_entropy": before.entropy,
            "experts_in_use": after.experts_in_use,
            "margins": {
                name: float(np.quantile(after.margins, at)) for name, at in _MARGINS.items()
            },
            "unmoved": int(trained.unmoved.sum()),
            "specialist_share": float(np.mean(best_cluster[after.chosen] == after.cluster)),
            "clusters_covered": len(set(best_cluster.tolist())),
            # The four statements of Theorem 1: two errors, the worst specialist, wrong routes.
            "theorem": {
                "training_error": 1.0 - before.accuracy,
                "test_error": 1.0 - after.accuracy,
                "worst_specialist_error": float(errors.min(axis=0).max()),
                "misrouted": float(np.mean(best_cluster[after.chosen] != after.cluster)),
            },
            "curve": curve,
        },
    }
