"""How probable a higher maximum is after a default call, by what its search saw: data and fit.

    python benchmarks/calibration.py collect [--problems 300] [--minutes 50] [--real]
    python benchmarks/calibration.py collect --first 1000 [--problems 300] [--minutes 50]
    python benchmarks/calibration.py collect --modes [--first 0] [--problems 300] [--minutes 50]
    python benchmarks/calibration.py fit

`collect` adds to results/calibration.jsonl.gz a line for each problem that is not there yet: five
default calls with what their searches saw, and how high other looks came (sixty starts in the pool
where calls are quick, and a start at the truth where the fit has as many experts).  `fit`
estimates the coefficients of moestat/estimation/search/higher.py on the problems of odd numbers,
judges them on those of even numbers, and writes results/calibration.md.

A call that searched is read as if it had stopped after each of its searches, too: the coefficients
are fitted to all of these stops, since a search decides by them where it stops.

`--modes` does the same for calls with ``prior="weak"``, in results/calibration_modes.jsonl.gz:
heights are those of the posterior density, and `fit` estimates coefficients of their own.

Problems from number 1000 on are fresh: no coefficient and no risk was chosen on them.  Their calls
are those of today's default, whose own probabilities `fit` compares with what is known.

Tried and not kept, by the log loss in five folds of problems over all stops of all 643 problems
(.5423 with today's two covariates): the product of both, the logarithms of the number of runs, of
runs that agree, of experts, of parameters, of rows for each parameter, and the share of the pool at
its best height; none is below .5416.  What limits the probability is what a search sees: where all
of eight searches agree but the pool reached more than six heights, a higher maximum was known for 8
of 50 calls on fresh problems.

The first 59 problems in the file have four calls, up to four times the work, and rounds of moves as
one more look; 76 are of real data (`--real`, the suite of search.py), with rows left out down to
the same work.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fresh_sets import judged
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import moestat
from moestat.estimation.rules import SAME_HEIGHT
from moestat.estimation.search.agreement import Agreement
from moestat.estimation.search.higher import SearchRecord, covariates
from moestat.estimation.starts import GivenStarts
from moestat.rates.plots import save_figure
from moestat.rates.style import plain_axes, style

ROOT = Path(__file__).parents[1]
HERE = ROOT / "benchmarks" / "results"
SEEDS, WORK, QUICK = 5, 1e5, 2.0
"""Calls of a problem, rows times squared parameters at most, and seconds of all calls below which
one more has sixty starts."""

MAXIMA: dict[str, Any] = {"maximum": "highest"}
"""Options of the calls, whose probability is of a higher maximum; `modes.py` is on the default."""
MODES = MAXIMA | {"prior": "weak"}
"""The same for posterior modes."""

FRESH = 1000
"""Number of the first problem on which nothing was chosen."""

RIDGE = 10.0
"""Prior variance of coefficients, so that they stay finite where few calls end lower."""

LAWS: tuple[Any, ...] = (
    "gaussian",
    "poisson",
    {"name": "multinomial", "n_classes": 3},
    "negative-binomial",
    {"name": "student-t", "dof": 5.0},
    "gamma",
    "zero-inflated-poisson",
    {"name": "ordinal", "n_classes": 4},
    "gaussian",
    "log-normal",
    "beta",
    {"name": "binomial", "trials": 6},
    "weibull",
    "hurdle-poisson",
    {"name": "multinomial", "n_classes": 2},
    {"name": "multivariate-gaussian", "responses": 2},
    "gaussian",
    "inverse-gaussian",
    "geometric",
    "zero-inflated-negative-binomial",
    "exponential",
    {"name": "multinomial", "n_classes": 4},
    "truncated-poisson",
    "hurdle-negative-binomial",
)
"""Likelihoods of the problems in turn; the commonest come several times."""

GATES = ("softmax",) * 7 + ("dense-to-sparse", "laplace", "sigmoid")


def families(number: int) -> tuple[Any, Any, int, int, np.random.Generator]:
    """Families of the truth and of the fit, rows, and a generator, of a problem."""
    law = LAWS[number % len(LAWS)]
    rng = np.random.default_rng([65, number])
    n, d = int(10.0 ** rng.uniform(2.2, 3.4)), int(rng.integers(1, 4))
    k = int(rng.choice([2, 2, 3, 3, 4]))
    more = int(rng.choice([-1, 0, 0, 0, 1]))
    gate = str(rng.choice(GATES)) if number % 3 == 0 else "softmax"
    options = dict(law) if isinstance(law, dict) else {"name": law}
    sizes = {"n_classes": options.pop("n_classes")} if "n_classes" in options else {}
    name: Any = options if len(options) > 1 else options["name"]

    def of(experts: int) -> Any:
        return moestat.family(name, gate=gate, n_experts=experts, n_features=d, **sizes)

    fitted = of(min(max(k + more, 2), 4))
    size = fitted.n_free_params
    return of(k), fitted, max(min(n, int(WORK / size**2)), 6 * size), d, rng


def synthetic(number: int) -> dict[str, Any]:
    """A problem with a truth: a typical one, moved at random, or one of normal coefficients."""
    true, fitted, n, _, rng = families(number)
    blocks = true.unpack(true.typical(rng))
    if rng.random() < 0.5:
        own = true.unpack(rng.standard_normal(true.n_params))
        steep = 2.0 if true.likelihood.link is None else 0.5
        blocks |= {name: 2.0 * own[name] for name in ("beta1", "b") if name in own}
        blocks |= {name: steep * own[name] for name in ("a",) if name in own}
    theta = true.pack(blocks)
    theta = theta + rng.uniform(0.0, 0.5) * rng.standard_normal(theta.size)
    lower, upper = true.box_at(theta)
    theta = true.pin(np.clip(theta, lower, upper))
    X, y = moestat.sample(true, theta, n, rng, design=moestat.Uniform(-2.0, 2.0))
    truth = theta if true.n_experts == fitted.n_experts else None
    drawn = {"name": f"{number}", "family": fitted, "X": X, "y": y, "truth": truth}
    return {**drawn, "true": true, "theta": theta}


def watch(seen: list[SearchRecord]) -> None:
    """Let every search add what it has seen to a list."""
    find_starts = Agreement.find_starts

    def watched(self: Any, problem: Any, rng: Any, own: Any = None) -> Any:
        own = own or SearchRecord()
        seen.append(own)
        return find_starts(self, problem, rng, own)

    Agreement.find_starts = watched  # type: ignore[method-assign]


def plain(height: float) -> float | None:
    """A height for JSON."""
    return round(float(height), 4) if np.isfinite(height) else None


def called(
    case: dict[str, Any], seed: int, seen: list[SearchRecord], options: dict[str, Any]
) -> dict[str, Any]:
    """A default call with these options: its end, and what its search saw."""
    seen.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.process_time()
        data = case["family"], case["X"], case["y"]
        result = moestat.fit(*data, rng=seed, threads=1, **options)
        seconds = time.process_time() - began
    certificate, family = result.certificate, case["family"]
    encoded = family.likelihood.encode(np.asarray(result.rows.y), family.n_classes)
    shares = family.rowwise(result.theta, case["X"], encoded)[1]
    own = seen[0]
    return {
        "seed": seed,
        "height": plain(result.log_posterior),
        "p": certificate.p_higher,
        "certified": certificate.certified,
        "collapsed": len(certificate.collapsed),
        "active": len(certificate.active),
        "said": sorted({w.category.__name__ for w in said}),
        "starts": certificate.n_starts,
        "agreement": round(certificate.agreement, 4),
        "optima": certificate.n_optima,
        "pool": [plain(height) for height in own.pool],
        "ends": [plain(height) for height in own.ends],
        "overlap": round(float(1.0 - shares.max(axis=0).mean()), 4),
        "smallest": round(float(shares.mean(axis=1).min()), 4),
        "seconds": round(seconds, 3),
    }


def looks(case: dict[str, Any], seconds: float, options: dict[str, Any]) -> dict[str, Any]:
    """How high other looks come: more starts, where calls are quick, and from the truth."""
    rules: dict[str, Any] = {"sixty": {"n_starts": 60}} if seconds < QUICK else {}
    if case["truth"] is not None:
        rules["truth"] = {"starts": [GivenStarts([case["truth"]])]}
    found = {}
    for name, rule in rules.items():
        data = case["family"], case["X"], case["y"]
        result = moestat.fit(*data, rng=99, threads=1, **options, **rule)
        sound = result.certificate.certified and not result.certificate.collapsed
        found[name] = [plain(result.log_posterior), bool(sound)]
    return found


def record_of(
    case: dict[str, Any], seen: list[SearchRecord], options: dict[str, Any]
) -> dict[str, Any]:
    """The line of a problem."""
    family = case["family"]
    calls = [called(case, seed, seen, options) for seed in range(SEEDS)]
    return {
        "name": case["name"],
        "likelihood": family.likelihood.name,
        "gate": family.gate.name,
        "n": len(case["y"]),
        "d": family.n_features,
        "k": family.n_experts,
        "K": family.n_classes,
        "P": family.n_free_params,
        "calls": calls,
        "looks": looks(case, sum(call["seconds"] for call in calls), options),
    }


def cases(numbers: range, real: bool, known: set[str]) -> Iterator[dict[str, Any]]:
    """Problems that are not known yet."""
    if real:
        from search import real as sets

        for case in sets("softmax"):
            name, size = f"real {case.name}", case.family.n_free_params
            if name not in known:
                most = max(int(WORK / size**2), 6 * size)
                rows = slice(None, None, max(1, round(len(case.y) / most)))
                data = {"X": case.X[rows], "y": case.y[rows]}
                yield {"name": name, "family": case.family, **data, "truth": None}
        return
    for number in numbers:
        if f"{number}" not in known:
            yield synthetic(number)


def lines_of(path: Path) -> list[str]:
    """The lines of a compressed file."""
    with gzip.open(path, "rt") as file:
        return file.read().splitlines()


def collect(
    path: Path, numbers: range, minutes: float, real: bool, options: dict[str, Any]
) -> None:
    """Add lines of problems until they are so many, or so much time is over."""
    lines = lines_of(path) if path.exists() else []
    known = {json.loads(line)["name"] for line in lines}
    seen: list[SearchRecord] = []
    watch(seen)
    warnings.simplefilter("ignore")
    until = time.monotonic() + 60.0 * minutes
    for case in cases(numbers, real, known):
        try:
            record = record_of(case, seen, options)
        except ValueError as error:  # data that a law refuses, such as an absent class
            print(case["name"], error, flush=True)
            continue
        with gzip.open(path, "at") as file:
            file.write(json.dumps(record) + "\n")
        heights = [call["height"] for call in record["calls"]]
        print(record["name"], record["likelihood"], heights, record["looks"], flush=True)
        if time.monotonic() > until:
            return


def is_fresh(record: dict[str, Any]) -> bool:
    """Whether a problem is one on which nothing was chosen."""
    return record["name"].isdigit() and int(record["name"]) >= FRESH


def calls_of(path: Path, fresh: bool = False) -> list[dict[str, Any]]:
    """Certified calls: problem, stops, what they say, and whether they warned of disagreement."""
    found = []
    for place, line in enumerate(lines_of(path)):
        record = json.loads(line)
        if is_fresh(record) != fresh:
            continue
        sound = [call for call in record["calls"] if call["certified"] and not call["collapsed"]]
        known = [call["height"] for call in sound]
        known += [height for height, good in record["looks"].values() if good]
        for call in sound:
            found.append(
                {
                    "problem": place,
                    "real": record["name"].startswith("real"),
                    "likelihood": record["likelihood"],
                    "stops": stops_of(call, record["k"], max(known)),
                    "searched": bool(call["ends"]),
                    "says": call.get("p"),
                    "warned": "DisagreementWarning" in call["said"],
                }
            )
    return found


def stops_of(call: dict[str, Any], k: int, best: float) -> list[tuple[np.ndarray, bool]]:
    """Where a call can stop, the last one where it did: covariates, and is a higher one known.

    That is after each of its searches; where most starts of the pool agreed, at its end alone.
    """
    seen = SearchRecord([as_height(height) for height in call["pool"]])
    reached = call["starts"] * call["agreement"]
    last = covariates(seen, k, reached, call["starts"]), best - call["height"] > SAME_HEIGHT
    ends = np.array([as_height(height) for height in call["ends"]])
    stops = []
    for count in range(1, len(ends)):
        top = ends[:count].max()
        again = int(np.sum(ends[:count] >= top - SAME_HEIGHT))
        # Heights of a search lack a constant of the units, which the last one shows.
        lower = (best - call["height"]) + (ends.max() - top) > SAME_HEIGHT
        stops.append((covariates(seen, k, again, count), bool(lower)))
    return [*stops, last]


def as_height(value: float | None) -> float:
    """A height from JSON."""
    return -np.inf if value is None else value


def fitted(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients of a logistic regression, with a ridge of variance RIDGE but for the first."""
    beta, ridge = np.zeros(Z.shape[1]), np.eye(Z.shape[1]) / RIDGE
    ridge[0, 0] = 0.0
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-Z @ beta))
        step = (Z * (p * (1.0 - p))[:, None]).T @ Z + ridge
        beta -= np.linalg.solve(step, Z.T @ (p - y) + ridge @ beta)
    return beta


