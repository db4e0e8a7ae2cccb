"""Random effects of groups: predictions, variance components, and means of known groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import Encoded, FloatArray, IntArray, Labels
from moestat.estimation.data.groups import encoded_rows, grouping_of
from moestat.estimation.fit.components import factor_index, names_of_effects, random_design
from moestat.estimation.fit.delta import COMPLEX_STEP, normal_reach
from moestat.estimation.tables import significant
from moestat.model.family import Family
from moestat.model.random_effects import factors
from moestat.solvers.groups import group_sums

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.data.data import Data
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "component_cells",
    "effects_of_groups",
    "effects_term",
    "effect_names",
    "is_factor",
    "laws_of_groups",
    "means_of_groups",
    "posterior_effects",
    "variance_components",
]

_NO_VARIANCE = 1e-5
"""Standard deviation of an effect, relative to that of the response, that counts as 0."""
_CURVATURES = "observed", "expected"  # types of covariances without products of scores

_NODES, _DOUBLINGS = 64, 14
"""First number of nodes of the conditional distribution of an effect, and most doublings of it."""

_AGREEMENT = 1e-6
"""Change of a mean by twice as many nodes after which there are no more: the error is about its
square."""


def posterior_effects(
    family: Family, theta: FloatArray, data: Data
) -> tuple[FloatArray, FloatArray]:
    """Means (k, G, q) and covariances (k, G, q, q) of the effects given the rows and the expert.

    ``u = L M^-1 L' Z'r`` and ``C = nu L M^-1 L'`` with ``M = nu I + L' Z'Z L``: the best linear
    unbiased predictions at the estimates (Laird and Ware 1982, Sec. 3), as if these were known.
    Of counts and binary responses they are the moments of the conditional distribution.
    """
    if family.likelihood.effects.base is not None:
        moments = group_sums(family, theta, encoded_rows(family, data), 0).moments
        scale = theta[family.index[:, -1], None, None]
        return scale * moments[:, :, :1], (scale**2 * moments[:, :, 1:2])[..., None]
    grouping = grouping_of(data)
    X, y = data.X[grouping.order], data.y[grouping.order]
    Z, L = (
        random_design(family, X),
        factors(family.likelihood.effects, theta, factor_index(family)),
    )
    eta = family.predictors(theta, np.ascontiguousarray(X.T))
    nu = np.exp(eta[:, 1, 0])
    squares = np.add.reduceat(Z[:, :, None] * Z[:, None, :], grouping.begin, axis=0)
    products = np.add.reduceat((y - eta[:, 0])[:, :, None] * Z, grouping.begin, axis=1)
    Lt = np.swapaxes(L, 1, 2)[:, None]
    M = Lt @ squares[None] @ L[:, None] + nu[:, None, None, None] * np.eye(Z.shape[1])
    half = np.linalg.solve(M, np.broadcast_to(Lt, M.shape))
    full = L[:, None] @ half
    return np.einsum("kgab,kgb->kga", full, products), nu[:, None, None, None] * full


def _given(
    family: Family, theta: FloatArray, X: FloatArray, v: FloatArray, y: Encoded | None
) -> Any:
    """The distributions (k, n) of rows X (d, n) given standardised effects v (k, n).

    Encoded responses y, if given, hold numbers of trials, or the like, of the rows.
    """
    base = family.likelihood.effects.base
    base = base if y is None or base.given is None else base.given(y)
    eta = family.predictors(theta, X)
    eta[:, 0] += eta[:, -1] * v
    return base.law(eta[:, :-1])


def _means_given_groups(
    family: Family, theta: FloatArray, data: Data, X: FloatArray, place: IntArray
) -> FloatArray:
    """Means (k, n) within experts of new rows X (d, n) of the groups `place` (n,) of the data.

    Sums over equidistant nodes, twice as many until the means stay, of the distribution of a row
    given the effect, weighted by the density of the effect given the rows of its group.
    """
    rows = encoded_rows(family, data)
    begin = rows.begin
    assert begin is not None
    counts, scale = np.real(rows.y), theta[family.index[:, -1], None]
    moments = group_sums(family, theta, rows, 0).moments
    low, high = moments[:, :, 2], moments[:, :, 3]
    law = family.likelihood.law
    assert law is not None
    if not np.all(np.isfinite(law(family.predictors(theta, X)).support()[1])):
        # Means that grow as exp(lambda v) move the weights by lambda at most.
        low, high = low + np.minimum(scale, 0.0), high + np.maximum(scale, 0.0)

    def height(v: FloatArray) -> FloatArray:
        log_probability = _given(family, theta, rows.X, v[:, rows.owner], rows.y).logpmf(counts)
        return np.add.reduceat(log_probability, begin, axis=1) - 0.5 * v * v

    top = height(moments[:, :, 0])

    def sums(shares: FloatArray) -> FloatArray:
        """Sums of the density, and of the density times the mean, (2, k, n)."""
        total = np.zeros((2, len(low), place.size))
        for share in shares:
            v = low + share * (high - low)
            density = np.exp(height(v) - top)[:, place]
            mean = _given(family, theta, X, v[:, place], None).mean()
            total += density, np.where(density > 0.0, density * mean, 0.0)
        return total

    total, count = sums(np.arange(_NODES + 1) / _NODES), _NODES
    mean = total[1] / total[0]
    for _ in range(_DOUBLINGS):
        total, before, count = total + sums((np.arange(count) + 0.5) / count), mean, 2 * count
        mean = total[1] / total[0]
        if not np.any(np.abs(mean - before) > _AGREEMENT * np.maximum(np.abs(mean), 1.0)):
            break
    return mean


def _places(data: Data, labels: Labels) -> tuple[IntArray, np.ndarray]:
    """The number of the group of each label (n,), and whether the data have that group."""
    grouping = grouping_of(data)
    place = np.minimum(np.searchsorted(grouping.names, labels), grouping.names.size - 1)
    return place, grouping.names[place] == labels


def _shifted(
    eta: FloatArray, u: FloatArray, Z: FloatArray, place: IntArray, known: np.ndarray
) -> FloatArray:
    """Means (k, n) of normal rows within experts, with the effects u (k, G, q) of known groups."""
    return eta[:, 0] + np.sum(u[:, place] * known[:, None] * Z, axis=2)


def means_of_groups(
    family: Family,
    theta: FloatArray,
    data: Data,
    X: FloatArray,
    labels: Labels,
    shares: FloatArray,
) -> FloatArray:
    """Means (n,) of new rows X (n, d) of labelled groups, with the effects of known groups.

    `shares` (k, n) are the probabilities of the experts.
    """
    place, known = _places(data, labels)
    if family.likelihood.effects.base is not None:
        design = np.ascontiguousarray(X.T)
        law = family.likelihood.law
        assert law is not None
        mean = law(family.predictors(theta, design)).mean()
        if known.any():
            of_known = np.ascontiguousarray(design[:, known])
            mean[:, known] = _means_given_groups(family, theta, data, of_known, place[known])
        return np.sum(shares * mean, axis=0)
    u = posterior_effects(family, theta, data)[0]
    eta = family.predictors(theta, np.ascontiguousarray(X.T))
    return np.sum(shares * _shifted(eta, u, random_design(family, X), place, known), axis=0)


def laws_of_groups(
    family: Family, theta: FloatArray, data: Data, X: FloatArray, labels: Labels
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means (k, n) of normal rows X (n, d) of labelled groups within experts, and two variances.

    These are that of the effects given the rows of a known group (k, n), or that of any group, and
    that of a row (k, n).
    """
    Z, (place, known) = random_design(family, X), _places(data, labels)
    u, C = posterior_effects(family, theta, data)
    eta = family.predictors(theta, np.ascontiguousarray(X.T))
    L = factors(family.likelihood.effects, theta, factor_index(family))
    mean = _shifted(eta, u, Z, place, known)
    posterior_variance = np.einsum("na,knab,nb->kn", Z, C[:, place], Z)
    spread = np.where(known, posterior_variance, np.sum((Z @ L) ** 2, axis=2))
    return mean, spread, np.exp(eta[:, 1])


