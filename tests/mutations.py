"""Which tuning constants of the solvers does anything notice?

    python -m tests.mutations [--compiled] [--neutral] [--tests] [MODULE_PART ...] [CONSTANT ...]

Every number named at the top of a module of the solvers, kernels and estimation, or in a record
there (``TRUST.accept``), is made thirty times larger and smaller (whole numbers: four times), one
after the other, and the fits of ``tests/solvers/test_costs.py`` run again, for estimation forty
default searches.  With ``--neutral`` it becomes 0 and next to infinite instead, which takes what it
limits away.  A constant is noticed when the passes of a case change by more than the slack of that
test, or the mean height of searches by more than 1, when a fit is not certified any more, or when
it raises.  With ``--tests`` the tests beside the module run, too, for those that the costs do not
notice.  Numbers inside compiled loops take ``--compiled``: a process and a compilation of its own
for each.

Not part of the test suite: it takes minutes.  A constant that nothing notices goes, or gets a test.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moestat
from moestat.solvers.rules import WorkRules

ROOT = Path(moestat.__file__).parent
FOLDERS = ("solvers", "kernels", "estimation")

COMPILED = {
    "rules": {
        *("TRUST.rounding", "TRUST.accept", "TRUST.smallest", "TRUST.largest", "TRUST.patience"),
        *("TRUST.poor", "TRUST.good", "TRUST.edge", "NEGLIGIBLE", "TINY", "HALVINGS"),
        *("BFGS.flatter", "RIDGE.close", "RIDGE.small", "RIDGE.smaller"),
    },
    "rows": {"_NEGLIGIBLE"},
    "cpu": {"SAMPLES"},
}
"""Constants that loops have read when they were compiled."""

NOT_TUNED = {
    *("ZEROS", "ONES", "OBSERVED", "COMPLETE", "EXPECTATION", "GROUP", "USED", "PAIR", "SIGN"),
    *("ROWS", "TILE", "INFORMED", "JUMP_SEARCH.seed", "_ROOT_2", "_CACHE_LINE", "_GRAM_SHAPE"),
    *("EPSILON", "BELOW_ONE", "HALF_OF_DIGITS", "DIFFERENCE_STEP"),
}
"""Names of columns, sizes of types, values of mathematics."""

MEMORY_AND_THREADS = {
    *("CHUNK", "SAMPLES", "LANES", "PRODUCTS", "_SIMULATED_MEMORY", "_TILES"),
    *("_SHARED_BYTES", "WORKSPACE_BYTES", "_CHUNK", "_SUM_THREADS", "_MOST_PROBLEMS", "GRAM_TILE"),
    *("TILES", "CACHED", *(f"WORK.{field}" for field in WorkRules._fields)),
}
"""Sizes of blocks: they change seconds and memory, which the benchmarks measure, not passes."""

LONGEST = 60.0
"""Seconds of processor time after which a case does not end."""

CASES = {
    "search": ("search",),
    "levenberg": ("levenberg",),
    "gauss_newton": ("gauss-newton",),
    "moment_squares": ("moment-squares",),
    "squares": ("levenberg", "gauss-newton", "moment-squares"),
    "base": ("levenberg", "gauss-newton"),
    "squarem": ("squarem",),
    "em": ("em", "squarem"),
    "kinks": ("kinks",),
    "merging_atoms": ("moment",),
    "newton": ("newton", "em", "squarem"),
}
"""Which cases a module concerns, by a part of its name; all of them where none fits."""


def constants(module: str) -> Iterator[tuple[str, Any]]:
    """Names and values of a module's numbers, and of tuples of numbers."""
    loaded = importlib.import_module(module)
    for node in ast.parse(Path(str(loaded.__file__)).read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        for target in ast.walk(node.targets[0]):
            if isinstance(target, ast.Name) and target.id.upper() == target.id:
                value = getattr(loaded, target.id)
                named = {target.id: value}
                if hasattr(value, "_asdict"):
                    named = {f"{target.id}.{field}": v for field, v in value._asdict().items()}
                for name, each in named.items():
                    numbers = each if isinstance(each, tuple) else (each,)
                    if numbers and all(type(v) in (int, float) for v in numbers):
                        yield name, each


def mutants(value: Any, neutral: bool = False) -> list[Any]:
    """A value much larger and much smaller, or next to infinite and 0."""
    if isinstance(value, tuple):
        return [tuple(mutants(v, neutral)[side] for v in value) for side in (0, 1)]
    if neutral:
        return [10**6, 0] if isinstance(value, int) else [1e300, 0.0]
    if isinstance(value, int):
        return [4 * value, value // 4 if value > 3 else 0]
    return [30.0 * value, value / 30.0]


def put(module: str, name: str, value: Any) -> None:
    """Set a constant in its module and wherever it was imported to."""
    name, _, field = name.partition(".")
    before = getattr(sys.modules[module], name)
    value = before._replace(**{field: value}) if field else value
    for key, loaded in list(sys.modules.items()):
        if key.startswith(("moestat.", "tests.")) and getattr(loaded, name, None) is before:
            setattr(loaded, name, value)


def searches(name: str, **options: Any) -> Iterator[Any]:
    """Default calls on small data sets; what a search ends short of is passes below."""
    for seed in range(20):
        family = moestat.family(name, gate="softmax", n_experts=3, n_features=2, **options)
        theta = family.pin(2.0 * np.random.default_rng(seed).normal(size=family.n_params))
        theta = np.clip(theta, family.lower, family.upper)
        X, y = moestat.sample(family, theta, 400, rng=seed, design=moestat.Uniform(-2, 2))
        yield moestat.fit(family, X, y, rng=seed, threads=1)


SEARCHES = {
    "searches, numbers": (partial(searches, "gaussian"), 0.0),
    "searches, classes": (partial(searches, "multinomial", n_classes=3), 0.0),
}
"""Twenty searches each, for constants of estimation, and what they are for: their mean height."""

HEIGHT = 1.0
"""Change of the mean height of searches, in units of log-likelihood, that is one."""


def costs(module: str) -> dict[str, float]:
    """Passes of the cases that a module concerns; NaN where a fit fails or is not certified."""
    from tests.solvers.test_costs import CASES as FITS
    from tests.solvers.test_costs import UNCERTIFIED

    parts = next((found for key, found in CASES.items() if key in module), ("",))
    passes = {}
    for case, (fits, _) in (SEARCHES if "estimation" in module else FITS).items():
        if not any(part in case for part in parts):
            continue
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
        try:
            found = list(fits())
        except Exception:
            passes[case] = float("nan")
            continue
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        good = case in UNCERTIFIED or all(fit.certificate.certified for fit in found)
        total = sum(fit.certificate.passes for fit in found)
        if case in SEARCHES:
            good, total = True, float(np.mean([fit.log_likelihood for fit in found]))
        passes[case] = total if good else float("nan")
    return passes


def noticed(before: dict[str, float], after: dict[str, float]) -> str:
    """What the costs say: the largest change, or a failure; empty when nothing of note."""
    from tests.solvers.test_costs import DEARER

    worst = ""
    largest = DEARER - 1.0
    for case, passes in before.items():
        if case in SEARCHES:
            gained = after[case] - passes
            worst = worst or (f"{case}: {gained:+.2f}" if abs(gained) > HEIGHT else "")
            continue
        change = after[case] / passes - 1.0
        if change != change:
            return f"{case}: fails"
        if abs(change) > largest:
            largest, worst = abs(change), f"{case}: {change:+.0%} passes"
    return worst


def tests_notice(module: str) -> str:
    """The first test beside a module that fails in this process."""
    folder = Path(__file__).parent / module.split(".")[1]
    stem = module.rsplit(".", 1)[1]
    files = [path for path in sorted(folder.glob("test_*.py")) if stem in path.stem]
    if "merging_atoms" in module:
        files = [folder / "test_moment_newton.py"]
    if (
        not files
        or pytest.main(["-x", "-q", "--no-header", "-m", "not slow", *map(str, files)]) == 0
    ):
        return ""
    return f"a test of {files[0].name}"


def compiled_anew(module: str, name: str, value: Any) -> str:
    """As `noticed`, in a process and a cache of its own."""
    program = (
        f"import moestat, tests.mutations as m, {module}\n"
        f"m.put({module!r}, {name!r}, {value!r})\n"
        f"print(m.costs({module!r}))"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MOESTAT_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        return "an error"
    return noticed(costs(module), eval(done.stdout.splitlines()[-1], {"nan": float("nan")}))


def _give_up(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    """Print a row for each constant and mutation."""
    signal.signal(signal.SIGVTALRM, _give_up)
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="MODULE_PART or CONSTANT")
    parser.add_argument("--neutral", action="store_true", help="0 and next to infinite")
    parser.add_argument("--compiled", action="store_true", help="those inside compiled loops")
    parser.add_argument("--tests", action="store_true", help="tests beside the module, too")
    options = parser.parse_args()
    named = {part for part in options.parts if part.partition(".")[0].isupper()}
    asked = [part for part in options.parts if part not in named]
    paths = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))]
    for path in paths:
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        if "cuda" in module or not any(part in module for part in asked or [""]):
            continue
        before: dict[str, float] = {}
        for name, value in constants(module):
            if name in NOT_TUNED | MEMORY_AND_THREADS or (named and name not in named):
                continue
            if (name in COMPILED.get(path.stem, ())) != options.compiled:
                continue
            for mutant in mutants(value, options.neutral):
                if options.compiled:
                    found = compiled_anew(module, name, mutant)
                else:
                    before = before or costs(module)
                    put(module, name, mutant)
                    try:
                        found = noticed(before, costs(module))
                        if not found and options.tests:
                            found = tests_notice(module)
                    finally:
                        put(module, name, value)
                print(f"{path.stem:20s} {name:24s} {mutant!s:28.28s} {found or '-'}", flush=True)


if __name__ == "__main__":
    main()
