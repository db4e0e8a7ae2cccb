"""What one cell of a sweep of inference draws, fits and judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moestat.base.validate import positive_int
from moestat.model.designs import Design, Uniform, make_design
from moestat.model.family import Family
from moestat.sweep.kinds.fit.parse import read_truth
from moestat.sweep.kinds.fit.spec import Truth


@dataclass(frozen=True)
class Trial:
    """What one cell draws and judges.

    Parameters
    ----------
    n : int
        Sample size.
    truth : Truth
        Distribution of the response given the input.
    design : Design
        Distribution of the inputs.
    n_experts : int
        Experts of the fitted model.
    procedures : tuple of str
        Names in `moestat.sweep.kinds.inference.procedures.PROCEDURES`.
    n_starts : int
        Short runs of a fit, besides the start at the target; with 0 there are none.
    n_resamples : int
        Resamples of a bootstrap.
    group_size : int
        How often each row occurs: rows of one group are equal.
    """

    n: int
    truth: Truth
    design: Design
    n_experts: int
    procedures: tuple[str, ...]
    n_starts: int = 8
    n_resamples: int = 199
    group_size: int = 1

    @property
    def family(self) -> Family:
        """The fitted family."""
        return self.truth.family.with_experts(self.n_experts)


def make_trial(fields: Mapping[str, Any]) -> Trial:
    """A trial from its fields, defaults filled in; what is wrong with one raises a `ValueError`."""
    for name in ("n", "truth", "procedures"):
        if name not in fields:
            raise ValueError(f"{name} is missing")
    truth = read_truth("of the data", fields["truth"])
    if truth.family.is_regression:
        raise ValueError("truth: intervals and tests need a likelihood, got 'least-squares'")
    counts = {
        name: positive_int(name, fields[name])
        for name in ("n_resamples", "group_size")
        if name in fields
    }
    if "n_starts" in fields:
        counts["n_starts"] = positive_int("n_starts", fields["n_starts"], 0)
    return Trial(
        n=positive_int("n", fields["n"], maximum=None),
        truth=truth,
        design=make_design(fields["design"]) if "design" in fields else Uniform(),
        n_experts=positive_int("n_experts", fields.get("n_experts", truth.family.n_experts)),
        procedures=tuple(fields["procedures"]),
        **counts,
    )