def effect_names(result: Fitted) -> list[str]:
    """Names of the effects: those of the inputs, and "Intercept"."""
    return names_of_effects(result.family, None if result.data is None else result.data.features)


def effects_term(result: Fitted) -> str:
    """The effects as lme4 writes them, such as ``(1 + time | id)``."""
    names = ["1" if name == "Intercept" else name for name in effect_names(result)]
    ordered = sorted(names, key=lambda name: name != "1")
    ordered = ordered if "1" in ordered else ["0", *ordered]
    bars = "||" if result.family.likelihood.effects.diagonal and len(names) > 1 else "|"
    column = None if result.data is None else result.data.groups_column
    return f"({' + '.join(ordered)} {bars} {column or 'groups'})"


def _components(nu: Any, L: Any, names: Sequence[str], diagonal: bool) -> tuple[list[str], Any]:
    """Standard deviations and correlations of the effects, and of the rows; the ICC.

    The intraclass correlation is that of two rows of a group where the inputs with effects are 0.
    """
    D = L @ L.T
    q = len(names)
    order = [*range(q - 1, q), *range(q - 1)] if names[-1] == "Intercept" else [*range(q)]
    deviations = [np.sqrt(D[j, j]) for j in order]
    words = [f"sd({names[j]})" for j in order]
    values = list(deviations)
    for a in range(1, 1 if diagonal else q):
        for b in range(a):
            words.append(f"corr({names[order[b]]}, {names[order[a]]})")
            values.append(D[order[a], order[b]] / (deviations[a] * deviations[b]))
    words.append("sd(residual)")
    values.append(np.sqrt(nu))
    if names[-1] == "Intercept":
        words.append("ICC")
        values.append(D[-1, -1] / (D[-1, -1] + nu))
    return words, np.array(values)


