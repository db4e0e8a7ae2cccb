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
from collections.abc import Iterator
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
>>> from moestat.networks.smoe.attention import RMSNorm
>>> from moestat.networks.smoe.training import Settings, run_training
>>> from moestat.networks.smoe.training.decoder import LanguageModel
>>> from moestat.networks.smoe.training.tasks import make_task
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
>>> pr = moestat.profile(one, "a[1,0]")
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
>>> counts = np.minimum(np.round(y**2), 9)
>>> both_y = pd.DataFrame({"pay": y, "trips": counts})
>>> both = moestat.fit(["gaussian", "poisson"], frame[["age"]], both_y, n_experts=2, rng=0,
...     n_starts=2)
>>> shown = str(both.summary()), both.simulate(rng=0)
>>> ends = both.response("trips").get_prediction(frame[["age"]][:3]).conf_int()
>>> new = both.predict(frame[["age"]][:3], which="mean"), both.score_samples(frame[["age"]], both_y)
>>> fits = [moestat.fit({"name": "binomial", "trials": 9, "link": link}, x, counts, n_experts=1,
...     rng=0) for link in ("probit", "cloglog")]
>>> p = fits[0].get_prediction(x[:3])
>>> ends = p.conf_int(), p.prediction_interval()
>>> rows = moestat.fit("binomial", x, np.column_stack([counts, np.full(80, 9)]), n_experts=1,
...     rng=0, prior=moestat.Prior())
>>> hurdle = moestat.fit("hurdle-poisson", np.c_[x, x**0], counts, n_experts=1, rng=0,
...     offset=1)
>>> p = hurdle.get_prediction(np.c_[x, x][:3])
>>> held = one.fit_constrained("a[1,0] = 1"), one.wald_test("a[1,0] = 1, b[1] = 0")
>>> cov = held[0].cov_params()
>>> ids = np.repeat(range(20), 4)
>>> frame = frame.assign(w=1.0, id=ids)
>>> again = moestat.fit_formula(formula="pay ~ age + C(sex)", data=frame, n_experts=1, rng=0,
...     weights="w", groups="id")
>>> robust = one.get_robustcov_results("HC0"), one.bootstrap(n_resamples=5, groups=ids, rng=0)
>>> bl = moestat.fit_blocks(moestat.family("gaussian", n_experts=1),
...     moestat.Blocks.from_arrays(X=x, y=y, sample_weight=np.ones(80)), rng=0, threads=1)
>>> sel = moestat.select("gaussian", x, y, [1], rng=0, folds=2, sample_weight=np.ones(80))
>>> F = moestat.family("gaussian", n_experts=2, gate="softmax", gate_inputs=[0],
...     bounds={"a": [-9, 9]})
>>> drawn = moestat.sample(F, F.pack(r.blocks), n=20, rng=0, design=moestat.Uniform(0, 1))
>>> need = moestat.required_n(r, what="a[1,0]", error=0.5)
>>> close = need.error_at(1000)
>>> from torch import nn
>>> dense = smoe.DenseBlock(smoe.MLPExperts(1, 8, 4, 8))
>>> out = dense(tokens)
>>> sparse = smoe.SMoE(smoe.MLPExperts(3, 8, 4, 8), smoe.SoftmaxRouter(8, 3), top_k=1)
>>> smoe.upcycle(nn.Sequential(dense), nn.Sequential(sparse))
>>> gated = smoe.SMoE(smoe.GatedExperts(3, 8, 4, 8), smoe.SoftmaxRouter(8, 3), top_k=2)
>>> maps = [nn.Linear(8, 4, bias=False), nn.Linear(8, 4, bias=False), nn.Linear(4, 8, bias=False)]
>>> smoe.copy_gated(gated, *maps)
>>> hashed = smoe.SMoE(smoe.MLPExperts(3, 8, 4, 8), smoe.HashRouter(8, 3, n_tokens=5), top_k=1)
>>> out = hashed(tokens, ids=torch.tensor([0, 1, 2, 3, 4, 0]))
>>> out = sparse(tokens, mask=torch.ones(6, dtype=torch.bool))
>>> seen = [observe_routing(sparse, tokens) for _ in range(2)]
>>> rate = expert_change_rate(*seen)
>>> norm = RMSNorm(8)(tokens)
>>> settings = Settings(task="clusters", method="smoe", n_steps=2, batch_size=4, n_hidden=2,
...     n_test=8)
>>> run = run_training(settings, data_seed=0, seed=0)
>>> task = make_task(settings, 0)
>>> drawn = task.batch(step=1), task.held_out(1), task.sample(n=3, rng=np.random.default_rng(0))
>>> language = LanguageModel(Settings(task="language", method="hash", n_steps=2), n_tokens=7)
>>> with sweep.open_store("more.sqlite") as store:
...     curves = sweep.summarise(store)
>>> series = moestat.required_n(F, F.pack(r.blocks), moestat.Uniform(-1, 1), error=0.5, what="b[1]")
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
        given = inspect.getargvalues(frame)
        told = {key for call in calls for key, value in call.arguments.items() if value is not None}
        if len(calls) >= _PER_FUNCTION and not any(
            given.locals[key] is not None for key in {*given.args} - told - {"self", "cls"}
        ):
            return
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


def quick(found: list[Example]) -> Iterator[tuple[Example, Any]]:
    """Those that work again, and not for long, with their results."""
    for call in found:
        began = time.process_time()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                result = call.function(*call.extra, **call.fresh())
            except Exception:
                continue
        if time.process_time() - began < _SLOW:
            yield call, result