def bins_of(p: np.ndarray, y: np.ndarray) -> list[list[float]]:
    """Ten bins of equally many calls: mean of p, share with a higher maximum, its 95% band, calls.

    The band is the central 95% of the binomial law at the mean of p.
    """
    from scipy.stats import binom

    found = []
    for part in np.array_split(np.argsort(p, kind="stable"), 10):
        low, high = binom.interval(0.95, part.size, p[part].mean())
        share = [p[part].mean(), y[part].mean(), low / part.size, high / part.size]
        found.append([*map(float, share), float(part.size)])
    return found


class Judged(NamedTuple):
    """Calls of today's default on problems that no coefficient was fitted on."""

    what: str
    p: np.ndarray  # (m,): the probability that each says
    y: np.ndarray  # (m,): 1 where a higher maximum is known
    warned: np.ndarray  # (m,): whether it warned of disagreement

    @property
    def bins(self) -> list[list[float]]:
        """See `bins_of`."""
        return bins_of(self.p, self.y)

    @property
    def lines(self) -> list[str]:
        """Its part of the page."""
        vain = int((self.warned & (self.y == 0.0)).sum())
        silent = int((~self.warned & (self.y == 1.0)).sum())
        inside = sum(low <= share <= high for _, share, low, high, _ in self.bins)
        return [
            f"{self.what}: {self.p.mean():.1%} said and {self.y.mean():.1%} known in the mean;"
            f" {inside} of 10 bins within their band. {vain} calls warn of disagreement in vain,"
            f" {int((self.warned & (self.y == 1.0)).sum())} rightly, and {silent} end lower without"
            " this warning.",
            "",
            "| calls say | a higher one is known | 95% band | calls |",
            "|---|---|---|---|",
            *map(row_of, self.bins),
            "",
        ]


