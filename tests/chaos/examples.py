"""Right calls of every public function: those of the examples in the documentation.

The examples run under a profiler that keeps a copy of the arguments of each public function and
method that they call, so that what has an example is tried without a word written here.
"""

from __future__ import annotations

import contextlib
import copy
import doctest
import importlib
import inspect
import io
import os
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.pages import topics
from tests.chaos.kinds import SPECS

_SLOW = 4.0
"""Seconds of processor time from which on an example is too slow to be tried a hundred times."""

_PER_FUNCTION = 3
_SPECIAL = ("__init__", "__call__", "forward")


_MORE = """
>>> import numpy as np, pandas as pd, moestat, torch
>>> from moestat import datasets, estimation, networks, solvers, starts, sweep
>>> from moestat.networks import smoe
>>> from moestat.networks.smoe.metrics import expert_change_rate, observe_routing, swapped_top
>>> rng = np.random.default_rng(0)
>>> x = rng.uniform(-2, 2, (80, 1))
>>> y = np.where(x[:, 0] > 0, 2 * x[:, 0], -x[:, 0]) + 0.3 * rng.normal(size=80)
>>> frame = pd.DataFrame({"age": x[:, 0], "pay": y, "sex": np.where(y > 0.5, "f", "m")})
>>> r = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
>>> one = moestat.fit("gaussian", x, y, n_experts=1, rng=0)
>>> c = moestat.fit("multinomial", x, frame.sex, n_experts=1, rng=0)
>>> named = moestat.fit_formula("pay ~ age", frame, n_experts=1, rng=0)
>>> for result in (r, c, named):
...     conf = result.conf_int(alpha=0.1)
>>> p = r.get_prediction(x[:4])
>>> ends = p.prediction_interval(alpha=0.1), p.summary_frame(alpha=0.1), p.conf_int(alpha=0.1)
>>> new = named.predict(frame[:3], which="mean"), named.get_prediction(frame[:3])
>>> q = r.predict(x[:3], which="quantile", q=[0.1, 0.9]), r.predict(x[:3], "cdf", y=y[:3])
>>> pp = c.predict_proba(x[:3]), c.predict(x[:3], which="class", y=None, q=0.5, groups=None)
>>> s = r.score_samples(X=x[:3], y=y[:3]), r.simulate(X=x[:3], rng=0)
>>> res = r.quantile_residuals(0, X=x[:3], y=y[:3])
>>> b = moestat.bootstrap(one, n_resamples=10, kind="pairs", groups=None, rng=0, threads=1)
>>> ci = b.conf_int(alpha=0.1, method="percentile"), b.cov_params()
>>> t = moestat.bootstrap_lrt(one, r, n_resamples=4, rng=0)
>>> sel = moestat.select("gaussian", x, y, [1, 2], rng=0)
>>> seln = moestat.select(family="gaussian", X=frame[["age"]], y=frame.pay, k=[1], rng=0)
>>> pr = moestat.profile(one, "a[0,0]")
>>> w = moestat.fit("gaussian", x, y, n_experts=2, sample_weight=np.ones(80), rng=0, n_starts=4,
...     time_limit=5.0, threads=1, compress=None, prior=None, groups=None, classes=None,
...     missing="raise", gate="softmax", expert="linear", bounds=None, gate_inputs=[0],
...     expert_inputs=[0], offset=None, equal=())
>>> gg = moestat.fit("gaussian", x, y, n_experts=1, groups=np.repeat(range(20), 4), rng=0)
>>> tables = moestat.fit("gaussian", frame[["age"]], frame.pay, n_experts=1, rng=0)
>>> many = moestat.fit_many(r.family, [(x, y), (x, y)], sample_weights=[None, np.ones(80)], rng=0)
>>> bl = moestat.fit_blocks(moestat.family("gaussian", n_experts=1),
...     moestat.Blocks(lambda i: (x[i::2], y[i::2]), 2), rng=0)
>>> F = r.family
>>> at = [(F.mean(F.pack(r.blocks), x[:3]), F.gate_probabilities(r.theta, x[:3]))]
>>> for rule in (starts.RandomStarts(count=1), starts.SplitStarts(count=1, noise=0.5),
...              starts.ClusterStarts(count=1, steps=3, threads=1),
...              starts.SoftClusterStarts(count=1, steps=3, threads=1),
...              starts.TruthStarts(F, r.theta, count=1, noise=0.1, decay=0.0),
...              starts.MeasureStarts(F, r.theta, count=1, noise=0.1, decay=0.0)):
...     again = moestat.fit(F, x, y, starts=[rule], rng=0)
>>> for solver in (solvers.EM(), solvers.SQUAREM(), solvers.Newton(), solvers.QuasiNewton()):
...     again = moestat.fit(F, x, y, solver=solver, starts=[starts.SplitStarts(2)], rng=0)
>>> law = networks.PatchLaw(n_clusters=2, n_features=6, n_patches=4, scale=10.0)
>>> d = law.sample(20, rng=0)
>>> net = networks.Network(expert="mlp", n_experts=3, n_neurons=2, activation="cubic")
>>> trained = networks.train(net, d, 3, optimiser=networks.GradientDescent(), rng=0)
>>> seen = [f(net, trained.weights, d) for f in (networks.evaluate, networks.expert_errors)]
>>> again = networks.train(network=net, data=d, n_steps=2, start=trained.weights, rng=0)
>>> entropy = networks.dispatch_entropy([[3, 4], [5, 6]])
>>> noise = networks.uniform_noise(1, 0, 3, 4)
>>> other = networks.Weights(trained.weights.experts, trained.weights.router)
>>> data = networks.PatchData(**{k: v for k, v in vars(d).items() if k in
...     networks.PatchData.__dataclass_fields__})
>>> torch.set_num_threads(1)
>>> tokens = torch.randn(6, 8)
>>> kinds = [smoe.SMoE, smoe.CompetitionMoE, smoe.CompeteSMoE]
>>> for make in kinds:
...     layer = make(smoe.MLPExperts(3, 8, 4, 8), smoe.SoftmaxRouter(8, 3), top_k=2)
...     out = layer(tokens)
...     loss = smoe.auxiliary_loss(layer)
>>> for router in (smoe.CosineRouter(8, 3), smoe.FixedRouter(8, 3), smoe.StableRouter(8, 3)):
...     out = router(tokens)
>>> for experts in (smoe.LinearExperts(3, 8, 8), smoe.GatedExperts(3, 8, 4, 8)):
...     layer = smoe.SMoE(experts, smoe.SoftmaxRouter(8, 3), top_k=1)
...     out = layer(tokens)
>>> spec = sweep.parse_spec(text)
>>> cells = sweep.plan_cells(spec)
>>> record = sweep.run_cell(text, cells[-1])
>>> with sweep.create_store("more.sqlite", spec) as store:
...     done = list(sweep.run_cells(spec, store, sweep.open_cells(spec, store), executor="serial"))
...     found = sweep.summarise(store), sweep.status_of(store), sweep.verify(store)
...     same = sweep.compare_curves(store, "newton", store, "em")
>>> merged = sweep.merge("merged.sqlite", ["more.sqlite"])
>>> curves = pd.Series([10, 10, 100, 100, 1000, 1000])
>>> rate = moestat.fit_rate(n=curves, loss=curves**-0.5, theory=-0.5, n_bootstrap=20, rng=0)
"""
"""Calls of what has no example of its own, or only with few of its arguments."""


