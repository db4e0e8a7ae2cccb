"""Sentences of the papers beside the numbers that they print themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from scipy.stats import rankdata, ttest_ind

from experiments.claims.kinds import PrintedEvidence

__all__ = ["PRINTED"]


def _compared(rows: Iterable[tuple[bool, str]]) -> PrintedEvidence:
    """Comparisons as (borne out, in words)."""
    told = list(rows)
    return PrintedEvidence(len(told), tuple(words for holds, words in told if not holds))


def _equal(name: str, computed: float, printed: float) -> tuple[bool, str]:
    return bool(np.isclose(computed, printed)), f"{name}: {computed:g}, printed {printed:g}"


def _above(name: str, larger: float, smaller: float) -> tuple[bool, str]:
    return larger > smaller, f"{name}: {larger:g} is not above {smaller:g}"


# Pham et al. (2024), Table 2: bits per character or perplexity, lower is better.
_COLUMNS = tuple(
    f"{data} {size}" for data in ("enwik8", "text8", "WikiText-103") for size in ("small", "medium")
)
_TABLE_2: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "Switch": {
        "CompeteSMoE": (1.177, 1.115, 1.289, 1.220, 83.750, 31.299),
        "SMoE": (1.191, 1.130, 1.291, 1.231, 85.061, 34.145),
        "SMoE-Fixed": (np.nan, 1.138, np.nan, 1.237, 86.656, 35.392),
        "XMoE": (1.198, 1.126, 1.291, 1.244, 84.686, 34.322),
        "StableMoE": (1.194, 1.124, 1.300, 1.238, 85.267, 34.179),
    },
    "GLaM": {
        "CompeteSMoE": (1.175, 1.081, 1.281, 1.211, 54.380, 34.233),
        "SMoE": (1.186, 1.139, 1.286, 1.235, 54.856, 34.672),
        "SMoE-Fixed": (1.191, 1.123, 1.308, 1.238, 57.284, 35.640),
        "XMoE": (1.187, 1.111, 1.289, 1.219, 55.618, 34.613),
        "StableMoE": (1.189, 1.109, 1.291, 1.217, 54.730, 35.320),
    },
}
_TINY_SMOE = 1.320
"""Table 9, mean of five runs of the tiny Switch Transformer with SMoE."""


def _worst_is_fixed() -> PrintedEvidence:
    return _compared(
        _above(f"{architecture}, {column}, {name}", fixed, other)
        for architecture, rows in _TABLE_2.items()
        for name, values in rows.items()
        for column, fixed, other in zip(_COLUMNS, rows["SMoE-Fixed"], values, strict=True)
        if name != "SMoE-Fixed" and not np.isnan(fixed)
    )


def _any_alpha() -> PrintedEvidence:
    alphas = {"0.1": 1.306, "1": 1.307, "5": 1.303, "25": 1.321, "250": 1.328}
    return _compared(_above(f"alpha = {a}", _TINY_SMOE, bits) for a, bits in alphas.items())


def _any_frequency() -> PrintedEvidence:
    lambdas = {"0.03": 1.330, "0.05": 1.303, "0.07": 1.310, "0.09": 1.309}
    return _compared(_above(f"lambda = {a}", _TINY_SMOE, bits) for a, bits in lambdas.items())


def _lower_entropy() -> PrintedEvidence:
    ours = (0.3441, 0.4015, 0.5946, 0.6810, 0.6081, 1.3636)
    smoe = (0.1158, 0.6411, 0.4247, 0.8331, 0.9701, 1.3681)
    lower = sum(a < b for a, b in zip(ours, smoe, strict=True))
    return _compared([_equal("routers", lower, 4), _above("mean", sum(smoe), sum(ours))])


def _memory() -> PrintedEvidence:
    peaks = {"SMoE": 43.86, "XMoE": 44.02, "sigma-MoE": 43.93, "PCosine": 44.12}
    peaks["SharedE-V2"] = 42.29
    return _compared(
        (46.45 / other <= 1.055, f"{46.45 / other - 1.0:+.1%} over {name}")
        for name, other in peaks.items()
    )


# Nguyen et al. (2025), Table 1, higher is better.
_TABLE_1 = {
    "SMoE": (65.90, 41.23, 60.96, 70.88, 39.64, 31.40, 42.22, 40.52, 86.56, 32.10, 31.89),
    "XMoE": (65.19, 41.14, 60.63, 71.31, 41.22, 31.50, 42.89, 42.60, 86.12, 31.30, 32.51),
    "PCosine": (65.45, 41.68, 61.38, 71.56, 40.27, 30.80, 42.56, 41.87, 86.90, 30.80, 32.05),
    "sigma-MoE": (65.09, 41.37, 61.48, 71.39, 41.01, 31.90, 41.78, 42.10, 86.52, 32.20, 30.95),
    "SharedE-V2": (64.93, 41.53, 61.15, 71.05, 41.20, 31.20, 42.56, 41.44, 86.08, 32.40, 32.36),
    "CompeteSMoE": (66.22, 41.92, 61.25, 72.59, 41.22, 31.70, 42.00, 42.25, 86.91, 33.20, 32.52),
}
_RANKS = (4.55, 3.50, 3.42, 3.64, 4.05, 1.77)


def _ranks() -> PrintedEvidence:
    """Mean ranks, ties at their mean."""
    ranks = rankdata(-np.array(list(_TABLE_1.values())), axis=0).mean(axis=1).round(2)
    return _compared(
        (abs(computed - printed) < 0.006, f"{name}: {computed:.2f}, printed {printed:.2f}")
        for name, computed, printed in zip(_TABLE_1, ranks, _RANKS, strict=True)
    )


def _swaps() -> PrintedEvidence:
    changes = np.array(
        [[-0.14, 0.52, 1.00, 2.42, -0.16, -0.60], [-0.45, -1.37, -0.33, -1.70, -0.81, -1.50]]
    )
    first, second = changes.mean(axis=1).round(2)
    return _compared([_equal("SMoE", first, 0.51), _equal("CompeteSMoE", second, -1.03)])


def _t_test() -> PrintedEvidence:
    compete, smoe = (1.303, 1.303, 1.307, 1.315, 1.304), (1.333, 1.322, 1.315, 1.320, 1.310)
    p_value = float(np.asarray(ttest_ind(compete, smoe))[1])
    return _compared([_equal("p", round(p_value, 3), 0.016)])


def _drops() -> PrintedEvidence:
    without = {"without diversity loss": (52.90, 0.49), "without competition": (52.71, 0.30)}
    return _compared(
        _equal(name, round(53.21 - accuracy, 2), drop) for name, (accuracy, drop) in without.items()
    )


def _gammas() -> PrintedEvidence:
    last = {"Table 2, sigmoid": -0.3, "Table 4": -1.0}
    return _compared(_equal(f"gamma_2* of {name}", value, 0.0) for name, value in last.items())


def _last_class() -> PrintedEvidence:
    """Slope and intercept of the last class of each expert of Table 2's sigmoid truth."""
    values = {"expert 1": (-1.0, 1.0), "expert 2": (0.0, 2.0)}
    return _compared(
        (pair == (0.0, 0.0), f"{name}: {pair}, where A.3 has (0, 0)")
        for name, pair in values.items()
    )


