"""The public fit: validate once, start many times, keep the best, certify it."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.validate import (
    as_generator,
    check_kind,
    is_sequence,
    positive_int,
    short,
)
from moestat.base.warnings import warn_caller
from moestat.estimation.data import Data, check_options, read_data
from moestat.estimation.groups import check_groups
from moestat.estimation.inference.misfit import misfits
from moestat.estimation.jobs import BegunFit, FitJob, begin, end_fits
from moestat.estimation.priors import Prior, as_prior
from moestat.estimation.progress import reported
from moestat.estimation.results import MoEResults
from moestat.estimation.searching import search_of
from moestat.estimation.starts import StartRule
from moestat.model.compression import compress as compressed
from moestat.model.family import Family
from moestat.solvers import Solver
from moestat.solvers.driver import ONE_THREAD, Cores, succeeded, until
from moestat.solvers.problem import Target
from moestat.solvers.rules import GAIN_LIMIT

__all__ = ["fit", "fit_all", "fit_data", "fit_many"]


@door()
def fit_many(
    family: Family,
    data: Sequence[tuple[Any, Any]],
    *,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    sample_weights: Sequence[Any] | None = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    prior: Prior | str | None = None,
) -> list[MoEResults]:
    """Fit one family to many data sets in one batch.

    Parameters
    ----------
    family : Family
        The model, the same for all.
    data : sequence of (X, y)
        Inputs (n, d) and responses (n,) of each data set; n may differ.
    solver, starts, rng, threads, target, prior
        As in `fit`; each data set draws its starts from its own child of `rng`.
    sample_weights : sequence, optional
        One weight vector (n,) or None per data set.

    Returns
    -------
    list of MoEResults
        One per data set.  Its ``certificate.seconds`` is the batch's time per data set.

    Raises
    ------
    ValueError
        As `fit`, with the position of the data set.

    Examples
    --------
    >>> from moestat import family, fit_many, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> sets = [sample(F, [0, 0, 1, -2], n=300, rng=seed) for seed in range(3)]
    >>> [round(r.log_likelihood) for r in fit_many(F, sets, rng=0)]
    [-190, -196, -188]
    """
    check_kind("data", data, "__iter__", "a list of one or more pairs (X, y)")
    data = list(data)
    if not data or not all(is_sequence(pair) and len(pair) == 2 for pair in data):
        raise ValueError("data must hold at least one (X, y), and such pairs only")
    weights = [None] * len(data) if sample_weights is None else sample_weights
    check_kind("sample_weights", weights, "__iter__", "a list of one weight vector or None each")
    weights = list(weights)
    if len(weights) != len(data):
        raise ValueError(f"sample_weights has {len(weights)} entries for {len(data)} data sets")
    read: list[tuple[Family, Data]] = []
    for position, ((X, y), weight) in enumerate(zip(data, weights, strict=True)):
        with _naming(position, len(data)):
            read.append(read_data(family, X, y, weight, {}))
    return fit_all(read, solver, starts, rng, threads, target, prior)


@contextmanager
def _naming(position: int, count: int) -> Generator[None]:
    """Say of an error in which of several data sets it lies."""
    try:
        yield
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"data set {position}: {error}") from None


def fit_all(
    read: Sequence[tuple[Family, Data]],
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    prior: Prior | str | None = None,
    by_weight: bool = False,
) -> list[MoEResults]:
    """Fits to data that have been read, each with its family."""
    if target is not None:
        check_kind("target", target, "session", "a target such as moestat.solvers.problem.Cores()")
    if prior is not None and target is not None:
        raise ValueError("prior: fits with one run on the processor's cores; leave target out")
    where = target or Cores(None if threads is None else positive_int("threads", threads))
    began = time.perf_counter()
    started: list[BegunFit | Exception] = []
    children = as_generator(rng).spawn(len(read))
    # On rows of a few inputs BLAS's threads only wait for each other, at full speed.
    with ONE_THREAD:
        for position, ((own, data), child) in enumerate(zip(read, children, strict=True)):
            job = FitJob(
                *(own, data.X, data.y, solver, starts, data.weight, child, as_prior(prior, own)),
                groups=data.groups,
                data=data,
                by_weight=by_weight,
            )
            with _naming(position, len(read)):
                started.append(begin(job, where, scaled=True))
        return succeeded(end_fits(started, where, began))


@door()
def fit(
    family: Family | str | Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any,
    *,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    n_starts: int | None = None,
    time_limit: float | None = None,
    risk: float | None = None,
    sample_weight: Any = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    compress: str | None = None,
    prior: Prior | str | None = None,
    groups: Any = None,
    classes: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    missing: str = "raise",
    resolution: Any = None,
    random: Any = None,
    verbose: bool = False,
    **model: Any,
) -> MoEResults:
    """Maximum-likelihood fit of a mixture of experts, with a certificate.

    Parameters
    ----------
    family : Family, str, mapping or sequence
        The model, from `moestat.family`, or the name of a likelihood, such as "gaussian" or
        "multinomial", or a mapping with its options, such as ``{"name": "binomial", "trials": 8}``.
        With a name or a mapping, the data determine the numbers of inputs and classes.  A list,
        such as ``["gaussian", "poisson"]``, describes several responses that are independent within
        an expert.
    X : array_like or data frame of shape (n, d)
        Inputs; (n,) when d = 1.  A table may be a mapping, or a frame of pandas, polars, pyarrow or
        another library that narwhals supports; names of columns and the index are kept.  The
        coefficients of a constant column are fixed at 0, with a `ConstantColumnWarning`.
    y : array_like or series of shape (n,), (n, 1) or (n, 2)
        Responses: real numbers, or labels of classes, which may be integers, words or truth
        values.  Classes are in the order of declared categories, or else in ascending order of
        their labels; the last one is the reference.  If the model has K classes, integers in 1..K
        are their numbers.  A series must have the index of X.  Two columns are the bounds of
        censored responses, for "gaussian", "log-normal", "weibull", "exponential" and "poisson":
        equal if the response is known, infinite if there is no bound.  For "binomial" and
        "beta-binomial" two columns are numbers of successes and failures.  For a list of
        likelihoods y has one column for each response; a table names the responses, which are
        otherwise called "y1", "y2" and so on.
    solver : Solver, optional
        The solver.  The default is `moestat.solvers.Newton`; it is `moestat.solvers.QuasiNewton`
        for more than 70 parameters, and `moestat.solvers.Search` for a gate whose likelihood is
        discontinuous.  With such a gate, other solvers stay in the smooth region of the start, and
        their fits are not certified.
    starts : sequence of StartRule, optional
        By default `moestat.estimation.searching.Agreement`: a pool of starts and, if these do not
        agree, up to eight races of such pools, with moves of single experts and resamples of the
        rows, until races agree on the best optimum.
    n_starts : int, optional
        Number of starts in a pool; four for each expert by default.
    time_limit : float, optional
        Seconds after which the fit stops, with an `InterruptedWarning`.  One or two more passes
        compute the certificate, whose status is "time limit" unless a start has converged before.
    risk : float, optional
        Largest probability of a higher maximum that you accept, .15 by default.  The search stops
        when the estimated probability, ``certificate.p_higher``, is at most `risk`, and at the
        latest after eight searches or when their budget is used up.  If the probability is then
        still larger, the fit warns.  With .05 it searches longer; with 1 it stops after one search.
    sample_weight : array_like of shape (n,), optional
        Non-negative counts or frequency weights.
    rng : numpy.random.Generator, int or None
        Source of the random starts.
    threads : int, optional
        Threads over starts; all cores by default.  The result does not depend on it.
    target : Target, optional
        The device that runs passes over the data, such as `moestat.solvers.targets.CudaTarget`;
        the processor's cores by default.
    compress : {"auto", None}
        With "auto" the fit uses the data as `moestat.compress` makes them: equal rows as one, and
        classes over one input as Gauss nodes.  Twice the bound on the error of the log-likelihood
        is added to the gain of the certificate; if the sum is not below 1e-4, the fit uses the data
        as they are.  With None solvers may begin on compressed data, but converge on all rows.
    prior : Prior or "weak", optional
        A weakly informative prior density, `moestat.Prior`.  "weak" is the default prior,
        ``Prior()`` (without a prior on the gate if the gate is not linear).  The result is then not
        the maximum-likelihood estimate but the mode of the posterior density, which also exists
        when the likelihood has no finite maximum.
    groups : array_like of shape (n,), optional
        Label of each row's group, such as a subject: an expert is chosen once for all rows of a
        group, ``log L = sum_g log sum_k pi_k(x_g) prod_(i in g) f_k(y_i | x_i)``.  Inputs of the
        gate are the same for all rows of a group, and so are weights.
    classes : sequence or mapping, optional
        Labels of the classes in their order, the last one the reference; for several responses a
        table of these by response.
    missing : {"raise", "drop"}
        "raise" refuses data with missing values; "drop" leaves out the rows that have them.
        ``result.data.dropped`` is the number of these rows, and ``result.data.kept`` has the
        positions of the others.
    resolution : float, or sequence of float for several responses, optional
        Step h in which y was recorded, such as 1 for whole numbers.  The variance of an expert is
        then at least ``h^2 / 12``, the variance of rounding to this step.  By default the fit looks
        for the step and stores it in ``result.data.resolution``; 0 removes the rule, and `bounds`
        that you give replace it.
    random : str, list or mapping, optional
        Random effects of the groups: ``random="1"`` for an intercept of each group, for "gaussian",
        "poisson" and "binomial"; ``random="1 + time"`` for an intercept and a slope, for
        "gaussian".  Within expert i its rows are ``N(X b_i, Z D_i Z' + nu_i I)`` with any
        covariance matrix ``D_i``; one without correlations is ``random={"terms": "1 + time",
        "covariance": "diagonal"}``.  A list holds "1" and positions or names of inputs.
    verbose : bool
        Whether to show the progress on standard error.  The log is ``logging``'s "moestat".
    **model
        ``n_experts``, ``gate``, ``expert``, ``bounds``, ``gate_inputs``, ``expert_inputs``,
        ``offset`` and ``equal`` as in `moestat.family`, for a model by name, with names of inputs
        instead of positions if X has names; the default gate is "softmax".

    Returns
    -------
    MoEResults
        Parameters, standard errors, log-likelihood, certificate, ``summary()``.

    Raises
    ------
    ValueError
        For missing or infinite values, categorical columns, wrong shapes, an absent class, or
        fewer samples than free parameters.

    Notes
    -----
    Pham et al. (2026), eq. (2); for regression functions least squares, Yan et al. (2025), eq.
    (6), by `moestat.solvers.NewtonSquares`, or `moestat.solvers.GaussNewtonBFGS` for experts with
    kinks and for more than 70 parameters. The fit runs in standardised coordinates of the
    data, with a box about them that is a thousand times as wide as the papers' compact box; a
    variance is at least a millionth of that of the residuals of linear regression, and where y is
    recorded in steps h at least ``h^2 / 12``, or half of that of these residuals if less.
    Only `bounds` of the family that are the user's own bind as they are. Fits over the papers' box:
    ``bounds=F.box``.

    If the model is given by name, experts are in descending order of their mean weight over the
    rows, for every seed.  With a `Family`, with given starts, or with parameters on a bound they
    stay in the order in which they were found.  `MoEResults.relabel` changes the order.

    An interrupt (Ctrl-C) ends the search: the result is the best of the starts so far, after
    convergence, with an `InterruptedWarning`.  A second interrupt, or one before any start was
    found, raises `KeyboardInterrupt`.

    A fit raises a subclass of `moestat.base.warnings.OptimumWarning` if the estimate lies on a
    default bound, if starts disagree, or if the data are separated, so that the likelihood has no
    maximum.  It raises an `AliasedWarning` if inputs are linearly dependent, and a `MisfitWarning`
    (outliers, spikes, zeros, variance), a `DependentRowsWarning` or a `FewRowsWarning` if the data
    do not meet its assumptions.  ``result.notes`` keeps the messages, and ``result.explain()`` says
    what they mean and what to do.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> result = fit(F, X, y, rng=0)
    >>> result.certificate.certified
    True

    A model by name, of data with names:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": X[:, 0], "vote": np.where(y == 1, "yes", "no")})
    >>> named = fit("multinomial", frame[["age"]], frame["vote"], n_experts=1, rng=0)
    >>> named.predict(frame[["age"]])[:3].tolist(), named.params.index[1]
    (['no', 'yes', 'yes'], 'a[0,no,age]')
    """
    check_options(model, fit)
    given: Any = compress
    if given is not None and not (isinstance(given, str) and given == "auto"):
        raise ValueError(f'compress must be "auto" or None, got {short(compress)}')
    own, read = read_data(
        *(family, X, y, sample_weight, model),
        groups=groups,
        classes=classes,
        missing=missing,
        resolution=resolution,
        random=random,
    )
    with reported("fit", verbose, answers=True):
        result = fit_data(
            *(own, read, solver, starts, n_starts),
            time_limit=time_limit,
            risk=risk,
            rng=rng,
            threads=threads,
            target=target,
            compress=compress,
            prior=prior,
            by_weight=starts is None and not isinstance(family, Family),
        )
    found = misfits(result)
    for kind, message in found:
        warn_caller(message, kind)
    if not found:
        return result
    kinds = (*result.kinds, *(kind.__name__ for kind, _ in found))
    return replace(result, notes=(*result.notes, *(m for _, m in found)), kinds=kinds)


def fit_data(
    own: Family,
    read: Data,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    n_starts: int | None = None,
    *,
    time_limit: float | None = None,
    risk: float | None = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    compress: str | None = None,
    prior: Prior | str | None = None,
    by_weight: bool = False,
) -> MoEResults:
    """The fit to data that have been read; arguments as in `fit` and `FitJob`."""
    if starts is not None and any(each is not None for each in (n_starts, time_limit, risk)):
        raise ValueError(
            "n_starts, time_limit and risk are for the default starts; got starts, too"
        )
    limit = np.inf if time_limit is None else time_limit
    if starts is None:
        starts = [search_of(n_starts, time_limit=limit, risk=risk)]
    deadline = time.monotonic() + limit
    with until(deadline):
        where = threads, target, prior, by_weight
        return _fit_until(own, read, solver, starts, rng, compress, where)


def _fit_until(
    own: Family,
    read: Data,
    solver: Solver | None,
    starts: Sequence[StartRule],
    rng: Any,
    compress: str | None,
    where: tuple[int | None, Target | None, Prior | str | None, bool],
) -> MoEResults:
    """The fit from start rules, on compressed data if these are asked for and as good."""
    if compress is not None and (own.likelihood.parts or np.ndim(read.y) == 2):
        raise ValueError("compress: is for one response in one column; leave it out")
    if read.groups is not None:
        if compress is not None:
            raise ValueError("compress: rows of groups cannot stand for each other; leave it out")
        check_groups(own, read)
    if compress == "auto":
        # A generator would have moved on if the data are fitted as they are after all.
        rng = as_generator(rng)
        result = _fit_compressed(own, read, solver, starts, rng.spawn(1)[0], *where)
        if result is not None:
            assert result.data is not None
            whole = replace(read, resolution=result.data.resolution)
            return replace(result, data=whole, weight=read.weight)
    (result,) = fit_all([(own, read)], solver, starts, rng, *where)
    return result


def _fit_compressed(family: Family, data: Data, *arguments: Any) -> MoEResults | None:
    """The fit to compressed data; None where it is not certain to be as good."""
    short = compressed(data.X, data.y, data.weight)
    own, read = read_data(family, short.X, short.y, short.weight, {})
    read = own, replace(read, resolution=data.resolution)
    (result,) = fit_all([read], *arguments)
    if short.lossless:
        return result
    gain = result.certificate.gain + 2.0 * short.error_bound(family, result.theta)
    if not gain <= GAIN_LIMIT:
        return None
    certificate = replace(result.certificate, gain=gain)
    return replace(result, solution=replace(result.solution, certificate=certificate))