def is_factor(family: Family, symbol: str) -> bool:
    """Whether a block is one of the factors of the effects' covariance matrices."""
    blocks = [(c.intercept, c.slope) for c in family.channels if c.reads is not None]
    return any(symbol in pair for pair in blocks)


def component_cells(result: Fitted, expert: int, alpha: float) -> list[tuple[str, ...]]:
    """Rows of a summary with the components of one expert, from 1."""
    rows = variance_components(result, alpha).loc[expert]
    cells: list[tuple[str, ...]] = []
    for label, row in rows.iterrows():
        if label == "sd(residual)":
            continue
        values = [row[name] for name in ("estimate", "error", "lower", "upper")]
        value, error, low, high = (
            "" if np.isnan(v) else significant(float(v), digits)
            for v, digits in zip(values, (4, 3, 4, 4), strict=True)
        )
        cells.append((str(label), "", value, error, "", "", low, high))
    return cells


@np.errstate(all="ignore")
def variance_components(result: Fitted, alpha: float = 0.05) -> pd.DataFrame:
    """Standard deviations and correlations of the effects by expert, with errors."""
    import pandas as pd

    if result.family.likelihood.effects is None:
        raise ValueError("the fit has no random effects; fit with random= or (1 | id)")
    family, theta = result.family, np.asarray(result.theta)
    effects, index, names = family.likelihood.effects, factor_index(family), effect_names(result)
    spread = result._covariance
    half, rows = normal_reach(alpha), list[dict[str, Any]]()
    scale_at = family.index[:, family.first_expert_channel + 1]
    if effects.base is not None:
        return _one_deviation(theta, index[:, 0], names, spread, half)
    L = factors(effects, theta, index)
    for i in range(family.n_experts):
        places = [
            (index[i, j] + effects.features[f], f, j)
            for j in range(len(names))
            for f in range(j, int(effects.last[j]))
        ]
        words, values = _components(np.exp(theta[scale_at[i]]), L[i], names, effects.diagonal)
        at = [int(scale_at[i]), *(int(place) for place, _, _ in places)]
        slopes = np.empty((len(words), len(at)))
        for c in range(len(at)):
            factor, t = L[i].astype(complex), complex(theta[scale_at[i]])
            if c == 0:
                t += 1j * COMPLEX_STEP
            else:
                _, f, j = places[c - 1]
                factor[f, j] += 1j * COMPLEX_STEP
            slopes[:, c] = np.imag(_components(np.exp(t), factor, names, effects.diagonal)[1])
        slopes /= COMPLEX_STEP
        errors = np.sqrt(np.einsum("rc,cd,rd->r", slopes, spread[np.ix_(at, at)], slopes))
        # A variance of 0 is a maximum inside: the factor's entry is 0, where the log-likelihood has
        # a curvature, but every group's score is 0 and products of scores tell nothing.
        lost = _NO_VARIANCE * np.sqrt(np.trace(L[i] @ L[i].T) + np.exp(theta[scale_at[i]]))
        deviations = np.sqrt(np.einsum("ab,ab->a", L[i], L[i]))
        none = bool(np.any(deviations < lost))
        for word, value, error in zip(words, values, errors, strict=True):
            kind = word.partition("(")[0]
            if kind == "corr" and none:
                value = error = np.nan
            elif kind == "sd" and value < lost:
                value, error = 0.0, error if result.cov_type in _CURVATURES else np.nan
            elif kind == "ICC" and deviations[names.index("Intercept")] < lost:
                value, error = 0.0, np.nan
            low, high = _interval(kind, float(value), float(error), half)
            rows.append(
                {"expert": i + 1, "component": word, "estimate": float(value)}
                | {"error": float(error), "lower": low, "upper": high}
            )
    return pd.DataFrame(rows).set_index(["expert", "component"])