def simulated(path: Path, kind: str = "certified default calls") -> Judged:
    """Calls on the simulated problems from number FRESH on, of this kind in words."""
    calls = [call for call in calls_of(path, fresh=True) if call["says"] is not None]
    problems, laws = ({call[key] for call in calls} for key in ("problem", "likelihood"))
    return Judged(
        f"{len(calls):,} {kind} on {len(problems)} simulated problems of {len(laws)} likelihoods",
        np.array([call["says"] for call in calls]),
        np.array([float(call["stops"][-1][1]) for call in calls]),
        np.array([call["warned"] for call in calls]),
    )


def drawn_sets() -> Judged:
    """The default calls of benchmarks/fresh_sets.py on real data."""
    lines = [json.loads(line) for line in (HERE / "fresh_sets.jsonl").read_text().splitlines()]
    calls = [each for each in judged(lines) if each.risk is None and each.call["probability"]]
    return Judged(
        f"{len(calls):,} default calls on {len({each.name for each in calls})} real data sets that"
        " were drawn at random (fresh_sets.md; the risk was compared with others on half of them)",
        np.array([each.call["probability"] for each in calls]),
        np.array([float(each.is_lower) for each in calls]),
        np.array(["DisagreementWarning" in each.call["kinds"] for each in calls]),
    )


