"""Library calls with changed arguments: a clear error, or accepted and correct.

    python -m tests.chaos.calls --calls 1000

One or two arguments of a right call are replaced: by other things, by the same numbers in another
array, or by arrays with entries, rows or axes changed.  An error is clear if it is a
`ValueError` of one line that names an argument.  What is accepted is compared with densities
written in plain NumPy, with properties that the result must have, and, where the numbers are the
same, bit for bit with the call that was right.  Everything else is a failure: another exception, a
warning of another kind than moestat's own, ten seconds of computing, four gigabytes, a result that
is wrong.
"""

import argparse
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning
from moestat.rates.local_slopes import local_slopes
from moestat.solvers import make_solver
from moestat.sweep import SweepError, load_spec, open_store, parse_spec
from tests import oracle

SECONDS = 10
FATES = ("clear error", "accepted")
_LONGEST = 1000

VALUES = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**9)),
    *(0.0, -0.0, 0.5, 1.5, -2.5, 1e-320, 1e30, 1e308, -1e308, np.inf, -np.inf, np.nan, 1j),
    *("", "nope", "softmax", "D1", "\0", "[/]", "a\nb", b"bytes", "x" * 500),
    *([], {}, (), set(), [[]], [1, 2], [np.nan], ["a"], {"name": 3}, {"name": "nope"}, [None]),
    *(object(), datetime(2020, 1, 1), np.datetime64("2020-01-01"), np.float32(1.5), np.int8(3)),
    *(len, int, range(3), iter([1.0, 2.0]), np.array(2.0), np.zeros((0, 1)), np.zeros(3, "U3")),
    np.ma.array([1.0, 2.0], mask=[True, False]),
)
_ENTRIES = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e150, 1e-320, 0.0, -0.0, -1.0, 0.5, 1e9)


