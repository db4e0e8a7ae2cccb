"""Prior densities that keep fits to small samples away from the boundary."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from moestat.base.door import doors
from moestat.base.validate import check_kind, real_in
from moestat.model.constraints import along, averaged
from moestat.model.family import Family
from moestat.model.predictors import predictors, variances
from moestat.model.units import DataUnits
from moestat.solvers.penalised import PenalisedProblem, Penalty
from moestat.solvers.problem import Problem, Rows

__all__ = ["Lasso", "Prior", "as_prior", "data_units", "prior_units"]

_ENDS = (1e-8, 1e8)
"""Within these a prior is neither none nor all that is known: their squares are the rounding of
float64, 1e-16, and its inverse."""


def prior_units(data: Rows, family: Family) -> DataUnits:
    """The `data_units`, with mean squares of the inputs where an expert has a known intercept."""
    units, d = data_units(data), family.n_features
    first = family.index[:, len(family.gate.channels(d)) :]
    if np.all(family.lower[first] < family.upper[first]):
        return units
    squares = data.covariance[:d, :d] + units.centre[:, None] * units.centre
    return replace(units, squares=squares)


def data_units(data: Rows) -> DataUnits:
    """Weighted mean and standard deviation of each input, and of a continuous response."""
    d = len(data.X)
    # 0: an input whose coefficients are held at 0, or counts that are all alike
    scale = np.where(data.deviation == 0.0, 1.0, data.deviation)
    response_values = [values[d:] for values in (data.mean, scale) if values.size > d]
    response = [values if data.y.dtype.names else float(values[0]) for values in response_values]
    return DataUnits(data.mean[:d], scale[:d], *response)


@doors
@dataclass(frozen=True)
class Prior:
    """A weakly informative prior density for `moestat.fit`, whose result is the posterior mode.

    Slopes have normal distributions with mean 0.  Inputs are divided by their standard deviations,
    and so is a continuous response, from which its mean is subtracted.  On this scale, slopes of
    the gate have the standard deviation `gate`, and slopes of the experts the standard deviation
    `experts`.  Intercepts, at the mean of the inputs, have four times these standard deviations.
    The gate has a reference expert, and classes have a reference class; the prior is on the
    differences from the mean over experts, classes, or the branches of a node, so that it does not
    matter which one is the reference.  Variances of normal experts have the inverse-gamma
    distribution of mclust.  The dependences of several normal responses are slopes on the earlier
    ones, in standard deviations.

    The prior is of predictors as functions of the data, however they are written.  Coefficients
    of experts that are equal are one parameter and count once; what an expert does not have counts
    for nothing.  In a formula without an intercept the levels of a factor have the mean of the
    response.  A gate with a temperature has the prior of its scores at a temperature of 1, where
    temperature and scores are not both determined.

    Parameters
    ----------
    gate : float or None
        Standard deviation of the gate's slopes; with None they have no prior.
    experts : float or None
        Standard deviation of the experts' slopes; with None they have no prior.
    variance : float or None
        Degrees of freedom of the inverse-gamma distribution of variances; its scale is the variance
        of the response divided by the squared number of experts.  With None there is no prior.

    Raises
    ------
    ValueError
        If a number is not between 1e-8 and 1e8.

    Notes
    -----
    Minus the log density, up to a constant, is ``sum(slope^2) / (2 s^2) + sum(intercept^2) / (32
    s^2)``, and for each variance v ``(d / 2 + 1) log v + c / (2 v)`` with c = var(y) / k^2: the
    conjugate prior of Fraley and Raftery (2007), Sec. 3, for one response, without that of the
    means.  Centres and scales are those of the data of the fit; resamples keep them.  The scales
    2.5 and 10 are those of Gelman et al. (2008), whose distributions are Cauchy; normal
    ones have a concave log density.  Distributions are for gates that are linear in the inputs; a
    block with a user's bounds keeps them.

    Examples
    --------
    Classes that an input separates have no maximum of the likelihood, but a posterior mode:

    >>> from moestat import fit
    >>> x, y = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 1, 2, 2, 2]
    >>> result = fit("multinomial", x, y, n_experts=1, prior=Prior(), rng=0)
    >>> result.certificate.certified, float(abs(result.theta).max().round(1))
    (True, 4.9)

    ``prior="weak"`` is the same:

    >>> fit("multinomial", x, y, n_experts=1, prior="weak", rng=0).prior
    Prior(gate=2.5, experts=2.5, variance=3.0)
    """

    gate: float | None = 2.5
    experts: float | None = 2.5
    variance: float | None = 3.0

    def __post_init__(self) -> None:
        for name in ("gate", "experts", "variance"):
            value = getattr(self, name)
            if value is not None:
                real_in(f"prior: {name}", value, *_ENDS)

    def penalty(self, family: Family, units: DataUnits) -> Penalty:
        """Minus the log density for a family, where the data have these centres and scales.

        Raises
        ------
        ValueError
            If the family has no likelihood, jumps, or a gate that is not linear in the inputs.
        """
        _check(family, self)
        quadratic, middle = np.zeros((family.n_params, family.n_params)), np.zeros(family.n_params)
        for group in predictors(family, units, self.gate, self.experts):
            group.add_to(quadratic)
            for places, centres in zip(group.places, group.centres, strict=True):
                middle[places] = centres
        k, logs, first = family.n_experts, *variances(family)
        if self.variance is None or not logs.size:
            return Penalty(along(quadratic, family.ties), np.arange(0), centre=middle)
        unit = np.ravel(units.unit)[family.response_of]
        once, rates = np.ones(family.n_params), np.zeros(family.n_params)
        rates[logs] = 0.5 * (unit[first] / k) ** 2
        for tie in family.equal_sets:
            once[tie] = 1.0 / tie.size
        # Equal variances of responses in other units: their rate is the mean.
        rate = (once * averaged(rates, family.equal_sets))[logs]
        shape = (0.5 * self.variance + 1.0) * once[logs]
        return Penalty(along(quadratic, family.ties), logs, shape, rate, middle)


def as_prior(given: Prior | str | None, family: Family) -> Prior | None:
    """The prior density of a fit, which may be given by the name "weak"; None without a prior.

    The weak prior is the default `Prior`, without a prior on the gate if the gate is not linear in
    the inputs.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "weak":
        return Prior(gate=None) if _has_bent_gate(family) else Prior()
    check_kind("prior", given, "penalty", 'a moestat.Prior or "weak"')
    assert not isinstance(given, str)
    return given