def row_of(one_bin: list[float]) -> str:
    """The row of a bin."""
    said, share, low, high, count = one_bin
    return f"| {said:.1%} | {share:.1%} | {low:.1%} to {high:.1%} | {count:.0f} |"


def picture(groups: dict[str, Judged]) -> Figure:
    """What calls say beside what is known, with the band of the binomial law."""
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0.0, 0.8], [0.0, 0.8], color="0.6", linewidth=0.8)
    for (name, group), marker in zip(groups.items(), "os", strict=True):
        said, known, low, high, _ = np.array(group.bins).T
        (line,) = axes.plot(said, known, marker, label=name)
        axes.vlines(said, low, high, color=line.get_color(), alpha=0.35)
    axes.set(xlabel="probability that calls say", ylabel="share with a higher maximum known")
    axes.legend(frameon=False, title="ten bins each; bars: 95% of the binomial law")
    plain_axes(axes)
    return figure


def probabilities(Z: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Of a higher maximum, at covariates (m, p)."""
    return 1.0 / (1.0 + np.exp(-Z @ beta))


def stopped(calls: list[dict[str, Any]], beta: np.ndarray, risk: float) -> list[str]:
    """A row of the page: where calls that searched would have stopped, had they accepted a risk."""
    searches, said, known = list[int](), list[float](), list[bool]()
    for call in calls:
        p = probabilities(np.array([Z for Z, _ in call["stops"]]), beta)
        at = np.flatnonzero(p <= risk)
        searches.append(int(at[0]) if at.size else len(p) - 1)
        said.append(float(p[searches[-1]]))
        known.append(call["stops"][searches[-1]][1])
    early = np.array(said) <= risk
    shares = [np.array(each)[early].mean() if early.any() else np.nan for each in (said, known)]
    of_early = [f"{share:.1%}" if early.any() else "" for share in shares]
    return [f"{np.mean(searches) + 1:.2f}", f"{np.mean(known):.1%}", str(early.sum()), *of_early]


class Half(NamedTuple):
    """Coefficients from the problems of odd numbers, and all calls, to judge by the others."""

    calls: list[dict[str, Any]]
    stops: int  # number of stops that the coefficients are fitted to
    beta: np.ndarray  # (p,): the coefficients
    train: np.ndarray  # (m,): whether a call is of a problem that they are fitted to
    p: np.ndarray  # (m,): the probability where each call ended
    y: np.ndarray  # (m,): 1 where a higher maximum is known

    @classmethod
    def of(cls, calls: list[dict[str, Any]]) -> Half:
        """Fit the coefficients."""
        train = np.array([call["problem"] % 2 == 1 for call in calls])
        stops = [s for call, own in zip(calls, train, strict=True) if own for s in call["stops"]]
        beta = fitted(np.array([Z for Z, _ in stops]), np.array([float(low) for _, low in stops]))
        y = np.array([float(call["stops"][-1][1]) for call in calls])
        p = probabilities(np.array([call["stops"][-1][0] for call in calls]), beta)
        return cls(calls, len(stops), beta, train, p, y)

    def lines(self) -> list[str]:
        """The coefficients, and how calls of the other half are calibrated."""
        held = ~self.train
        bins = bins_of(self.p[held], self.y[held])
        inside = sum(low <= share <= high for _, share, low, high, _ in bins)
        others = self.p[held], self.y[self.train].mean()
        score = [np.mean((q - self.y[held]) ** 2) for q in others]
        return [
            f"Coefficients are fitted on {int(self.train.sum()):,} calls, each at its"
            f" {self.stops:,} possible stops in all, and judged on the {int(held.sum()):,} of the"
            " other half of the problems; calls of one problem are not independent, so bands of"
            " the binomial law are somewhat too narrow.",
            "",
            f"Coefficients (1, log heights of the pool, share that came to the best again):"
            f" {', '.join(f'{b:.3f}' for b in self.beta)}. Brier score {score[0]:.3f}, of the mean"
            f" alone {score[1]:.3f}. {inside} of 10 bins within their band.",
            "",
            "| calls say | a higher one is known | 95% band | calls |",
            "|---|---|---|---|",
            *map(row_of, bins),
        ]

    def stop_lines(self, risks: tuple[float, ...]) -> list[str]:
        """Where calls of the other half would have stopped by each risk."""
        held = zip(self.calls, self.train, strict=True)
        searched = [call for call, own in held if not own and call["searched"]]
        return [
            "",
            f"The {len(searched)} held-out calls that searched, had they stopped by the risk that"
            " is accepted:",
            "",
            "| risk | searches, mean | a higher one is known | stop by it | these say | and are |",
            "|---|---|---|---|---|---|",
            *[f"| {risk:g} | {' | '.join(stopped(searched, self.beta, risk))} |" for risk in risks],
        ]


def rule_lines(half: Half) -> list[str]:
    """How many held-out calls warn, and end lower without a warning, by some rules."""
    lines = ["", "Held-out calls that warn, and those that end lower in silence, by the rule:", ""]
    lines += ["| rule | warns | warns in vain | ends lower in silence |", "|---|---|---|---|"]
    warned, held, y = np.array([call["warned"] for call in half.calls]), ~half.train, half.y
    rules = {"one run alone reached the best (before)": warned}
    rules |= {
        f"probability above {level:g}": half.p > level for level in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    }
    for name, says in rules.items():
        counts = [int(says[held].sum()), int((says & (y == 0.0))[held].sum())]
        counts.append(int((~says & (y == 1.0))[held].sum()))
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return lines


def mode_lines(path: Path) -> list[str]:
    """The part of the page on posterior modes."""
    half = Half.of(calls_of(path))
    fresh = simulated(path, 'certified calls with `prior="weak"`, as they stop today,')
    problems, laws = ({call[key] for call in half.calls} for key in ("problem", "likelihood"))
    warned = sum(call["warned"] for call in half.calls)
    return [
        "",
        "## Posterior modes",
        "",
        *fresh.lines,
        f'{len(half.calls):,} certified calls with `prior="weak"` on {len(problems)} of the'
        f" simulated problems, of {len(laws)} likelihoods. {int(half.y.sum())} ended lower than the"
        f" highest mode that is known, and {warned} warned of disagreement.",
        "",
        *half.lines(),
        *half.stop_lines((0.0, 0.02, 0.05, 0.1, 0.15)),
    ]


def judge(path: Path, modes: Path) -> None:
    """Fit on one half of the problems, judge on the other, and write the page."""
    half = Half.of(calls_of(path))
    groups = {"simulated problems": simulated(path), "real data sets": drawn_sets()}
    with style():
        save_figure(picture(groups), ROOT / "figures" / "calibration.png")
    known = {call["problem"] for call in half.calls}
    real = {call["problem"] for call in half.calls if call["real"]}
    lines = [
        "# The probability of a higher maximum",
        "",
        "## Today's default on problems that no coefficient was fitted on",
        "",
        "![What calls say, and what is known](../../figures/calibration.png)",
        "",
        *[line for group in groups.values() for line in group.lines],
        "## The coefficients",
        "",
        f"{len(half.calls):,} certified default calls on {len(known)} problems"
        f" ({len(real)} of real data, the others of"
        f" {len({c['likelihood'] for c in half.calls})} likelihoods); see benchmarks/calibration.py"
        " for what they are. A higher maximum is known where another call of the problem, one with"
        " sixty starts, or the fit from the truth, ended more than .01 higher at a certified"
        " maximum without collapsed atoms: what none found is not in the shares.",
        "",
        *half.lines(),
        *rule_lines(half),
        *half.stop_lines((0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)),
        *mode_lines(modes),
    ]
    text = "\n".join(lines) + "\n"
    (HERE / "calibration.md").write_text(text)
    print(text)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect", "fit"))
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=50.0)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--modes", action="store_true")
    given = parser.parse_args()
    maxima, modes = HERE / "calibration.jsonl.gz", HERE / "calibration_modes.jsonl.gz"
    if given.command == "collect":
        numbers = range(given.first, given.first + given.problems)
        path, options = (modes, MODES) if given.modes else (maxima, MAXIMA)
        collect(path, numbers, given.minutes, given.real, options)
    else:
        judge(maxima, modes)


if __name__ == "__main__":
    main()
