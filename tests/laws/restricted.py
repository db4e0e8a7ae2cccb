"""Laws of what is asked under restrictions: each is a fit with the coefficient at a known value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

import moestat
from tests.laws.cases import Case
from tests.laws.laws import FAILS, REFUSED, Cell, asked, compared, law

_OPTIONS = (
    "plain",
    "weights",
    "groups",
    "weights, groups",
    "offset",
    "equal",
    "missing",
    "compress, weights",
    "transformed, weights, groups",
    "random, groups",
)


@law
def restrictions_are_known_values(case: Case) -> Iterator[Cell]:
    """A profile likelihood and a constraint asked afterwards are fits with a known coefficient."""
    base, found = case.result, _coefficient(case)
    if case.option not in _OPTIONS or found is None or not _sound(base):
        return
    block, name = found
    experts = (1, 2) if block in case.arguments.get("equal", ()) else (1,)
    # An expert of another likelihood, such as the uniform one, may have no slopes.
    experts = [i for i in experts if f"{block}[{i},x]" in base.bse.index]
    known = lambda value: {block: {(i, "x"): value for i in experts}}  # noqa: E731
    profile, refusal, foreign = asked(lambda: base.profile(name))
    if refusal or foreign:
        yield Cell("profile", FAILS if foreign else REFUSED, str(foreign or refusal))
    else:
        drop = 0.5 * chi2.isf(0.05, 1)
        for side, end in zip(("lower end", "upper end"), profile.interval, strict=True):
            if not np.isfinite(end):
                continue
            held, refusal, foreign = asked(
                lambda end=end: case.fit(starts=_begins(base, name, end), fixed=known(float(end)))
            )
            if refusal or foreign:
                yield Cell(f"profile, {side}", FAILS, str(foreign or refusal))
            else:
                yield compared(f"profile, {side}", base.llf - held.llf, drop, atol=1e-3)
    value = float(base.params[name] + 0.5 * base.bse[name])
    held, refusal, foreign = asked(lambda: base.fit_constrained(f"{name} = {value!r}"))
    if refusal or foreign:
        yield Cell("fit_constrained", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    again, refusal, foreign = asked(lambda: case.fit(starts=held.theta, fixed=known(value)))
    if refusal or foreign:
        yield Cell("fit_constrained", FAILS, str(foreign or refusal))
        return
    yield compared("fit_constrained", held.llf, again.llf, rtol=0.0, atol=1e-4)
    if abs(held.llf - again.llf) > 1e-6 or not _sound(again):
        return
    yield compared("fit_constrained, parameters", held.theta, again.theta, rtol=1e-4, atol=1e-5)
    errors = [np.nan_to_num(np.asarray(each.bse, dtype=float)) for each in (held, again)]
    yield compared("fit_constrained, standard errors", *errors, rtol=1e-3, atol=1e-6)


def _begins(base: Any, name: str, value: float) -> list[Any]:
    """Starts of a fit with a coefficient at a value, since this may have several maxima."""
    constrained, _, _ = asked(lambda: base.fit_constrained(f"{name} = {float(value)!r}"))
    return [base.theta] if constrained is None else [base.theta, constrained.theta]


def _sound(result: Any) -> bool:
    certificate = result.certificate
    return (
        certificate.certified
        and not certificate.collapsed
        and not certificate.active
        and certificate.condition < 1e5
        and not result.family.has_jumps
    )


def _coefficient(case: Case) -> tuple[str, str] | None:
    """The block and the name of the slope of x in the first expert."""
    family = case.result.family
    for channel in family.channels[family.first_expert_channel :]:
        name = f"{channel.slope}[1,x]"
        if channel.slope and name in case.result.param_names:
            return channel.slope, name
    return None


@law
def restrictions_of_fits_at_limits(case: Case) -> Iterator[Cell]:
    """A shape on the limit of its range leaves it where the restricted maximum is inside.

    Rows are drawn from the simpler distribution at the limit, with one expert and a strong slope.
    """
    if case.option not in ("plain", "weights") or case.member.kind not in ("one", "trials"):
        return
    family, _ = case.truth
    if not family.likelihood.limits or family.n_classes > 1 or family.expert.name != "linear":
        return
    one = family.with_experts(1)
    channel = next(c for c in one.channels[one.first_expert_channel :] if c.slope)
    theta, rng = one.typical(case.seed), np.random.default_rng(case.seed)
    blocks = {block: np.ravel(at) for block, at in one.blocks.items()}
    theta[blocks[channel.slope]] = [2.0, 0.3]
    for block, words in family.likelihood.limits.items():
        ends = one.lower if words[0] else one.upper
        theta[blocks[block]] = ends[blocks[block]]
    X, y = moestat.sample(one, theta, 200, rng=rng, design=moestat.Uniform(-1.0, 1.0))
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "w": rng.integers(0, 4, 200)})
    if case.member.kind == "trials":
        frame["s"], frame["t"] = y.astype(int), family.likelihood.options["trials"]
    else:
        frame["y"] = y
    given = {"n_experts": 1, "gate": "softmax", "formula": f"{case.response} ~ x + z"}
    full, refusal, foreign = asked(lambda: case.fit(frame, **given))
    if refusal or foreign:
        yield Cell("fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    name = f"{channel.slope}[1,x]"
    for value in (0.0, 0.5):
        held, refusal, foreign = asked(
            lambda value=value: full.fit_constrained(f"{name} = {value}")
        )
        if refusal or foreign:
            yield Cell(f"fit_constrained, {value}", FAILS, str(foreign or refusal))
            continue
        known = {channel.slope: {(1, "x"): value}}
        more = {"n_starts": 4, "risk": 1.0}
        again, refusal, foreign = asked(
            lambda known=known, more=more: case.fit(frame, **given, fixed=known, **more)
        )
        if refusal or foreign:
            yield Cell(f"fit_constrained, {value}", FAILS, str(foreign or refusal))
            continue
        yield compared(f"fit_constrained, {value}", held.llf, again.llf, rtol=0.0, atol=1e-3)
    profile, refusal, foreign = asked(lambda: full.profile(name))
    if refusal or foreign:
        yield Cell("profile", FAILS, str(foreign or refusal))
        return
    for side, end in zip(("lower end", "upper end"), profile.interval, strict=True):
        known = {channel.slope: {(1, "x"): float(end)}}
        again, *_ = asked(lambda known=known: case.fit(frame, **given, fixed=known))
        drop = 0.5 * chi2.isf(0.05, 1)
        yield compared(f"profile, {side}", full.llf - again.llf, drop, atol=1e-3)