def _one_deviation(
    theta: FloatArray, at: IntArray, names: Sequence[str], spread: FloatArray, half: float
) -> pd.DataFrame:
    """Standard deviation of a random intercept by expert, with standard errors."""
    import pandas as pd

    rows = list[dict[str, Any]]()
    for i, place in enumerate(at):
        value, error = abs(float(theta[place])), float(np.sqrt(spread[place, place]))
        low, high = _interval("sd", value, error, half)
        rows.append(
            {"expert": i + 1, "component": f"sd({names[0]})", "estimate": value}
            | {"error": error, "lower": low, "upper": high}
        )
    return pd.DataFrame(rows).set_index(["expert", "component"])


@np.errstate(all="ignore")
def _interval(kind: str, value: float, error: float, half: float) -> tuple[float, float]:
    """A normal interval in the scale in which the estimate is nearest to a normal one.

    A correlation or an ICC at the end of its range has none.
    """
    at, reach = np.float64(value), np.float64(half * error)
    if kind == "sd" and error > 0.5 * value:
        return max(0.0, value - half * error), value + half * error
    if kind == "sd":
        ends = at * np.exp(np.array([-1.0, 1.0]) * reach / at)
    elif kind == "corr":
        ends = np.tanh(np.arctanh(at) + np.array([-1.0, 1.0]) * reach / (1.0 - at**2))
    else:
        side = np.array([-1.0, 1.0]) * reach / (at * (1.0 - at))
        ends = 1.0 / (1.0 + np.exp(-np.log(at / (1.0 - at)) - side))
    return float(ends[0]), float(ends[1])


def effects_of_groups(result: Fitted) -> pd.DataFrame:
    """Predicted effects of each group with their standard deviations."""
    import pandas as pd

    if result.family.likelihood.effects is None:
        raise ValueError("the fit has no random effects; fit with random= or (1 | id)")
    data = result.rows
    grouping = grouping_of(data)
    u, C = posterior_effects(result.family, result.theta, data)
    share = result._shares[grouping.order][grouping.begin].T[:, :, None]
    mean = np.sum(share * u, axis=0)
    variances = np.diagonal(C, axis1=2, axis2=3)
    spread = np.sqrt(np.sum(share * (variances + (u - mean) ** 2), axis=0))
    names = effect_names(result)
    columns = {name: mean[:, j] for j, name in enumerate(names)}
    columns |= {f"sd({name})": spread[:, j] for j, name in enumerate(names)}
    return pd.DataFrame(columns, index=pd.Index(grouping.names, name="group"))