@dataclass(frozen=True)
class Example:
    """A call that an example makes; `make` gives the function and fresh arguments."""

    name: str
    owner: Any
    arguments: dict[str, Any]
    extra: tuple[Any, ...] = ()

    @property
    def function(self) -> Any:
        """What is called, with fresh copies of whatever it may change."""
        if self.owner is None:
            return self._plain
        return getattr(_copied(self.owner), self.name.rpartition(".")[2])

    @property
    def _plain(self) -> Any:
        module, _, qualified = self.name.partition(":")
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
        return found

    def fresh(self) -> dict[str, Any]:
        """Copies of the arguments."""
        return {name: _copied(value) for name, value in self.arguments.items()}


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def public() -> dict[Any, str]:
    """Code object -> ``module:name`` of public functions, and of methods of public classes."""
    found: dict[Any, str] = {}
    for things in topics().values():
        for thing in things.values():
            if inspect.isclass(thing):
                for base in thing.__mro__:
                    if base.__module__.startswith("moestat"):
                        found |= _methods(base)
            elif inspect.isfunction(thing):
                found[inspect.unwrap(thing).__code__] = f"{thing.__module__}:{thing.__qualname__}"
    return found


def _methods(owner: type) -> dict[Any, str]:
    found = {}
    for key, member in vars(owner).items():
        own = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(own) and (key in _SPECIAL or not key.startswith("_")):
            found[own.__code__] = f"{owner.__module__}:{owner.__qualname__}.{key}"
    return found


