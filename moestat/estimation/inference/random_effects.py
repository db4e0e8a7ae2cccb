"""Random effects of groups: predictions, variance components, and means of known groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import Encoded, FloatArray, IntArray, Labels
from moestat.estimation.data.groups import encoded_rows, grouping_of
from moestat.estimation.fit.components import factor_index, names_of_effects, random_design
from moestat.estimation.fit.delta import COMPLEX_STEP, normal_reach
from moestat.estimation.tables import significant
from moestat.kernels.quadrature import nodes_loop
from moestat.model.family import Family
from moestat.model.random_effects import RandomEffects, factors
from moestat.solvers.groups import group_sums, parts_of
from moestat.solvers.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.data.data import Data
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "component_cells",
    "random_effects",
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

_FEW_NODES = 4096
"""Nodes of the effects of a group for which there is room at first: smooth integrals need fewer."""

_CELLS = 2**18
"""Most numbers of predictors at once, 2 MiB."""


def posterior_effects(
    family: Family, theta: FloatArray, data: Data
) -> tuple[FloatArray, FloatArray]:
    """Means (k, G, q) and covariances (k, G, q, q) of the effects given the rows and the expert.

    ``u = L M^-1 L' Z'r`` and ``C = nu L M^-1 L'`` with ``M = nu I + L' Z'Z L``: the best linear
    unbiased predictions at the estimates (Laird and Ware 1982, Sec. 3), as if these were known.
    Of counts and binary responses they are the moments of the conditional distribution.  Of nested
    groups G are the parts, with the effects of a part and of its group.
    """
    if family.likelihood.random_effects.base is not None:
        mean, C = _standardised(family, theta, data)
        L = factors(family.likelihood.random_effects, theta, factor_index(family))
        return np.einsum("kab,kgb->kga", L, mean), np.einsum("kab,kgbc,kdc->kgad", L, C, L)
    grouping = grouping_of(data)
    X, y = data.X[grouping.order], data.y[grouping.order]
    Z, L = (
        random_design(family, X),
        factors(family.likelihood.random_effects, theta, factor_index(family)),
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


def _standardised(family: Family, theta: FloatArray, data: Data) -> tuple[FloatArray, FloatArray]:
    """Means (k, C, q) and covariances (k, C, q, q) of standardised effects given the rows.

    Of nested groups C are the parts, with the effects of a part and of its group; else the groups.
    """
    rows, effects = encoded_rows(family, data), family.likelihood.random_effects
    sums = group_sums(family, theta, rows, 0)
    if len(effects.features) == 1:
        return sums.moments[:, :, :1], sums.moments[:, :, 1:2, None]
    group = Parts.of(family, data).group
    mean = np.stack([sums.of_parts[:, :, 0], sums.moments[:, group, 0]], axis=2)
    C = np.empty((*mean.shape, 2))
    C[:, :, 0, 0], C[:, :, 1, 1] = sums.of_parts[:, :, 1], sums.moments[:, group, 1]
    C[:, :, 0, 1] = C[:, :, 1, 0] = sums.of_parts[:, :, 2]
    return mean, C


@dataclass(frozen=True)
class Parts:
    """Parts of the groups of the data, or whole groups: their rows share the first effect."""

    first: IntArray  # the first row (C,) of each part in `rows`
    group: IntArray  # the group (C,) of each part
    rows: Rows  # the rows, part by part

    @classmethod
    def of(cls, family: Family, data: Data) -> Parts:
        """The parts of the rows of a `Data` with groups."""
        rows, effects = encoded_rows(family, data), family.likelihood.random_effects
        if effects.within is not None:
            rows = rows.by_parts(effects.within)
        first = parts_of(rows, effects)
        return cls(first, rows.owner[first], rows)

    def places(self, group: IntArray, code: FloatArray, within: int) -> IntArray:
        """The part of each group (n,) with each code (n,) of the input; -1 for an unknown one."""
        own = self.rows.X[within, self.first]
        known = {pair: place for place, pair in enumerate(zip(self.group, own, strict=True))}
        return np.array([known.get(pair, -1) for pair in zip(group, code, strict=True)], dtype=int)


def _nodes(
    family: Family, eta: FloatArray, y: Encoded, parts: IntArray, chosen: int
) -> tuple[FloatArray, float]:
    """Nodes (N, 3) of the effects of one group: the second one, the first one, and the share.

    `eta` are the predictors (n + q, m) of its m rows.  The logarithm of the integral comes last.
    """
    base = family.likelihood.random_effects.conditional
    n = 1 + len(base.channels)
    full = np.zeros((n + 2, eta.shape[1]))
    full[: len(eta)] = eta
    loop = nodes_loop(base.block, n, base.name == "gaussian")
    record = np.empty((_FEW_NODES, 3))
    count, value = loop(full, y, parts, chosen, record)
    if count > len(record):
        record = np.empty((int(count), 3))
        count, value = loop(full, y, parts, chosen, record)
    return record[: int(count)], value


def _means_given_groups(
    family: Family, theta: FloatArray, data: Data, X: FloatArray, place: IntArray
) -> FloatArray:
    """Means (k, n) within experts of new rows X (d, n) of the groups `place` (n,) of the data.

    The mean given the effects is averaged over the nodes of the conditional distribution of these.
    The mean ``exp(eta + z)`` of a count is that of the group without z, with the predictors of its
    rows moved by their covariances with z: it has no bound, and nodes might end too early.
    """
    effects, parts = family.likelihood.random_effects, Parts.of(family, data)
    rows, base = parts.rows, effects.conditional
    assert rows.begin is not None
    n, law = 1 + len(base.channels), base.law
    assert law is not None
    own = family.predictors(theta, rows.X)
    new = family.predictors(theta, X)
    edges, mean = np.append(rows.begin, rows.size), np.empty((len(own), place.size))
    of_part = np.zeros(place.size, dtype=int)
    if effects.within is not None:
        of_part = parts.places(place, X[effects.within], effects.within)
    for group, part in {*zip(place.tolist(), of_part.tolist(), strict=True)}:
        asked = np.flatnonzero((place == group) & (of_part == part))
        some = slice(int(edges[group]), int(edges[group + 1]))
        of_group = np.flatnonzero(parts.group == group)
        first = parts.first[of_group] - some.start
        chosen = part - int(of_group[0]) if effects.within is not None else 0
        if part < 0:  # a part without rows
            first, chosen = np.append(first, some.stop - some.start), first.size
        for i in range(len(own)):
            eta, y = np.ascontiguousarray(own[i][:, some]), rows.y[some]
            record, value = _nodes(family, eta, y, first, chosen)
            if base.name == "poisson":
                inside = np.zeros(eta.shape[1])
                inside[first[chosen] : first[chosen + 1] if chosen + 1 < first.size else None] = 1.0
                for j in asked:
                    z = new[i, n:, j]
                    common = eta[n:] * z[:, None]
                    common[0] *= inside
                    moved = eta.copy()
                    moved[0] += common.sum(axis=0)
                    other = _nodes(family, moved, y, first, chosen)[1]
                    mean[i, j] = np.exp(new[i, 0, j] + 0.5 * z @ z + other - value)
                continue
            at_once = max(_CELLS // max(asked.size, 1), 1)
            mean[i, asked] = 0.0
            for begin in range(0, len(record), at_once):
                node = record[begin : begin + at_once]
                effect = node[:, 1:2] * new[i, n, asked]
                if len(effects.features) > 1:
                    effect += node[:, :1] * new[i, n + 1, asked]
                shifted = np.repeat(new[None, i, :n][:, :, asked], len(node), axis=0)
                shifted[:, 0] += effect
                mean[i, asked] += node[:, 2] @ law(shifted).mean()
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
    if family.likelihood.name == "gaussian":
        return np.sum(shares * laws_of_groups(family, theta, data, X, labels)[0], axis=0)
    place, known = _places(data, labels)
    design = np.ascontiguousarray(X.T)
    law = family.likelihood.law
    assert law is not None
    mean = law(family.predictors(theta, design)).mean()
    if known.any():
        of_known = np.ascontiguousarray(design[:, known])
        mean[:, known] = _means_given_groups(family, theta, data, of_known, place[known])
    return np.sum(shares * mean, axis=0)


def laws_of_groups(
    family: Family, theta: FloatArray, data: Data, X: FloatArray, labels: Labels
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means (k, n) of normal rows X (n, d) of labelled groups within experts, and two variances.

    These are that of the effects given the rows of a known group (k, n), or that of any group, and
    that of a row (k, n).
    """
    Z, (place, known) = random_design(family, X), _places(data, labels)
    effects = family.likelihood.random_effects
    eta = family.predictors(theta, np.ascontiguousarray(X.T))
    L = factors(effects, theta, factor_index(family))
    if effects.within is not None:
        moments = _standardised(family, theta, data)
        mean, variance = _of_nested(family, data, X, place, known, L, moments)
        return eta[:, 0] + mean, variance, np.exp(eta[:, 1])
    u, C = posterior_effects(family, theta, data)
    mean = _shifted(eta, u, Z, place, known)
    posterior_variance = np.einsum("na,knab,nb->kn", Z, C[:, place], Z)
    spread = np.where(known, posterior_variance, np.sum((Z @ L) ** 2, axis=2))
    return mean, spread, np.exp(eta[:, 1])


