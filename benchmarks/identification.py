"""What the data cannot tell: numbers that were wrong once, the right ones, and those of today.

``python benchmarks/identification.py`` writes results/identification.md.  The right numbers are of
statsmodels, of closed forms, or of the same model without the column that is one too many.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from results import FOLDER, markdown
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from statsmodels.discrete.count_model import ZeroInflatedPoisson
from statsmodels.tools.numdiff import approx_hess

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.fitting.estimators import MoERegressor
from moestat.estimation.inference import profile as profiles

Row = tuple[str, str, str, str]
"""What, the number that was wrong once, the right one, and that of today."""

LINE = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)]


def heard(
    call: Callable[..., Any], *given: Any, **named: Any
) -> tuple[Any, list[warnings.WarningMessage]]:
    """What a call returns, and our warnings of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(*given, **named)
    return found, [one for one in caught if issubclass(one.category, MoEWarning)]


def kinds(caught: list[warnings.WarningMessage]) -> str:
    """Kinds of warnings in words."""
    return ", ".join(one.category.__name__ for one in caught) or "none"


def digits(values: Any, number: int = 4) -> str:
    """Numbers in words."""
    return ", ".join(f"{value:.{number}f}" for value in np.ravel(values))


def coded(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """An input with a column for every level of a factor, and the mean of counts."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, n)
    X = np.column_stack([rng.normal(size=n), np.eye(3)[level]])
    return X, np.exp(0.5 + 0.6 * (level == 1) + 0.5 * X[:, 0])


def counting() -> Iterator[Row]:
    """Degrees of freedom."""
    X, mean = coded(0)
    y = np.log(mean) + 0.4 * np.random.default_rng(1).normal(size=300)
    for k in (1, 2):
        full, small = (moestat.fit("gaussian", Z, y, n_experts=k, rng=0) for Z in (X, X[:, :3]))
        what = f"every level coded, {k} expert{'s' * (k > 1)}: df, BIC"
        numbers = [f"{fit.edf:g}, {fit.bic:.2f}" for fit in (small, full)]
        yield what, "9 for 7, 88.67 for 79.10", *numbers
    rng = np.random.default_rng(2)
    X, z = rng.normal(size=(300, 8)), rng.random(300) < 0.35
    y = np.where(z, X @ np.eye(8)[0], -X @ np.eye(8)[1]) + rng.normal(size=300)
    bounds = {"beta1": (-1e-9, 1e-9)}
    page = moestat.family("gaussian", gate="softmax", n_experts=1, n_features=8, bounds=bounds)
    pinned = moestat.select(page, X, y, k=(1, 2, 3), rng=0)
    right = moestat.select("gaussian", X, y, k=(1, 2, 3), gate_inputs=[], rng=0)
    numbers = [f"{digits(s.table['df'], 0)}; k = {s.chosen('bic')}" for s in (right, pinned)]
    yield (
        "weights pinned by bounds of 1e-9: df for k = 1, 2, 3; k of BIC",
        "slopes counted",
        *numbers,
    )


def errors() -> Iterator[Row]:
    """Errors of what is identified beside what is not."""
    level = np.repeat([0.0, 1.0], 30)
    y = np.where(level == 1, 0, np.random.default_rng(0).poisson(3, 60))
    fit = moestat.fit("poisson", level, y, n_experts=1, rng=0)
    total = y.sum()
    frame = fit.get_prediction([[0.0], [1.0]]).summary_frame()
    right = digits([total**-0.5, total**0.5 / 30])
    yield (
        "a level of zeros: errors of intercept, mean",
        "NaN, NaN",
        right,
        digits([fit.bse[2], frame["mean_se"][0]]),
    )
    ends = frame[["mean_ci_lower", "mean_ci_upper"]].to_numpy()[1]
    yield "its mean's interval, 30 zeros", "[0, 0]", "0, 0.0640", digits(ends)
    wide = moestat.fit("poisson", np.eye(2)[level.astype(int)], y, n_experts=1, rng=0)
    contrast = wide.t_test("a[1,1] - a[1,0] = 0; b[1] + a[1,0] = 0")
    yield (
        "both levels coded: errors of contrast, mean",
        "finite, .1021",
        f"nan, {right[:6]}",
        digits(contrast.sd),
    )
    yield (
        "both levels coded: error of the effect of the second",
        "5.7",
        "nan",
        digits(wide.get_margeff().sd[1:]),
    )
    X, mean = coded(0)
    rng = np.random.default_rng(0)
    busy = rng.random(300) < expit(5 * X[:, 0])
    y = np.where(busy, 1 + 2 * X[:, 0], -1 - X[:, 0]) + X[:, 2] + 0.3 * rng.normal(size=300)
    resampled = []
    for Z in (X[:, :3], X):
        own = moestat.fit("gaussian", Z, y, rng=0)
        at = own.param_names.index("a[1,0]")
        resampled.append(digits(moestat.bootstrap(own, 40, rng=0).bse[[at, at + 1]]))
    right = resampled[0].split(",")[0] + ", nan"
    yield (
        "every level coded: resampled errors of a slope, a level",
        "1.5, 9893",
        right,
        resampled[1],
    )
    separated = moestat.fit("multinomial", LINE, (LINE > 0).astype(int), n_experts=1, rng=0)
    for kind in ("observed", "HC0"):
        own = separated if kind == "observed" else separated.get_robustcov_results(kind)
        old = "3,206,050" if kind == "observed" else "2.08"
        yield f"separated logit: errors by {kind}", old, "nan", digits(own.bse[3:])
    rng = np.random.default_rng(0)
    x, exposure = rng.normal(size=300), rng.uniform(0.5, 3, 300)
    group = rng.integers(0, 3, 300)
    counts = rng.poisson(exposure * np.exp(0.5 + 0.4 * x))
    counts = np.where((rng.random(300) < 0.3) | (group == 2), 0, counts)
    table = pd.DataFrame({"y": counts, "x": x, "log": np.log(exposure), "g": group.astype(str)})
    zip_fit = moestat.fit_formula(
        "y ~ x + g + offset(log)", table, "zero-inflated-poisson", n_experts=1, rng=0
    )
    new = pd.DataFrame({"x": [0.0, 1.0, 0.0], "log": 0.0, "g": ["0", "0", "1"]})
    part = group < 2
    design = np.column_stack([np.ones(300), x, group == 1])[part].astype(float)
    peer = ZeroInflatedPoisson(
        counts[part], design, np.ones((part.sum(), 1)), offset=np.log(exposure[part])
    ).fit(method="bfgs", maxiter=2000, gtol=1e-8, disp=0)
    # The Hessian of statsmodels differs from that of its own log-likelihood by some percent.
    covariance = np.linalg.inv(-approx_hess(peer.params, peer.model.loglike))
    at = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]])
    zero, mean = expit(peer.params[0]), (1 - expit(peer.params[0])) * np.exp(at @ peer.params[1:])
    slopes = np.column_stack([-zero * mean, mean[:, None] * at])
    theirs = np.sqrt(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))
    ours = zip_fit.get_prediction(new).summary_frame()["mean_se"]
    yield (
        "ZIP with exposure and a level of zeros: errors of means",
        "NaN",
        digits(theirs),
        digits(ours),
    )


def ended() -> Iterator[Row]:
    """Profiles where the maximum is at infinity: intervals, and how many maximisations."""
    calls, inner = [0], profiles.minimise

    def counted(*given: Any) -> Any:
        calls[0] += 1
        return inner(*given)

    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    zeros = np.where(rng.random(400) < 0.4, 0, rng.poisson(np.exp(1 + x)))
    three = np.digitize(LINE, [-0.8, 0.8])
    cases = [
        (
            "multinomial",
            LINE,
            (LINE > 0).astype(int),
            1,
            "a[1,0,0]",
            "1,987, no end",
            "-inf, -6.4247",
        ),
        ("multinomial", LINE, three, 1, "a[1,0,0]", "-1273, -1008", "-inf, -32.0310"),
        ("ordinal", LINE, three, 1, "b[1]", "13.48, 1700", "13.4844, inf"),
        ("poisson", x, zeros, 2, "b[2]", "94,092, no end", "-inf, finite"),
        ("negative-binomial", x, rng.binomial(6, 0.5 + 0.1 * x), 1, "log phi[1]", "error", "-inf"),
        ("student-t", x, x + rng.uniform(-1, 1, 400), 1, "log dof[1]", "error", "inf"),
    ]
    profiles.minimise = counted
    try:
        for likelihood, X, y, k, name, old, right in cases:
            fit = moestat.fit(likelihood, X, y, n_experts=k, rng=0)
            calls[0], begin = 0, time.process_time()
            ends = fit.profile(name).interval
            spent = time.process_time() - begin
            now = f"{digits(ends)}; {calls[0]} maximisations, {spent:.2f} s"
            yield f"profile of {name}, {likelihood}", old, right, now
    finally:
        profiles.minimise = inner


def warned() -> Iterator[Row]:
    """Kinds of warnings, where they point, and whether fits are certified."""
    seen: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, 500)
        one = rng.poisson(np.exp(1 + x))
        busy = rng.random(500) < expit(4 * x)
        two = rng.poisson(np.exp(np.where(busy, 2 - x / 2, x)))
        for k, y in ((1, one), (2, two)):
            seen[k][
                kinds(heard(moestat.fit, "negative-binomial", x, y, n_experts=k, rng=0)[1])
            ] += 1
    for k, old in ((1, 8), (2, 17)):
        now = ", ".join(f"{kind} {count}" for kind, count in seen[k].most_common())
        what = f"negative binomial, Poisson counts, 20 seeds, k = {k}"
        yield what, f"Separation, Bound {old}", "Limit alone", now
    laws: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
        "gaussian": lambda rng, mean: np.log(mean) + 0.4 * rng.normal(size=300),
        "gamma": lambda rng, mean: rng.gamma(2, mean / 2),
        "poisson": lambda rng, mean: rng.poisson(mean),
    }
    for k in (1, 2):
        found: Counter[str] = Counter()
        for seed in range(12):
            X, mean = coded(seed)
            for name, law in laws.items():
                y = law(np.random.default_rng(seed), mean)
                fit, caught = heard(moestat.fit, name, X, y, n_experts=k, rng=0)
                small = moestat.fit(name, X[:, :3], y, n_experts=k, rng=0)
                found["certified"] += fit.certificate.certified
                found["bound"] += "Bound" in kinds(caught)
                found["lower"] += fit.llf < small.llf - 0.01
                found["higher"] += fit.llf > small.llf + 0.01
        what = f"every level coded, 36 fits, k = {k}: certified, BoundWarning"
        yield what, "not all", "36, 0", f"{found['certified']}, {found['bound']}"
        what = f"of these lower, higher than without the column, k = {k}"
        old, right = ("0, 0", "0, 0") if k == 1 else ("7, 1 of 12 normal", "as many")
        yield what, old, right, f"{found['lower']}, {found['higher']}"
    X, mean = coded(0)
    table = pd.DataFrame({"u": X[:, 0], "g": X[:, 1:].argmax(axis=1).astype(str)})
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["g"]), remainder="passthrough"
    )
    pipe = make_pipeline(encode, MoERegressor(n_experts=1, random_state=0))
    _, caught = heard(pipe.fit, table, np.log(mean) + X[:, 0] ** 2)
    where = {one.filename.rsplit("/", 1)[-1] for one in caught}
    yield "file of the warnings in a pipeline", "sklearn/base.py", "this file", ", ".join(where)


def told() -> Iterator[Row]:
    """What is said."""
    level = np.repeat(list("abc"), 30)
    y = np.where(level == "c", 0, np.random.default_rng(0).poisson(3, 90))
    _, (one, *_) = heard(
        moestat.fit_formula, "y ~ g", {"g": level, "y": y}, "poisson", n_experts=1, rng=0
    )
    says = str(one.message)
    named = [word for word in ("g[T.c]", "prior=", "fewer experts") if word in says]
    yield "separation warning names", "fewer experts", "g[T.c], prior=", ", ".join(named)
    _, (one, *_) = heard(
        moestat.fit, "multinomial", LINE, np.where(LINE > 0, "yes", "no"), n_experts=1, rng=0
    )
    named = [word for word in ("no against yes", "x[0]", "prior=") if word in str(one.message)]
    yield "of classes", "none", "no against yes, x[0], prior=", ", ".join(named)
    x = np.random.default_rng(0).uniform(-1, 1, 200)
    fit = moestat.fit(
        "gaussian", x, np.abs(x) + 0.05 * np.random.default_rng(1).normal(size=200), rng=0
    )
    words = str(fit.simpler)
    yield "`simpler` of two lines", "BIC is lower by -502.2", "BIC is higher", words[26:55]
    head = "yes" if "Iterations" in str(fit.summary()) else "no"
    yield "'Iterations 0' in a summary", "yes", "no", head


def required() -> Iterator[Row]:
    """Predicted numbers of rows beside simulated ones."""
    record = json.loads((FOLDER / "required_rows.json").read_text("utf-8"))
    for kind in ("regular", "merging"):
        ratios = [row["ratio"] for row in record[kind]]
        inside = sum(0.5 <= ratio <= 2.0 for ratio in ratios)
        what = f"required_n, {len(ratios)} {kind} truths: within a factor 2 (ratios from, to)"
        right = str(len(ratios))
        yield what, "", right, f"{inside} ({digits([min(ratios), max(ratios)], 2)})"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [
        {"item": item, "what": what, "once": old, "right": right, "now": now}
        for item, part in enumerate((counting, errors, ended, warned, told), 1)
        for what, old, right, now in part()
    ]
    rows += [
        {"item": 8, "what": what, "once": old, "right": right, "now": now}
        for what, old, right, now in required()
    ]
    text = (
        "# What the data cannot tell\n\n`python benchmarks/identification.py`. Other pages:"
        " coverage of intervals where a part is not identified (`unidentified_coverage.json`),"
        " alarms on regular and on misleading data (`alarms.json`), rows that estimates need"
        " (`required_rows.json`).\n\n"
    )
    (FOLDER / "identification.md").write_text(text + markdown(rows) + "\n", encoding="utf-8")
    print(text + markdown(rows))
