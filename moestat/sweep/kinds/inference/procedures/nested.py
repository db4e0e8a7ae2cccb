"""Tests that the last input has no effect: likelihood ratio, score, Wald."""

from __future__ import annotations

import numpy as np

from moestat.estimation.inference.nested import lr_test, score_test
from moestat.sweep.kinds.inference.observed import Observed, Outcomes

_LEVEL = 0.05


def judge(observed: Observed) -> Outcomes:
    """Whether each test rejects at level 5%."""
    names = ("likelihood ratio", "score", "Wald, observed", "Wald, expected", "Wald, HC0")
    full = observed.result
    nothing: Outcomes = {name: {"last input": None} for name in names}
    if full is None:
        return nothing
    family = full.family
    last = family.n_features - 1
    # Every coefficient of the last input that is free.
    own = [
        name
        for name, low, high in zip(full.param_names, family.lower, family.upper, strict=True)
        if low < high and name.endswith(f",{last}]")
    ]
    smaller = observed.without_last()
    if smaller is None:
        return nothing
    constraints = ", ".join(f"{name} = 0" for name in own)
    theta = np.zeros(family.n_params)
    small = smaller.blocks
    blocks = full.family.unpack(theta)
    for name, block in blocks.items():
        blocks[name] = (
            small[name]
            if small[name].shape == block.shape
            else np.concatenate([small[name], np.zeros((*block.shape[:-1], 1))], axis=-1)
        )
    pvalues = {
        "likelihood ratio": lr_test(smaller, full).pvalue,
        "score": score_test(full, family.pack(blocks), df=len(own)).pvalue,
    }
    for kind in ("observed", "expected", "HC0"):
        found = full.get_robustcov_results(kind).wald_test(constraints)
        pvalues[f"Wald, {kind}"] = found.pvalue
    return {name: {"last input": float(p < _LEVEL)} for name, p in pvalues.items()}