def _of_nested(
    family: Family,
    data: Data,
    X: FloatArray,
    place: IntArray,
    known: np.ndarray,
    L: FloatArray,
    moments: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Means and variances (k, n) of the sum of the effects of a part and of its group.

    `moments` are those of the standardised effects of known parts.
    """
    parts, within = Parts.of(family, data), family.likelihood.random_effects.within
    assert within is not None
    at = parts.places(np.where(known, place, -1), X[:, within], within)
    of_group = np.searchsorted(parts.group, place)  # any part of the group
    mean, C = moments
    scale = np.stack([L[:, 0, 0], L[:, 1, 1]], axis=1)
    group_mean = scale[:, 1:] * mean[:, of_group, 1]
    group_variance = scale[:, 1:] ** 2 * C[:, of_group, 1, 1]
    both_mean = np.einsum("ka,kna->kn", scale, mean[:, at])
    both = np.einsum("ka,knab,kb->kn", scale, C[:, at], scale)
    own = np.sum(scale**2, axis=1)[:, None] + np.zeros(place.size)
    means = np.where(at >= 0, both_mean, np.where(known, group_mean, 0.0))
    first = scale[:, :1] ** 2
    return means, np.where(at >= 0, both, np.where(known, group_variance + first, own))


def effect_names(result: Fitted) -> list[str]:
    """Names of the effects: those of the inputs, and "Intercept"."""
    return names_of_effects(result.family, result.data)


def effects_term(result: Fitted) -> str:
    """The effects as lme4 writes them, such as ``(1 + time | id)``."""
    names, effects = effect_names(result), result.family.likelihood.random_effects
    if effects.within is not None:
        part, group = names
        return f"(1 | {part if part.startswith(f'{group}/') else f'{group}/{part}'})"
    names = ["1" if name == "Intercept" else name for name in names]
    ordered = sorted(names, key=lambda name: name != "1")
    ordered = ordered if "1" in ordered else ["0", *ordered]
    bars = "||" if effects.diagonal and len(names) > 1 else "|"
    column = None if result.data is None else result.data.groups_column
    return f"({' + '.join(ordered)} {bars} {column or 'groups'})"


def _components(
    nu: Any, L: Any, names: Sequence[str], effects: RandomEffects
) -> tuple[list[str], Any]:
    """Standard deviations and correlations of the effects, and of the rows; the ICC.

    The intraclass correlation is that of two rows of a group where the inputs with effects are 0.
    Without a variance nu of rows there are the effects alone.
    """
    D = L @ L.T
    q = len(names)
    last = names[-1] == "Intercept" or effects.within is not None
    order = [*range(q - 1, q), *range(q - 1)] if last else [*range(q)]
    deviations = [np.sqrt(D[j, j]) for j in order]
    words = [f"sd({names[j]})" for j in order]
    values = list(deviations)
    for a in range(1, 1 if effects.diagonal else q):
        for b in range(a):
            words.append(f"corr({names[order[b]]}, {names[order[a]]})")
            values.append(D[order[a], order[b]] / (deviations[a] * deviations[b]))
    if nu is None:
        return words, np.array(values)
    words.append("sd(residual)")
    values.append(np.sqrt(nu))
    if effects.within is not None:
        total = D[0, 0] + D[1, 1] + nu
        words += [f"ICC({names[1]})", f"ICC({names[0]})"]
        values += [D[1, 1] / total, (D[0, 0] + D[1, 1]) / total]
    elif last:
        words.append("ICC")
        values.append(D[-1, -1] / (D[-1, -1] + nu))
    return words, np.array(values)


def effects_of(result: Fitted, question: str = "") -> RandomEffects:
    """The random effects of a fit, or an error, which begins with the name of a question."""
    effects = result.family.likelihood.effects
    if effects is None:
        raise ValueError(f"{question}the fit has no random effects; fit with random= or (1 | id)")
    return effects


def is_factor(family: Family, symbol: str) -> bool:
    """Whether a block is one of the factors of the effects' covariance matrices."""
    blocks = [(c.intercept, c.slope) for c in family.channels if c.reads is not None]
    return any(symbol in pair for pair in blocks)


def component_cells(result: Fitted, expert: int, alpha: float) -> list[tuple[str, ...]]:
    """Rows of a summary with the components of one expert, from 1."""
    rows = variance_components(result, alpha).loc[result.experts.keys[expert - 1]]
    cells: list[tuple[str, ...]] = []
    for label, row in rows.iterrows():
        if label == "sd(residual)":
            continue
        values = [row[name] for name in ("estimate", "std_error", "conf_low", "conf_high")]
        value, error, low, high = (
            "" if np.isnan(v) else significant(float(v), digits)
            for v, digits in zip(values, (4, 3, 4, 4), strict=True)
        )
        cells.append((str(label), "", value, error, "", "", low, high))
    return cells


@np.errstate(all="ignore")
def variance_components(result: Fitted, alpha: float = 0.05) -> pd.DataFrame:
    """Standard deviations and correlations of the random effects by expert, with intervals.

    Standard errors come from the delta method.  The intervals of level ``1 - alpha`` are normal
    on a transformed scale: the logarithm of a standard deviation, Fisher's transform of a
    correlation and the logit of the ICC.  If the standard error of a standard deviation
    exceeds half of the estimate, its interval is normal without a transform and starts at 0 or
    above.  The ICC is the correlation of two rows of a group at which the inputs with random
    effects are 0.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
    >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
    >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
    >>> result.variance_components().loc[1].index.tolist()
    ['sd(Intercept)', 'sd(residual)', 'ICC']
    """
    from moestat.estimation.columns import EstimateTable

    effects = effects_of(result)
    family, theta = result.family, np.asarray(result.theta)
    index, names = factor_index(family), effect_names(result)
    spread = result._covariance
    half, rows = normal_reach(alpha), list[dict[str, Any]]()
    has_variance = "nu" in family.blocks
    L = factors(effects, theta, index)
    for i in range(family.n_experts):
        places = [
            (index[i, j] + effects.features[f], f, j)
            for j in range(len(names))
            for f in range(j, int(effects.last[j]))
        ]
        scale_at = [int(family.blocks["nu"][i])] if has_variance else []
        at = [*scale_at, *(int(place) for place, _, _ in places)]
        log_variance: Any = theta[scale_at[0]] if has_variance else None

        def components(t: Any, factor: Any) -> tuple[list[str], Any]:
            return _components(None if t is None else np.exp(t), factor, names, effects)

        words, values = components(log_variance, L[i])
        slopes = np.empty((len(words), len(at)))
        for c, place in enumerate(at):
            factor, t = L[i].astype(complex), log_variance
            if place in scale_at:
                t = log_variance + 1j * COMPLEX_STEP
            else:
                _, f, j = places[c - len(scale_at)]
                factor[f, j] += 1j * COMPLEX_STEP
            slopes[:, c] = np.imag(components(t, factor)[1])
        slopes /= COMPLEX_STEP
        errors = np.sqrt(np.einsum("rc,cd,rd->r", slopes, spread[np.ix_(at, at)], slopes))
        # A variance of 0 is a maximum inside: the factor's entry is 0, where the log-likelihood has
        # a curvature, but every group's score is 0 and products of scores tell nothing.
        whole = np.sqrt(np.trace(L[i] @ L[i].T) + np.exp(log_variance)) if has_variance else 1.0
        lost = _NO_VARIANCE * whole
        deviations = np.sqrt(np.einsum("ab,ab->a", L[i], L[i]))
        none = bool(np.any(deviations < lost))
        for word, value, error in zip(words, values, errors, strict=True):
            kind = word.partition("(")[0]
            if kind == "corr" and none:
                value = error = np.nan
            elif kind == "sd" and value < lost:
                value, error = 0.0, error if result.cov_type in _CURVATURES else np.nan
            elif word == "ICC" and deviations[names.index("Intercept")] < lost:
                value, error = 0.0, np.nan
            low, high = _interval(kind, float(value), float(error), half)
            rows.append(
                {"expert": result.experts.keys[i], "component": word, "estimate": float(value)}
                | {"std_error": float(error), "conf_low": low, "conf_high": high}
            )
    return EstimateTable(rows).set_index(["expert", "component"])


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


def random_effects(result: Fitted) -> pd.DataFrame:
    """Predict the random effects of each group, with their standard deviations.

    The predictions are the conditional means and standard deviations given the rows of the
    group.  They combine the best linear unbiased predictions within each expert, weighted by
    the group's responsibilities.  The estimated parameters are treated as known (Laird and
    Ware 1982, Sec. 3).

    Returns
    -------
    DataFrame
        One row per group, and per part of a group where these are nested, with a column for each
        effect and a column ``sd(...)`` for its standard deviation.

    Raises
    ------
    ValueError
        If the fit has no random effects, or its data were not stored.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
    >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
    >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
    >>> result.random_effects().columns.tolist()
    ['Intercept', 'sd(Intercept)']
    >>> bool(np.corrcoef(result.random_effects()["Intercept"], np.sin(range(20)))[0, 1] > 0.9)
    True
    """
    import pandas as pd

    effects_of(result)
    data, family = result.rows, result.family
    grouping = grouping_of(data)
    u, C = posterior_effects(family, result.theta, data)
    share = result._shares[grouping.order][grouping.begin].T[:, :, None]
    names, index = effect_names(result), pd.Index(grouping.names, name="group")
    if family.likelihood.random_effects.within is not None:
        parts = Parts.of(family, data)
        share = share[:, parts.group]
        group, part = (name.rpartition("/")[2] for name in (names[1], names[0]))
        index = pd.MultiIndex.from_arrays(
            [grouping.names[parts.group], _labels_of_parts(family, data, parts)],
            names=[group, part],
        )
    mean = np.sum(share * u, axis=0)
    variances = np.diagonal(C, axis1=2, axis2=3)
    spread = np.sqrt(np.sum(share * (variances + (u - mean) ** 2), axis=0))
    columns = {name: mean[:, j] for j, name in enumerate(names)}
    columns |= {f"sd({name})": spread[:, j] for j, name in enumerate(names)}
    return pd.DataFrame(columns, index=index).sort_index()


def _labels_of_parts(family: Family, data: Data, parts: Parts) -> list[Any]:
    """The label of each part; the value of its input where labels were not given."""
    within = family.likelihood.random_effects.within
    codes = parts.rows.X[within, parts.first].tolist()
    if data.parts is None:
        return codes
    known = dict(zip(data.X[:, within].tolist(), data.parts.tolist(), strict=True))
    return [known[code] for code in codes]