@dataclass(frozen=True, repr=False)
class Lasso:
    """The penalty of a sparse fit, in the place of a `moestat.Prior`."""

    penalty_per_row: float  # the factor of all norms
    l1_ratio: float  # share of the norms; squares have the rest
    together: str  # which coefficients are 0 together
    zeros: tuple[int, ...] = ()  # places of the coefficients that are 0

    def __repr__(self) -> str:
        words = f"{self.penalty_per_row:.4g}, l1_ratio={self.l1_ratio:g}, {self.together!r}"
        return f"Lasso({words}, zeros={len(self.zeros)})"

    def penalty(self, family: Family, units: DataUnits) -> Penalty:
        """Refuse: the penalty has corners, and only `moestat.lasso_path` fits with it."""
        raise ValueError(
            "prior: the penalty of a lasso fit cannot be the prior of another fit; call"
            " lasso_path on the other data, or fit the inputs that it selected without a penalty"
        )


def _has_bent_gate(family: Family) -> bool:
    """Whether distributions of a prior are not for the gate, which is not linear in the inputs."""
    return any(c.axis is not None or c.products is not None for c in family.channels)


def has_prior(family: Family) -> bool:
    """Whether prior densities are defined for a family: a likelihood without jumps."""
    return not (family.is_regression or family.has_jumps)


def _check(family: Family, prior: Prior) -> None:
    """Refuse families for which these prior distributions are not defined."""
    if not has_prior(family):
        raise ValueError("prior: needs a likelihood without jumps; leave it out")
    if _has_bent_gate(family) and prior.gate is not None:
        raise ValueError(
            f"prior: gate {family.gate.name!r} is not linear in the inputs and cannot have a"
            " prior; use Prior(gate=None)"
        )


def weak_penalty(problem: Problem) -> Penalty:
    """Minus the log density of the weak prior, computed once for the data of a problem."""

    def make() -> Penalty:
        prior = as_prior("weak", problem.family)
        assert prior is not None
        return prior.penalty(problem.family, prior_units(problem.data, problem.family))

    return problem.data.remember("weak penalty", problem.family, make)


def with_prior(problem: Problem, prior: Prior | None) -> Problem:
    """The problem with the prior density added to its log-likelihood."""
    if prior is None:
        return problem
    return penalised(
        problem, prior.penalty(problem.family, prior_units(problem.data, problem.family))
    )


def penalised(problem: Problem, penalty: Penalty) -> PenalisedProblem:
    """The problem with a penalty added to minus its log-likelihood."""
    return PenalisedProblem(
        problem.family, problem.data, resolved=problem.resolved, penalty=penalty
    )
