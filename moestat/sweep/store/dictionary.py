"""The data dictionary: what each column of an exported table holds."""

from __future__ import annotations

from fnmatch import fnmatchcase

_DESCRIPTIONS = {
    "key": "name of the cell",
    "curve": "curve of the spec",
    "n": "sample size, or the value of the field on the x-axis of networks",
    "replicate": "number of the data set, from 0; curves on one truth share it",
    "status": "done or failed",
    "message": "why the cell failed; empty when done",
    "loss": "Voronoi loss of the estimate against the truth, or test loss of a network",
    "log_likelihood": "natural-log likelihood of the sample at the estimate",
    "certified": "whether the estimate is a certified local maximum",
    "on_bound": "whether a parameter of the estimate lies on a bound of the parameter space",
    "seconds": "time to sample, fit and score, in seconds",
    "params": "packed parameters of the estimate, JSON",
    "data_seed": "seed of the data, shared by curves on one truth and design, as text",
    "fit_seed": "seed of the starts, shared by curves with one family and the same start rules",
    "identity": "SHA-256 of all that the numbers depend on",
    "losses.cell_sizes": "fitted atoms in the Voronoi cell of each true atom, JSON",
    "losses.mass_errors": "part of the loss that comes from the masses, per true atom, JSON",
    "losses.block_errors.*": "part of the loss from this block of the atoms, per true atom, JSON",
    "losses.empty_cells": "true atoms that no fitted atom is nearest to",
    "losses.coverage": "distance of the true atoms to the nearest fitted ones",
    "losses.hellinger": "Hellinger distance of the fitted density to the true one",
    "losses.hellinger_error": "numerical error of the Hellinger distance",
    "losses.total_variation": "total variation distance of the fitted density to the true one",
    "losses.total_variation_error": "numerical error of the total variation distance",
    "losses.also.*": "a further loss of the same estimate",
    "losses.cells": "size and errors of the Voronoi cell of each true atom, JSON",
    "losses.test_accuracy": "share of the test sample with a positive margin, without noise",
    "losses.test_loss": "mean logistic loss of the test sample, without noise",
    "losses.train_accuracy": "share of the training sample with a positive margin, without noise",
    "losses.train_loss": "mean logistic loss of the training sample, without noise",
    "losses.entropy": "dispatch entropy of the test sample, natural logarithm",
    "losses.train_entropy": "dispatch entropy of the training sample, natural logarithm",
    "losses.experts_in_use": "experts that get at least one example of the test sample",
    "losses.margins.*": "smallest, 5% and median margin y F of the test sample",
    "losses.unmoved": "steps of experts whose gradient was zero or underflowed, over all experts",
    "losses.specialist_share": "share of the test sample routed to an expert of its cluster",
    "losses.clusters_covered": "clusters that some expert errs on least",
    "losses.theorem.*": "the four statements of Theorem 1 of expert-count, as error rates",
    "losses.curve.*": "metric of the test sample at the steps of losses.curve.step, JSON",
    "losses.*": "a further part of the loss or distance of the estimate",
    "certificate.status": "how the solver ended",
    "certificate.certified": "whether the estimate is a certified local maximum",
    "certificate.gradient": "norm of the free gradient per sample, in the predictors' metric",
    "certificate.gain": "log-likelihood that the best step of length one is predicted to gain",
    "certificate.inertia": "positive, zero, negative eigenvalues of minus the Hessian, JSON",
    "certificate.condition": "condition number of the Hessian; empty if it is singular",
    "certificate.active": "parameters on a bound, JSON; experts count from 0",
    "certificate.iterations": "iterations of the solver, winning start",
    "certificate.passes": "passes over the data, winning start",
    "certificate.seconds": "time of the fit, all starts, in seconds",
    "certificate.start": "which start won",
    "certificate.n_starts": "starts tried",
    "certificate.n_optima": "distinct certified optima",
    "certificate.p_higher": "estimated probability that a higher maximum exists",
    "certificate.above_near_truth": "log-likelihood above that of the best run near the truth",
    "certificate.above_truth": "log-likelihood of the estimate above that of the truth",
    "certificate.second_pass.gain": "log-likelihood that a second pass gained, 0 for none",
    "certificate.second_pass.first_loss": "loss of the estimate before the second pass",
    "certificate.second_pass.first_certified": "whether that one was certified, if only one is",
    "certificate.agreement": "share of the starts that reached the best log-likelihood",
    "certificate.collapsed": "atoms that fit a few samples only, JSON",
    "certificate.n_collapsed": "starts that ended with a collapsed atom",
    "certificate.kinks": "kinks of the log-likelihood that hold the fit",
    "certificate.reach": "how far, across kinks, the statement of the gain reaches",
    "certificate.*": "a further part of the certificate",
    "versions.*": "version of this package that made the numbers",
    "machine.host": "name of the machine",
    "machine.system": "operating system and architecture",
    "machine.processor": "processor that the code was compiled for",
    "machine.device": "CUDA device that the fits ran on; empty for the processor",
    "machine.device_memory": "how the batch of the cell was split to fit the device",
    "machine.processors": "number of processors of the machine",
}


def describe(column: str) -> str:
    """What a column of an exported table holds, in one line.

    Examples
    --------
    >>> describe("certificate.n_starts"), describe("versions.numpy")
    ('starts tried', 'version of this package that made the numbers')
    """
    if column in _DESCRIPTIONS:
        return _DESCRIPTIONS[column]
    for pattern, text in _DESCRIPTIONS.items():
        if fnmatchcase(column, pattern):
            return text
    raise KeyError(column)
