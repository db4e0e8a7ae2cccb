"""The public fit: validate once, start many times, keep the best, certify it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import Seed, TableLike
from moestat.base.validate import (
    check_keywords,
    check_kind,
    is_mapping,
    is_sequence,
    short,
)
from moestat.estimation.data.data import Data
from moestat.estimation.data.exposure import is_values, question_offset, with_exposure, with_offset
from moestat.estimation.data.priors import Prior
from moestat.estimation.data.read import check_options, read_data
from moestat.estimation.fit.batches import fit_data, fit_data_sets, naming
from moestat.estimation.fit.doubts import Doubt
from moestat.estimation.fit.fitted import Fitted, warn_and_note
from moestat.estimation.inference.misfit import misfits
from moestat.estimation.inference.simpler import with_order
from moestat.estimation.progress import reported
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.responses import Columns
from moestat.estimation.reading.table import Column
from moestat.estimation.results.results import MoEResults
from moestat.estimation.starts import StartRule
from moestat.model.family import Family
from moestat.model.members import Expert, Gate
from moestat.solvers import Solver
from moestat.solvers.problem import Target

__all__ = ["closed", "fit", "fit_many"]


@door()
def fit(
    family: Family | str | Mapping[str, object] | Sequence[object],
    X: ArrayLike | TableLike | Inputs,
    y: ArrayLike | TableLike | Column | Columns,
    *,
    n_experts: int | None = None,
    gate: str | Mapping[str, object] | Gate | None = None,
    expert: str | Mapping[str, object] | Expert | None = None,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    n_starts: int | None = None,
    time_limit: float | None = None,
    risk: float | None = None,
    maximum: str = "regular",
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    rng: Seed = None,
    threads: int | None = None,
    target: Target | None = None,
    compress: str | None = None,
    prior: Prior | str | None = None,
    groups: ArrayLike | Column | None = None,
    classes: Sequence[object] | Mapping[str, Sequence[object]] | None = None,
    missing: str = "raise",
    resolution: float | Sequence[float] | None = None,
    random: str | Sequence[str | int] | Mapping[str, object] | None = None,
    cov_type: str = "observed",
    cov_kwds: Mapping[str, Any] | None = None,
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
    n_experts, gate, expert : int, str or mapping, optional
        Number of experts, gate and regression functions of a model by name, as in `moestat.family`;
        2, "softmax" and "linear" by default.
    solver : Solver, optional
        The solver.  The default is `moestat.solvers.Newton`; it is `moestat.solvers.QuasiNewton`
        for more than 70 parameters, and `moestat.solvers.PieceSearch` for a gate whose likelihood
        is discontinuous.  With such a gate, other solvers stay in the smooth region of the start,
        and their fits are not certified.
    starts : sequence of StartRule, optional
        By default `moestat.estimation.search.modes.ModeSearch`: batches of starts of four kinds and
        neighbours of the best mode, until a higher mode is improbable.
    n_starts : int, optional
        Number of starts in a batch; four by default, twelve in the first.
    time_limit : float, optional
        Seconds after which the fit stops, with an `InterruptedWarning`.  One or two more passes
        compute the certificate, whose status is "time limit" unless a start that has converged is
        the highest.
    risk : float, optional
        Probability of a higher mode at which the search stops, .04 by default.  The search
        continues until the estimated probability, ``certificate.p_higher``, is at most `risk`, and
        at the latest until four batches for each expert are run.  The fit warns if the probability
        is then larger than .10, or than a larger `risk`.  With 1 it stops after one batch.
    maximum : {"regular", "highest"}
        "regular" is the maximum of the likelihood to which the highest mode of the posterior
        density under the weak prior leads.  "highest" is the highest maximum that a longer search
        finds (`moestat.estimation.search.agreement.Agreement`, with a `risk` of .05): where the
        likelihood is unbounded or increases to infinity, often one where a gate diverges or an
        expert describes a few rows.  Sums of squares and likelihoods with jumps do not have the
        weak prior, and are fitted as with "highest".  See Notes.
    sample_weight : array_like of shape (n,), optional
        Non-negative counts or frequency weights.
    exposure : array_like of shape (n,), optional
        Positive time, or number of persons, in which the events of each row were counted, for
        likelihoods with a log link.  Its logarithm is an offset: it becomes the last input,
        "log(exposure)" if inputs have names, which new rows of predictions need as well.
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
        when the likelihood has no finite maximum.  ``log_posterior`` compares modes.
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
        Random effects of the groups, for "gaussian", "poisson" and "binomial": ``random="1"`` for
        an intercept of each group, ``random="1 + time"`` for an intercept and a slope.  Within
        expert i normal rows are ``N(X b_i, Z D_i Z' + nu_i I)`` with any covariance matrix ``D_i``;
        one without correlations is ``random={"terms": "1 + time", "covariance": "diagonal"}``.  A
        list holds "1" and positions or names of inputs.  With ``random={"terms": "1", "within":
        "class"}`` each part of a group, which the input "class" names, has an intercept, too.
    cov_type, cov_kwds : str and mapping, optional
        Type of the covariance matrix, and further arguments of
        `MoEResults.get_robustcov_results`, such as ``cov_kwds={"groups": subjects}``.
    verbose : bool
        Whether to show the progress on standard error.  The log is ``logging``'s "moestat".
    **model
        ``bounds``, ``gate_inputs``, ``expert_inputs``, ``offset``, ``equal`` and ``fixed`` as in
        `moestat.family`, for a model by name, with names of inputs instead of positions if X has
        names.

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

    A likelihood of a mixture has many local maxima, and its supremum is often at infinity or at an
    expert on a few rows, a spurious maximum (McLachlan and Peel 2000, Sec. 3.10).  The climb to the
    default estimate therefore begins at the highest posterior mode.  Nothing is forbidden: where
    this mode leads to infinity, as at a true change point, the fit returns that end with a
    `SeparationWarning`.  ``result.ends`` lists the ends that the search saw, and
    ``result.at_end(j)`` returns any of them.

    If the model is given by name, experts are in descending order of their mean weight over the
    rows, for every seed.  With a `Family`, with given starts, or with parameters of the gate on a
    bound they stay in the order in which they were found.  `MoEResults.relabel` changes the order.

    An interrupt (Ctrl-C) ends the search: the result is the best of the starts so far, after
    convergence, with an `InterruptedWarning`.  A second interrupt, or one before any start was
    found, raises `KeyboardInterrupt`.

    A fit raises a subclass of `moestat.base.warnings.OptimumWarning` if the estimate lies on a
    default bound, if starts disagree, or if the data are separated, so that the likelihood has no
    maximum, a `LimitWarning` if a distribution has reached a simpler one, and a `UnitsWarning` if
    the family does not follow the units of the data.  It raises an `AliasedWarning` if inputs are
    linearly dependent, an `IdentificationWarning` if the data do not determine other coefficients,
    and a `MisfitWarning` (outliers, spikes, zeros, variance), a `DependentRowsWarning` or a
    `FewRowsWarning` if the data do not meet its assumptions.  ``result.notes`` keeps the messages,
    and ``result.explain()`` says what they mean and what to do.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> result = fit(F, X, y, rng=0)
    >>> result.certificate.certified
    True

    A model by name, of data with names:

    >>> import numpy as np, pandas as pd
    >>> frame = pd.DataFrame({"age": X[:, 0], "vote": np.where(y == 1, "yes", "no")})
    >>> named = fit("multinomial", frame[["age"]], frame["vote"], n_experts=1, rng=0)
    >>> named.predict(frame[["age"]])[:3].tolist(), named.params.index[1]
    (['no', 'yes', 'yes'], 'a[1,no,age]')
    """
    check_options(model, fit)
    axes = {"n_experts": n_experts, "gate": gate, "expert": expert}
    model = {**{name: each for name, each in axes.items() if each is not None}, **model}
    inputs: Any = X
    if exposure is not None:
        inputs, place = with_exposure(X, exposure, family, model.get("offset"), missing)
        model = {**model, "offset": place}
    elif is_values(model.get("offset")):
        inputs, place = with_offset(X, model["offset"], family, missing)
        model = {**model, "offset": place}
    with telling_clusters(cov_type, cov_kwds):
        fitted_family, data = read_data(
            family,
            inputs,
            y,
            sample_weight,
            model,
            groups=groups,
            classes=classes,
            missing=missing,
            resolution=resolution,
            random=random,
        )
    with reported("fit", verbose, answers=True):
        fitted = fit_data(
            fitted_family,
            data,
            solver=solver,
            starts=starts,
            n_starts=n_starts,
            time_limit=time_limit,
            risk=risk,
            maximum=maximum,
            rng=rng,
            threads=threads,
            target=target,
            compress=compress,
            prior=prior,
            by_weight=starts is None and not isinstance(family, Family),
        )
    result = closed(fitted, question_offset(fitted.family, data))
    return result if cov_type == "observed" else with_covariance(result, cov_type, cov_kwds)