@dataclass(frozen=True)
class Call:
    """A right call.

    Parameters
    ----------
    function : callable
        What is called.
    arguments : mapping
        By name.
    check : callable
        ``check(result, arguments)``: what is wrong with an accepted result, or nothing.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    check: Callable[[Any, Mapping[str, Any]], str]


# -- what an accepted result must be ------------------------------------------------------------


def _floats(value):
    return np.asarray(value, dtype=float)


def _given(arguments):
    """Family, parameters, inputs (n, d), responses and weights, as plain arrays."""
    family = arguments["family"]
    X = _floats(arguments["X"]).reshape(-1, family.n_features)
    y = np.asarray(arguments["y"]) if "y" in arguments else None
    if y is not None:
        y = y.astype(float if family.likelihood.support is None else int)
    weight = arguments.get("sample_weight")
    weight = np.ones(len(X)) if weight is None else _floats(weight)
    return family, _floats(arguments["params"]), X, y, weight


def _close(found, expected, what):
    """Complaint unless `found` agrees with the plain computation where that one is finite."""
    found, expected = _floats(found), _floats(expected)
    if found.shape != expected.shape:
        return f"{what}: shape {found.shape}, expected {expected.shape}"
    known = np.isfinite(expected)
    scale = np.abs(expected[known]).max(initial=1.0)
    if np.isnan(found).any() and known.all():
        return f"{what}: NaN"
    if known.any() and np.abs(found[known] - expected[known]).max() > 1e-6 * scale:
        return f"{what}: {found[known]}, expected {expected[known]}"
    return ""


def _log_likelihood(result, arguments):
    family, theta, X, y, weight = _given(arguments)
    return _close(result, oracle.log_likelihood(family, theta, X, y, weight), "log-likelihood")


def _score(result, arguments):
    if max(np.abs(part).max() for part in _given(arguments)[1:4]) > 1e9:
        return "score: NaN" if np.isnan(result).any() else ""  # its complex step is too long
    return _close(result, oracle.score(*_given(arguments)), "score")


def _hessian(result, arguments):
    family, theta, X, y, weight = _given(arguments)
    step = 1e-5
    rows = [
        oracle.score(family, theta + step * unit, X, y, weight)
        - oracle.score(family, theta - step * unit, X, y, weight)
        for unit in np.eye(theta.size)
    ]
    expected = np.array(rows) / (2 * step)
    if max(np.abs(part).max() for part in (theta, X, y)) > 1e3 or not np.isfinite(expected).all():
        return "" if np.shape(result) == expected.shape else "hessian: shape"
    scale = np.abs(expected).max()
    return "" if np.abs(result - expected).max() <= 1e-3 * scale + 1e-3 else "hessian: wrong"


def _gates(result, arguments):
    family, theta, X, _, _ = _given(arguments)
    blocks = oracle.blocks_of(family, theta)
    return _close(result, oracle.weights(family, blocks, X).T, "gates")


def _responsibilities(result, arguments):
    family, theta, X, y, _ = _given(arguments)
    blocks = oracle.blocks_of(family, theta)
    joint = oracle.gate_scores(family, blocks, X)
    joint = joint + oracle.expert_log_densities(family, blocks, X, y)
    return _close(result, np.exp(joint - oracle.log_sum_exp(joint)).T, "responsibilities")


def _distance(result, arguments):
    if not (0.0 <= result.value <= 1.0 + 1e-12 and 0.0 <= result.error < np.inf):
        return f"a distance of {result}"
    same = arguments["family"] == arguments["truth_family"] and np.array_equal(
        _floats(arguments["theta"]), _floats(arguments["truth_theta"])
    )
    return f"{result} from itself" if same and result.value > 1e-6 else ""


def _l2(result, arguments):
    if arguments["design"] is not None:
        return ""
    x = (np.arange(20_000) + 0.5)[:, None] / 20_000
    one, other = (
        oracle.regression(arguments[family], _floats(arguments[theta]), x)
        for family, theta in (("family", "theta"), ("truth_family", "truth_theta"))
    )
    expected = np.sqrt(np.mean((one - other) ** 2))
    if not np.isfinite(expected):
        return ""
    ok = abs(result.value - expected) <= 1e-3 * expected + 2 * result.error + 1e-9
    return "" if ok else f"L2 distance {result}, expected {expected}"


def _information(result, arguments):
    if not np.isfinite(result).all():
        return "information: not finite"
    least = np.linalg.eigvalsh(result).min()
    symmetric = np.array_equal(result, result.T) or np.allclose(result, result.T)
    return "" if symmetric and least >= -1e-8 * np.abs(result).max() else "not positive"


def _sample(result, arguments):
    family, n = arguments["family"], arguments["n"]
    X, y = result[:2]
    if X.shape[1:] != (family.n_features,) or len(X) != len(y):
        return f"sample of shapes {X.shape}, {np.shape(y)}"
    weight = result[2] if len(result) == 3 else np.ones(len(X))
    if abs(weight.sum() - float(n)) > 1e-6 * max(float(n), 1.0):
        return f"{weight.sum()} samples, asked for {n}"
    return "" if np.isfinite(X).all() and np.isfinite(_floats(y)).all() else "sample: not finite"


def _compressed(result, arguments):
    weight = arguments["sample_weight"]
    total = len(np.asarray(arguments["y"])) if weight is None else _floats(weight).sum()
    ok = abs(result.weight.sum() - total) <= 1e-9 * total
    return "" if ok and np.isfinite(result.X).all() else "compress: weights do not add up"


def _fitted(result, arguments):
    family = result.family
    theta = result.theta
    if not (np.isfinite(theta).all() and np.isfinite(result.log_likelihood)):
        return "fit: not finite"
    weight = arguments.get("sample_weight")
    weight = np.ones(len(np.asarray(arguments["y"]))) if weight is None else _floats(weight)
    X = _floats(arguments["X"]).reshape(-1, family.n_features)
    y = np.asarray(arguments["y"]).reshape(len(arguments["y"]), -1)[:, 0]
    if not family.is_regression and y.dtype.kind == "f" and family.likelihood.support is None:
        expected = oracle.log_likelihood(family, theta, X, y, weight)
        return _close(result.log_likelihood, expected, "log-likelihood of the fit")
    return ""


def _rate(result, arguments):
    n, loss = np.log(_floats(arguments["n"])), np.log(_floats(arguments["loss"]))
    if not np.isfinite(result.slope):
        return "slope: not finite"
    # A weighted line through positive losses stays between the steepest pairs of points.
    order = np.argsort(n)
    rise, run = loss[order][:, None] - loss[order][None, :], n[order][:, None] - n[order][None, :]
    slopes = rise[run > 0] / run[run > 0]
    low, high = slopes.min(), slopes.max()
    slack = 1e-6 * max(abs(low), abs(high), 1.0)
    return "" if low - slack <= result.slope <= high + slack else f"slope {result.slope}"


def _family(result, arguments):
    same = result.n_experts == arguments["n_experts"]
    same &= result.n_features == arguments["n_features"]
    same &= result.theta_bounds is not None if hasattr(result, "theta_bounds") else True
    return "" if same else "family: not what was asked for"


def _loss(result, arguments):
    if not result >= 0.0:
        return f"a loss of {result}"
    same = arguments["estimate"] is arguments["truth"]
    return f"{result} from itself" if same and result != 0.0 else ""


def _any(result, arguments):
    """Nothing is known of the result but what the functions themselves check."""
    return ""


# -- the right calls -----------------------------------------------------------------------------


def calls():
    """The right calls, of small families and few rows."""
    rng = np.random.default_rng(5)
    gauss = moestat.family("gaussian", gate="softmax", n_experts=2)
    classes = moestat.family("multinomial", gate="sigmoid", n_experts=2, n_classes=3)
    squares = moestat.family("least-squares", gate="softmax", n_experts=2)
    X, found, at, y = rng.uniform(size=(40, 1)), [], {}, {}
    for f in (gauss, classes, squares):
        name = f.likelihood.name
        at[name] = np.clip(rng.normal(size=f.n_params), f.lower, f.upper)
        noise = 0.01 if f.is_regression else None
        y[name] = moestat.sample(f, at[name], 40, rng=1, noise=noise)[1]
    for f in (gauss, classes):
        theta = at[f.likelihood.name]
        given = {"family": f, "params": theta, "X": X, "y": y[f.likelihood.name]}
        weighted = {**given, "sample_weight": np.linspace(0.5, 2.0, 40)}
        gates = {"family": f, "params": theta, "X": X}
        two = {"family": f, "theta": theta, "truth_family": f, "truth_theta": theta * 0.9}
        two |= {"design": None, "n_nodes": 16}
        law = {"family": f, "theta": theta, "design": None}
        found += [
            Call(moestat.log_likelihood, weighted, _log_likelihood),
            Call(moestat.score, weighted, _score),
            Call(moestat.hessian, weighted, _hessian),
            Call(moestat.responsibilities, given, _responsibilities),
            Call(moestat.gate_probabilities, gates, _gates),
            Call(moestat.hellinger, two, _distance),
            Call(moestat.total_variation, two, _distance),
            Call(moestat.expected_information, {**law, "n_nodes": 16}, _information),
            Call(moestat.information_spectrum, {**law, "tolerance": 1e-12, "n_nodes": 16}, _any),
            Call(moestat.sample, {**law, "n": 30, "rng": 3, "noise": None}, _sample),
        ]
    lattice = {"family": classes, "theta": at["multinomial"], "n": 1000, "rng": 3, "noise": None}
    found.append(
        Call(moestat.sample_weighted, {**lattice, "design": moestat.Lattice(nodes=16)}, _sample)
    )
    measures = [classes.measure(at["multinomial"] * scale) for scale in (1.0, 0.9)]
    pair = {"estimate": measures[0], "truth": measures[1], "loss": "D1"}
    found.append(Call(moestat.voronoi_loss, pair, _loss))
    two = {"family": squares, "theta": at["least-squares"], "truth_family": squares}
    two |= {"truth_theta": at["least-squares"] * 0.9, "design": None, "n_nodes": 64}
    fits = {"solver": None, "starts": None, "sample_weight": None, "rng": 0, "threads": 1}
    fits |= {"n_starts": None, "time_limit": None, "compress": None}
    n = np.repeat([100.0, 1000.0, 10_000.0], 4)
    losses = n**-0.5 * np.exp(0.1 * rng.normal(size=12))
    of_rate = {"n": n, "loss": losses, "theory": -0.5, "n_bootstrap": 50, "rng": 0}
    pair = {"n": n, "loss": losses, "other_n": n, "other_loss": losses**0.9, "paired": True}
    options = {"gate": "softmax", "expert": "linear", "n_experts": 2, "n_features": 1}
    options |= {"n_classes": None, "bounds": None}
    atoms = {"masses": np.array([0.4, 0.6]), "atoms": {"a": np.array([0.0, 1.0])}}
    return [
        *found,
        Call(moestat.regression_error, two, _l2),
        Call(moestat.fit, {"family": gauss, "X": X, "y": y["gaussian"], **fits}, _fitted),
        Call(moestat.fit, {"family": squares, "X": X, "y": y["least-squares"], **fits}, _fitted),
        Call(moestat.fit_many, {"family": gauss, "data": [(X, y["gaussian"])], "rng": 0}, _any),
        Call(moestat.compress, {"X": X, "y": y["multinomial"], "sample_weight": None}, _compressed),
        Call(moestat.fit_rate, of_rate, _rate),
        Call(moestat.compare_rates, {**pair, "n_bootstrap": 50, "rng": 0}, _any),
        Call(local_slopes, {"n": n, "loss": losses}, _any),
        Call(moestat.family, {"likelihood": "gaussian", **options}, _family),
        Call(moestat.MixingMeasure, atoms, _any),
        Call(moestat.Lattice, {"low": 0.0, "high": 1.0, "nodes": 16, "step": 0.4}, _any),
        Call(moestat.Uniform, {"low": 0.0, "high": 1.0}, _any),
        Call(make_solver, {"options": {"name": "newton", "max_iterations": 5}}, _any),
        Call(moestat.load, {"path": "nowhere.npz"}, _any),
        Call(parse_spec, {"text": "title = 3"}, _any),
        Call(load_spec, {"path": "nowhere.toml"}, _any),
        Call(_opened, {"path": "nowhere.sqlite"}, _any),
    ]


def _opened(path):
    with open_store(path) as store:
        return store.statuses()


# -- changes -------------------------------------------------------------------------------------


def same_numbers(array, pick):
    """The same numbers in another kind of array."""
    strided = np.repeat(array, 2, axis=0)[::2]
    frozen = array.copy()
    frozen.flags.writeable = False
    return pick.choice(
        [
            array.tolist(),
            frozen,
            strided,
            np.asfortranarray(array),
            array.astype(array.dtype.newbyteorder()),
            np.ma.array(array),
            array.astype(object),
            array.astype(np.longdouble) if array.dtype.kind == "f" else array.astype(float),
        ]
    )


def other_numbers(array, pick):
    """An array with an entry, a row, an axis or its kind changed."""
    how = pick.randrange(12)
    changed = np.array(array, dtype=float)
    if how < 5:
        changed.flat[pick.randrange(changed.size)] = pick.choice(_ENTRIES)
        return changed
    return (
        changed[:-1],
        changed[:0],
        changed[..., None],
        changed.astype(complex) + 1j,
        changed.astype(str),
        changed * pick.choice((0.0, -1.0, 1e9, 1e150, 1e-150)),
        np.ma.array(changed, mask=np.arange(changed.size).reshape(changed.shape) == 0),
    )[how - 5]


def mutated(call, pick):
    """Changed arguments, the names of what was changed, and whether the numbers are the same."""
    arguments, names = dict(call.arguments), [pick.choice(sorted(call.arguments))]
    array = isinstance(arguments[names[0]], np.ndarray)
    if array and pick.random() < 0.3:
        arguments[names[0]] = same_numbers(arguments[names[0]], pick)
        return arguments, names, True
    others = sorted(set(call.arguments) - set(names))
    if others and pick.random() < 0.15:
        names.append(pick.choice(others))
    for name in names:
        value = arguments[name]
        if isinstance(value, np.ndarray) and pick.random() < 0.7:
            arguments[name] = other_numbers(value, pick)
        else:
            arguments[name] = pick.choice(VALUES)
    return arguments, names, False


def numbers_of(result):
    """Every number of a result, as arrays."""
    if isinstance(result, np.ndarray):
        return [result] if result.dtype.kind in "biuf" else []
    if isinstance(result, (bool, int, float, np.generic)):
        return [np.asarray(result)]
    if isinstance(result, Mapping):
        return [part for value in result.values() for part in numbers_of(value)]
    if isinstance(result, (list, tuple)):
        return [part for value in result for part in numbers_of(value)]
    if is_dataclass(result):
        names = [field.name for field in fields(result) if "seconds" not in field.name]
        return [part for name in names for part in numbers_of(getattr(result, name))]
    return []


def _clear(error, names):
    """Whether an error is one short line that names an argument."""
    message = str(error).replace("a\nb", "")  # a name of its own
    if "\n" in message or len(message) > _LONGEST:
        return False
    if isinstance(error, SweepError):
        return True
    words = "|".join(map(re.escape, names))
    return re.search(rf"(?i)^unknown |\b({words})\b", message) is not None


def fate(call, arguments, names, same):
    """What becomes of a call."""

    def stop(number, frame):
        raise TimeoutError

    given = ", ".join(f"{name}={' '.join(repr(arguments[name]).split()):.80}" for name in names)
    shown = f"{call.function.__name__}({given})"
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MoEWarning)
            result = call.function(**arguments)
    except (ValueError, SweepError) as error:
        clear = _clear(error, call.arguments)
        return "clear error" if clear else f"unclear: {shown}: {error!r:.300}"
    except OSError:
        return "clear error" if names == ["path"] else f"unclear: {shown}"
    except TimeoutError:
        return f"more than {SECONDS} s: {shown}"
    except Exception as error:
        trace = " ".join(traceback.format_exc(limit=-3).split())
        return f"{type(error).__name__}: {shown}: {trace[-600:]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if time.process_time() - began > SECONDS:
        return f"more than {SECONDS} s: {shown}"
    if same:
        pairs = zip(numbers_of(result), numbers_of(call.function(**call.arguments)), strict=True)
        if not all(np.array_equal(one, other, equal_nan=True) for one, other in pairs):
            return f"other numbers: {shown}"
    with np.errstate(all="ignore"):
        try:
            wrong = call.check(result, arguments)
        except Exception as error:
            return f"accepted {shown}, and cannot be checked: {error!r}"
    return f"wrong: {shown}: {wrong}" if wrong else "accepted"


def fates(number, seed=0, names=None):
    """How often each fate befell so many calls."""
    pick, found = random.Random(seed), Counter()
    right = [call for call in calls() if names is None or call.function.__name__ in names]
    for call in right:  # compiled before any clock runs
        with suppress(SweepError, FileNotFoundError):
            call.function(**call.arguments)
    for _ in range(number):
        call = pick.choice(right)
        found[fate(call, *mutated(call, pick))] += 1
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.calls")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", nargs="*", help="only these functions")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    found = fates(options.calls, options.seed, options.names)
    for which, times in found.most_common():
        print(f"{times} {which}")
    return 0 if set(found) <= set(FATES) else 1


if __name__ == "__main__":
    sys.exit(main())