def modules() -> list[Any]:
    """The modules in which public names are."""
    homes = {name.partition(":")[0] for name in public().values()}
    return [importlib.import_module(name) for name in sorted(homes)]


class _Recorder:
    """The profiler: keeps calls that come from an example, not from the library."""

    def __init__(self, known: dict[Any, str]) -> None:
        self.known, self.found = known, dict[str, list[Example]]()

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code not in self.known:
            return
        outer = frame.f_back
        while outer is not None and not outer.f_code.co_filename.startswith("<doctest"):
            own = str(outer.f_globals.get("__name__", "")).startswith("moestat")
            if own and not outer.f_code.co_filename.endswith("door.py"):
                return
            outer = outer.f_back
        if outer is None:
            return
        sys.setprofile(None)
        try:
            self._keep(frame)
        finally:
            sys.setprofile(self)

    def _keep(self, frame: Any) -> None:
        name = self.known[frame.f_code]
        calls = self.found.setdefault(name, [])
        if len(calls) >= _PER_FUNCTION:
            return
        given = inspect.getargvalues(frame)
        arguments = {key: _copied(given.locals[key]) for key in given.args}
        extra = tuple(map(_copied, given.locals[given.varargs])) if given.varargs else ()
        if given.keywords:
            arguments |= {k: _copied(v) for k, v in given.locals[given.keywords].items()}
        owner = arguments.pop("self", arguments.pop("cls", None))
        if name.endswith(".__init__"):
            name, owner = name.removesuffix(".__init__"), None
        calls.append(Example(name, owner, arguments, extra))


def examples(names: list[str] | None = None) -> list[Example]:
    """A few calls of each public function that has an example, quick ones only."""
    recorder, finder = _Recorder(public()), doctest.DocTestFinder(exclude_empty=True)
    tests = [
        test
        for module in modules()
        if names is None or any(name in module.__name__ for name in names)
        for test in finder.find(module, module.__name__)
        if test.examples
    ]
    more = doctest.DocTestParser().get_doctest(_MORE, {"text": SPECS["fit"]}, "more", None, 0)
    here, wrong = Path.cwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for test in tests if names else (*tests, more):
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
                with contextlib.redirect_stdout(io.StringIO()):
                    sys.setprofile(recorder)
                    try:
                        runner.run(test, out=wrong.write if test is more else lambda text: None)
                    finally:
                        sys.setprofile(None)
        finally:
            os.chdir(here)
    if wrong.getvalue():
        raise RuntimeError(wrong.getvalue())
    return [call for calls in recorder.found.values() for call in calls]


def quick(found: list[Example]) -> list[Example]:
    """Those that work again, and not for long."""
    kept = []
    for call in found:
        began = time.process_time()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                call.function(*call.extra, **call.fresh())
            except Exception:
                continue
        if time.process_time() - began < _SLOW:
            kept.append(call)
    return kept