def closed(fitted: Fitted, doubts: Sequence[Doubt] = ()) -> MoEResults:
    """The results of a fit to rows in memory, with its warnings and one expert fewer beside it."""
    result = MoEResults.of(fitted)
    return with_order(warn_and_note(result, [*doubts, *misfits(result)]))


@contextmanager
def telling_clusters(cov_type: str, cov_kwds: Mapping[str, Any] | None) -> Generator[None]:
    """Groups that cannot be those of experts may be meant as clusters of the standard errors."""
    try:
        yield
    except ValueError as error:
        if cov_type != "cluster" or cov_kwds is not None or not str(error).startswith("groups: "):
            raise
        raise ValueError(
            f"{error}. If they are clusters of the standard errors, and rows of a cluster may"
            " belong to different experts, give cov_kwds={'groups': ...} in place of groups="
        ) from None


def with_covariance(
    result: MoEResults, cov_type: str, cov_kwds: Mapping[str, Any] | None
) -> MoEResults:
    """The result with standard errors of a type, `MoEResults.get_robustcov_results`."""
    if cov_kwds is not None and not is_mapping(cov_kwds):
        raise ValueError(
            f"cov_kwds must be a mapping such as {{'groups': ...}}, got {short(cov_kwds)}"
        )
    given = dict(cov_kwds or {})
    check_keywords("cov_kwds", given, ("groups", "strata", "n_resamples", "rng"))
    return result.get_robustcov_results(cov_type, **given)


@door()
def fit_many(
    family: Family,
    data: Sequence[tuple[ArrayLike | TableLike, ArrayLike | TableLike]],
    *,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    sample_weights: Sequence[ArrayLike | None] | None = None,
    rng: Seed = None,
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
    problems: list[tuple[Family, Data]] = []
    for position, ((X, y), weight) in enumerate(zip(data, weights, strict=True)):
        with naming(position, len(data)):
            problems.append(read_data(family, X, y, weight, {}))
    how = {"solver": solver, "starts": starts, "prior": prior}
    fits = fit_data_sets(problems, rng, target=target, threads=threads, **how)
    return [MoEResults.of(one) for one in fits]