def _subfigures() -> PrintedEvidence:
    """Columns of Figure 1 by its caption: softmax left, inner product middle, Euclidean right."""
    named = {"inner product": (("b", "e"), ("b", "e")), "Euclidean": (("b", "e"), ("c", "f"))}
    return _compared(
        (text == caption, f"{name}: {text} in App. C.3, {caption} by the caption")
        for name, (text, caption) in named.items()
    )


def _one_entry() -> PrintedEvidence:
    return _compared([_equal("power of 1/eps, softmax, dense, ReLU and GELU", 2, 4)])


def _bounded_unit() -> PrintedEvidence:
    # (11), (23) and (73) differentiate sigma to 3 z^2.
    return _compared((z**3 <= 10.0, f"sigma({z}) = {z**3}") for z in (1, 10, 100))


def _second_stage() -> PrintedEvidence:
    return _compared(
        (M**2 == 1, f"M = {M}: T_2 eta = 1/{M**2} in Lemma 16, of order 1 in the remark")
        for M in (4, 8, 16)
    )


PRINTED: Mapping[str, Callable[[], PrintedEvidence]] = {
    "mlmoe-gammas": _gammas,
    "mlmoe-last-class": _last_class,
    "mlmoe-subfigures": _subfigures,
    "attention-softmax-entry": _one_entry,
    "compete-table-1-ranks": _ranks,
    "compete-table-3": _swaps,
    "compete-table-4-memory": _memory,
    "compete-table-10": _drops,
    "compete-v1-table-2-fixed": _worst_is_fixed,
    "compete-v1-table-4": _any_frequency,
    "compete-v1-table-5": _any_alpha,
    "compete-v1-table-9": _t_test,
    "compete-v1-table-10": _lower_entropy,
    "expert-count-unit": _bounded_unit,
    "expert-count-second-stage": _second_stage,
}
"""By name, the comparisons that a sentence makes with the printed numbers."""
