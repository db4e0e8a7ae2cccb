"""Cases of the laws: a member of each axis with options of a fit, and data that have both.

A member is here by its registration.  `CASES` are the pairs of one member and some options that
every question is asked of; `SOME` is a fixed part of them for each run of the suite.
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.starts import GivenStarts
from moestat.model.by_expert import with_range
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.joint import as_likelihood
from moestat.model.likelihoods import LIKELIHOODS
from tests.kinds import goes_with

ROWS, GROUPS = 120, 30
SEED = 0
"""Of the data; ``pytest -m slow tests/laws`` runs the laws with others, too."""

CENSORED = ("gaussian", "log-normal", "weibull", "exponential", "poisson")
POSITIVE = ("log-normal", "gamma", "inverse-gaussian", "weibull", "exponential")


@dataclass(frozen=True)
class Member:
    """One choice on each axis."""

    likelihood: Any
    gate: Any = "softmax"
    expert: Any = "linear"
    kind: str = "one"  # "one" response, "censored", "trials" or "several"

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        words = [self.likelihood, self.gate, self.expert]
        named = [_named(w) if isinstance(w, dict) else w for w in words]
        texts = ["+".join(w) if isinstance(w, tuple) else w for w in named]
        shown = [t for t, plain in zip(texts, ("", "softmax", "linear"), strict=True) if t != plain]
        return "-".join([*shown, *([self.kind] if self.kind not in ("one", "several") else [])])


def _named(table: dict[str, Any]) -> str:
    """What a table is called, that of likelihoods by expert after all of them."""
    if "experts" in table:
        return "/".join(_named(each) for each in map(_table, table["experts"]))
    return table["name"]


def _table(given: Any) -> dict[str, Any]:
    return {"name": given} if isinstance(given, str) else given


BY_EXPERT = (
    ["gaussian", "uniform"],
    ["poisson", "point"],
)
"""Likelihoods of two experts."""


def _members() -> list[Member]:
    found = []
    for name, likelihood in LIKELIHOODS.items():
        if likelihood.parts:
            found.append(Member(name, kind="several"))
            continue
        gate = "softmax" if likelihood.block is not None else "sigmoid-quadratic"
        found.append(Member(name, gate))
        if name in CENSORED:
            found.append(Member(name, gate, kind="censored"))
        if "trials" in likelihood.options:
            found.append(Member(name, gate, kind="trials"))
    for name in GATES:
        own = {"name": name, "tree": [0, 1]} if name == "hierarchical" else name
        if name != "softmax" and goes_with(
            "gaussian", own if name != "hierarchical" else "softmax", "linear"
        ):
            found.append(Member("gaussian", "softmax" if name == "softmax" else own))
    found += [Member("gaussian", expert=name) for name in EXPERTS if name != "linear"]
    found.append(Member(("gaussian", "poisson"), kind="several"))
    found.append(Member(("multinomial", "gaussian"), kind="several"))
    found += [Member({"experts": each}) for each in BY_EXPERT]
    return found


OPTIONS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "weights": ("weights",),
    "groups": ("groups",),
    "weights, groups": ("weights", "groups"),
    "offset": ("offset",),
    "equal": ("equal",),
    "fixed": ("fixed",),
    "prior": ("prior",),
    "equal, prior, weights": ("equal", "prior", "weights"),
    "missing": ("missing",),
    "missing, groups": ("missing", "groups"),
    "transformed": ("transformed",),
    "transformed, weights, groups": ("transformed", "weights", "groups"),
    "compress, weights": ("compress", "weights"),
    "factor, groups": ("factor", "groups"),
    "random, groups": ("random", "groups"),
    "slopes, weights, groups": ("slopes", "weights", "groups"),
    "nested, weights, groups": ("nested", "weights", "groups"),
}


class RefusedError(Exception):
    """A combination that a fit refuses, with its sentence."""


@dataclass(frozen=True)
class Case:
    """A member with options, its data and its fit."""

    member: Member
    option: str
    seed: int = SEED

    def __str__(self) -> str:
        return f"{self.member}: {self.option}"

    def __hash__(self) -> int:
        # A gate may be a table, which has no hash.
        return hash((str(self), self.seed))

    @property
    def options(self) -> tuple[str, ...]:
        """What the fit is given besides the formula."""
        return OPTIONS[self.option]

    @cached_property
    def truth(self) -> tuple[Any, np.ndarray]:
        """A family of two experts and typical parameters."""
        law = self.member.likelihood
        discrete = isinstance(law, str) and law in ("multinomial", "ordinal")
        if self.member.kind == "trials":
            law = {"name": law, "trials": 6}
        if isinstance(law, dict) and "uniform" in law.get("experts", ()):
            law = with_range(law, [-4.0, 4.0])
        if isinstance(law, tuple):
            law = [{"name": n, **({"n_classes": 3} if n == "multinomial" else {})} for n in law]
        family = moestat.family(
            law,
            gate=self.member.gate,
            expert=self.member.expert,
            n_experts=2,
            n_features=2,
            n_classes=3 if discrete else None,
        )
        return family, family.typical(self.seed)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Rows with inputs x, z, responses, weights w, groups id, an offset and a factor."""
        family, theta = self.truth
        rng = np.random.default_rng([self.seed, zlib.crc32(str(self.member).encode())])
        noise = 0.05 if family.is_regression else None
        design = moestat.Uniform(-1.0, 1.0)
        X, y = moestat.sample(family, theta, ROWS, rng=rng, design=design, noise=noise)
        frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1]}, index=pd.RangeIndex(100, 100 + ROWS))
        frame["id"] = [
            f"s{i:02d}" for i in rng.permutation(np.repeat(np.arange(GROUPS), ROWS // GROUPS))
        ]
        frame["part"] = np.where(frame.groupby("id").cumcount() % 2, "b", "a")
        frame["w"] = rng.integers(0, 4, ROWS)
        frame["off"] = 0.1 * rng.normal(size=ROWS)
        frame["level"] = rng.choice(["a", "b", "c"], ROWS)
        if "groups" in self.options:
            # Weights are those of groups.
            frame["w"] = frame.groupby("id")["w"].transform("first")
        if self.member.kind == "several":
            columns = y if np.ndim(y) == 2 else np.column_stack(list(y))
            for r, column in enumerate(np.asarray(columns).T):
                frame[f"y{r + 1}"] = column
            if self.member.likelihood == ("multinomial", "gaussian"):
                frame["y1"] = np.array(["no", "so", "yes"])[frame["y1"].astype(int) - 1]
        elif self.member.kind == "censored":
            limit = np.quantile(y, 0.8)
            frame["low"] = np.minimum(y, limit).astype(float)
            frame["high"] = np.where(y <= limit, y, np.inf).astype(float)
        elif self.member.kind == "trials":
            frame["s"], frame["t"] = y.astype(int), 6
            frame.loc[frame.index[::3], "t"] = 8
        else:
            frame["y"] = np.array(["no", "so", "yes"])[y - 1] if self._words else y
        if "transformed" in self.options:
            frame["y"] = np.exp(frame["y"].clip(-20, 20)) if self._real else frame["y"] ** 2
        if "missing" in self.options:
            frame.loc[frame.index[[3, 50]], "x"] = np.nan
        return frame

    @property
    def _words(self) -> bool:
        return self.member.likelihood == "multinomial"

    @property
    def _real(self) -> bool:
        return as_likelihood(self.member.likelihood).ends[0] == -np.inf

    @property
    def response(self) -> str:
        """The left-hand side of the formula."""
        if self.member.kind == "several":
            return "cbind(y1, y2)"
        if self.member.kind == "censored":
            return "cbind(low, high)"
        if self.member.kind == "trials":
            return "cbind(s, t - s)"
        if "transformed" in self.options:
            return "log(y)" if self._real else "sqrt(y)"
        return "y"

    @property
    def formula(self) -> str:
        """The formula of the fit."""
        gate = GATES[_name(self.member.gate)]
        whole = any(c.axis is not None or (c.products and not c.slope) for c in gate.channels(2))
        terms = "x + level" if "factor" in self.options else "x + z"
        terms += " + (1 | id/part)" * ("nested" in self.options)
        bar = "" if whole else " | 1" if "groups" in self.options else " | x"
        return f"{self.response} ~ {terms}{bar}"

    @property
    def arguments(self) -> dict[str, Any]:
        """Further arguments of `moestat.fit_formula`."""
        law = self.member.likelihood
        law = list(law) if isinstance(law, tuple) else law
        slope = next(iter(self._slopes))
        given: dict[str, Any] = {
            "family": {"name": law, "responses": ["y1", "y2"]}
            if law == "multivariate-gaussian"
            else law,
            "gate": self.member.gate,
            "expert": self.member.expert,
            "n_experts": 2,
        }
        some = {
            "weights": {"weights": "w"},
            "groups": {"groups": "id"},
            "offset": {"offset": "off"},
            "equal": {"equal": [slope]},
            "fixed": {"fixed": {slope: {(1, "z"): 0.25}}},
            "prior": {"prior": moestat.Prior()},
            "missing": {"missing": "drop"},
            "compress": {"compress": "auto"},
            "random": {"random": "1"},
            "slopes": {"random": "1 + x"},
        }
        for option in self.options:
            given |= some.get(option, {})
        if "nested" in self.options:
            del given["groups"]  # they are in the formula
        return given

    @property
    def _slopes(self) -> list[str]:
        family, _ = self.truth
        first = family.first_expert_channel
        return [c.slope for c in family.channels[first:] if c.slope] or ["a"]

    def fit(
        self, frame: Any = None, starts: Any = None, formula: str | None = None, **changed: Any
    ) -> Any:
        """A fit to other data, of another formula, or from given parameters.

        Laws hold for any maximum, so that one search is enough.
        """
        given = {"threads": 1, **self.arguments, **changed}
        given |= (
            {"n_starts": 2, "risk": 1.0}
            if starts is None
            else {"starts": [GivenStarts(np.atleast_2d(starts))]}
        )
        data = self.frame if frame is None else frame
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoEWarning)
            return moestat.fit_formula(formula or self.formula, data, rng=0, **given)

    @property
    def result(self) -> Any:
        """The fit; raises `RefusedError` where it is refused in a sentence of its own."""
        made = _fitted(self)
        if isinstance(made, Exception):
            raise made
        return made

    @property
    def rows(self) -> pd.DataFrame:
        """The rows that the fit has used."""
        return self.frame.dropna(subset=["x"])


def _name(table: Any) -> str:
    return table if isinstance(table, str) else table["name"]


@cache
def _fitted(case: Case) -> Any:
    try:
        return case.fit()
    except ValueError as error:
        if is_plain(error):
            return RefusedError(str(error))
        return error


def is_plain(error: BaseException) -> bool:
    """Whether an error is a refusal of this package, in one sentence about an argument."""
    if not isinstance(error, ValueError) or isinstance(error.__cause__, Exception):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    home = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return home.startswith("moestat.") and len(str(error)) > 15 and "Error" not in str(error)


MEMBERS = _members()


def _makes_sense(member: Member, option: str) -> bool:
    """Whether a response can be a function of a column: not of labels, counts or two columns."""
    if "transformed" not in option:
        return True
    if member.kind != "one":
        return False
    likelihood = as_likelihood(member.likelihood)
    return not (likelihood.counts or likelihood.support)


CASES = [Case(m, option) for m in MEMBERS for option in OPTIONS if _makes_sense(m, option)]


def _checksum(case: Case) -> int:
    return zlib.crc32(str(case).encode())


def part(cases: list[Case], every: int) -> list[Case]:
    """A fixed part of the cases: one in so many, spread over members and options."""
    return [case for case in cases if _checksum(case) % every == 0]


def one_of_each(cases: list[Case]) -> list[Case]:
    """One case of each member, the one whose name has the smallest checksum.

    It is no case with two effects of a group, which takes up to two minutes.
    """
    short = [case for case in cases if not {"slopes", "nested"} & {*case.options}]
    first = {str(case.member): case for case in sorted(short, key=_checksum, reverse=True)}
    return list(first.values())


def _chosen(*chosen: list[Case]) -> list[Case]:
    """The cases that are in one of the lists, in the order of `CASES`."""
    names = {str(case) for cases in chosen for case in cases}
    return [case for case in CASES if str(case) in names]


BASE = ("gaussian", "multinomial", "poisson")
_BY_MEMBER = {name: [case for case in CASES if str(case.member) == name] for name in BASE}

SOME = _chosen(*_BY_MEMBER.values(), part(CASES, 6))
"""All cases of three members and one in six of the others: `python -m tests.laws`."""

EACH_RUN = _chosen(_BY_MEMBER["gaussian"], one_of_each(CASES))
"""Each run of the suite: all options of one member, every other member with one of them."""
