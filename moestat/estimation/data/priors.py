"""Prior densities that keep fits to small samples away from the boundary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moestat.base.door import doors
from moestat.base.types import FloatArray
from moestat.base.validate import check_kind, real_in
from moestat.model.constraints import averaged
from moestat.model.family import Family
from moestat.model.units import DataUnits
from moestat.solvers.penalised import PenalisedProblem, Penalty
from moestat.solvers.problem import Problem, Rows

__all__ = ["Lasso", "Prior", "as_prior", "data_units"]

_ENDS = (1e-8, 1e8)
"""Within these a prior is neither none nor all that is known: their squares are the rounding of
float64, 1e-16, and its inverse."""

_INTERCEPTS = 10.0 / 2.5
"""Standard deviations of intercepts in those of slopes: the scales of Gelman et al. (2008)."""


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
    differences from the mean over experts, or classes, so that it does not matter which one is the
    reference.  Variances of normal experts have the inverse-gamma distribution of mclust.  The
    dependences of several normal responses are slopes on the earlier ones, in standard deviations.

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
        k = family.n_experts
        laws = family.likelihood.laws
        response = np.ravel(units.unit)[family.response_of]
        linked = np.array([law.link is not None for law in laws])[family.response_of]
        translated = np.zeros(family.n_params, dtype=bool)
        for name in family.gate.translations:
            translated[family.blocks[name]] = True
        quadratic, middle = np.zeros((family.n_params, family.n_params)), np.zeros(family.n_params)
        levels = _levels(family, units)[family.response_of]
        n_gate_channels = len(family.gate.channels(family.n_features))
        dependences = {name for names in family.likelihood.pairs.values() for name in names}
        # Components of a linear expert are classes; those of others are hidden units, and those of
        # a gate's channel are inputs.
        has_classes = family.expert.block is None
        class_response = [
            family.response_of[c]
            if has_classes and c >= n_gate_channels and channel.component is not None
            else -1
            for c, channel in enumerate(family.channels)
        ]
        for c, channel in enumerate(family.channels):
            scale = self.gate if c < n_gate_channels else self.experts
            if channel.log or channel.shared or scale is None:
                continue
            unit = response[c] if channel.response and not linked[c] else 1.0
            if channel.intercept in dependences:
                unit = 1.0 / _INTERCEPTS  # a slope on another response, in its standard deviations
            form = _form(family.width[c], units, scale * unit)
            if c >= n_gate_channels and family.expert.units.is_level(channel.intercept):
                middle[family.index[:, c]] = levels[c]
            own_terms = np.arange(int(family.width[c]))
            contrasts = bool(translated[family.index[:, c, None] + own_terms].any())
            classes = (
                []
                if class_response[c] < 0
                else [other for other, r in enumerate(class_response) if r == class_response[c]]
            )
            for other in classes or [c]:
                share = float(c == other) - (1.0 / (len(classes) + 1) if classes else 0.0)
                between = share * (np.eye(k) - (1.0 / k if contrasts else 0.0))
                rows, columns = (family.index[:, at, None] + own_terms for at in (c, other))
                product = between[:, None, :, None] * form[:, None]
                quadratic[rows[..., None, None], columns] += product
        variances = [
            c
            for c, channel in enumerate(family.channels)
            if channel.log and channel.response and family.plain_name(c) == "nu"
        ]
        logs, first = np.unique(family.index[:, variances], return_index=True)
        if self.variance is None or not variances:
            return Penalty(quadratic, np.arange(0), centre=middle)
        unit = np.tile(response[variances], k)[first]
        rates = np.zeros(family.n_params)
        rates[logs] = 0.5 * (unit / k) ** 2
        # Equal variances of responses in other units: the sum is the same, and its gradient keeps
        # them equal.
        rate = averaged(rates, family.ties)[logs]
        return Penalty(quadratic, logs, 0.5 * self.variance + 1.0, rate, middle)


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


def _levels(family: Family, units: DataUnits) -> FloatArray:
    """The predictor (R,) at the mean of each response that has a unit; 0 of others."""
    levels: list[float] = []
    for law, level in zip(family.likelihood.laws, np.ravel(units.level), strict=True):
        has_unit = law.support is None and not law.counts and law.ends[1] == np.inf
        linked = law.link if has_unit else None
        levels.append(float(level) * has_unit if linked is None else float(linked(level)))
    return np.array(levels)


def _form(width: int, units: DataUnits, deviation: float) -> FloatArray:
    """The form (width, width) of a predictor: its value at the centre, and its moves."""
    moves = np.eye(width)
    if width > 1:
        moves[0, 1:] = units.centre
        moves[1:, 1:] = np.diag(units.scale)
    moves[0] /= _INTERCEPTS
    return moves.T @ moves / deviation**2


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
        return prior.penalty(problem.family, data_units(problem.data))

    return problem.data.remember("weak penalty", problem.family, make)


def with_prior(problem: Problem, prior: Prior | None) -> Problem:
    """The problem with the prior density added to its log-likelihood."""
    if prior is None:
        return problem
    return penalised(problem, prior.penalty(problem.family, data_units(problem.data)))


def penalised(problem: Problem, penalty: Penalty) -> PenalisedProblem:
    """The problem with a penalty added to minus its log-likelihood."""
    return PenalisedProblem(
        problem.family, problem.data, resolved=problem.resolved, penalty=penalty
    )
