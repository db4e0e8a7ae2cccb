"""Sentences of the papers beside the numbers that they print themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.stats import binom, rankdata, ttest_ind

from experiments.claims.kinds import PrintedEvidence
from experiments.claims.trial import Trial

__all__ = [
    "ATTENTION_SOFTMAX_ENTRY",
    "ATTENTION_TABLE_2",
    "COMPETE_AVERAGES",
    "COMPETE_SCHEDULE",
    "COMPETE_TABLE_1_RANKS",
    "COMPETE_TABLE_10",
    "COMPETE_TABLE_10_DENSE",
    "COMPETE_TABLE_11",
    "COMPETE_TABLE_12",
    "COMPETE_TABLE_13",
    "COMPETE_TABLE_3",
    "COMPETE_TABLE_4_MEMORY",
    "COMPETE_TABLE_4_TIME",
    "COMPETE_TABLE_6",
    "COMPETE_TABLE_7",
    "COMPETE_TABLE_8",
    "COMPETE_V1_TABLE_10",
    "COMPETE_V1_TABLE_2",
    "COMPETE_V1_TABLE_2_FIXED",
    "COMPETE_V1_TABLE_3",
    "COMPETE_V1_TABLE_4",
    "COMPETE_V1_TABLE_5",
    "COMPETE_V1_TABLE_5_BEST",
    "COMPETE_V1_TABLE_9",
    "EXPERT_COUNT_SECOND_STAGE",
    "EXPERT_COUNT_UNIT",
    "MLMOE_GAMMAS",
    "MLMOE_LAST_CLASS",
    "MLMOE_SUBFIGURES",
    "MLMOE_ZERO_CLASS",
]


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


_AVERAGES: Mapping[str, Mapping[str, float]] = {
    "Table 1": {
        **{"SMoE": 49.39, "XMoE": 49.67, "PCosine": 49.57, "sigma-MoE": 49.62},
        **{"SharedE-V2": 49.63, "CompeteSMoE": 50.16},
    },
    "Table 2": {
        **{"SMoE": 53.67, "XMoE": 53.24, "PCosine": 53.38, "sigma-MoE": 53.69},
        **{"SharedE-V2": 53.75, "SharedE-V3": 53.77, "CompeteSMoE": 54.04},
    },
    "Table 13": {
        **{"SMoE": 47.72, "XMoE": 47.88, "PCosine": 43.72, "sigma-MoE": 47.69},
        **{"SharedE-V2": 47.88, "SharedE-V3": 47.92, "CompeteSMoE": 48.51},
    },
}
"""Average accuracy, higher is better."""
_BENCHMARKS = (
    *("AI2D", "TextVQA", "GQA", "MMBench", "Hallusion", "MathVista", "MMMU", "MMStar", "POPE"),
    *("OCR", "MME RWL"),
)
_TABLE_13 = {
    "SMoE": (59.84, 39.56, 56.29, 66.32, 46.69, 29.10, 38.11, 37.55, 86.14, 32.40, 32.86),
    "XMoE": (61.59, 39.40, 55.92, 65.98, 45.32, 29.80, 39.00, 39.82, 86.58, 32.10, 31.21),
    "PCosine": (56.09, 39.61, 49.98, 52.41, 40.59, 27.00, 38.78, 37.38, 86.20, 22.70, 30.22),
    "sigma-MoE": (61.59, 39.18, 56.60, 65.98, 44.80, 30.00, 39.00, 37.89, 86.28, 32.10, 31.21),
    "SharedE-V2": (61.06, 39.20, 56.14, 64.00, 46.58, 29.30, 39.11, 39.06, 87.13, 31.80, 33.25),
    "SharedE-V3": (61.37, 39.60, 56.33, 66.58, 45.01, 29.30, 37.56, 39.12, 86.97, 32.20, 33.13),
    "CompeteSMoE": (61.76, 39.71, 56.00, 67.61, 46.79, 29.30, 39.56, 40.12, 86.36, 32.20, 34.18),
}


def _best_averages() -> PrintedEvidence:
    return _compared(
        _above(f"{table}, {name}", rows["CompeteSMoE"], other)
        for table, rows in _AVERAGES.items()
        for name, other in rows.items()
        if name != "CompeteSMoE"
    )


def _consistently_best() -> PrintedEvidence:
    """On each benchmark of Table 13, the best of all others beside CompeteSMoE."""
    ours = _TABLE_13["CompeteSMoE"]
    others = np.max([row for name, row in _TABLE_13.items() if name != "CompeteSMoE"], axis=0)
    return _compared(
        _above(name, own, float(best))
        for name, own, best in zip(_BENCHMARKS, ours, others, strict=True)
    )


def _two_losses() -> PrintedEvidence:
    """Ranks of two methods on nine benchmarks add up to 3 and are ninths."""
    ranks = 1.22, 1.78
    return _compared(
        [
            _above("average accuracy", 53.21, 52.92),
            _above("average rank", ranks[1], ranks[0]),
            _equal("sum of the ranks", sum(ranks), 3.0),
            _equal("ninths", round(round(9 * ranks[0]) / 9, 2), ranks[0]),
        ]
    )


def _training_time() -> PrintedEvidence:
    minutes = {"SMoE": 12 * 60 + 39, "CompeteSMoE": 13 * 60 + 1}
    over = 100.0 * (minutes["CompeteSMoE"] / minutes["SMoE"] - 1.0)
    same = abs(9.88 / 9.87 - 1.0)
    return _compared(
        [
            _equal("per cent more time", round(over), 3.0),
            (same < 0.01, f"inference differs by {same:.1%}"),
        ]
    )


def _active_layers() -> PrintedEvidence:
    """Steps at which more than 7% of the layers draw a competition, each with probability 7%.

    Those beyond A_max are moved to other steps, so that the mean share stays 7%.
    """
    omega = 0.07
    chances = {L: float(binom.sf(int(omega * L), L, omega)) for L in (24, 32, 48)}
    return _compared(
        (chance < 0.01, f"{L} layers: more than 7% of them at {chance:.0%} of the steps")
        for L, chance in chances.items()
    )


def _better_than_smoe() -> PrintedEvidence:
    return _compared(
        _above(f"{architecture}, {column}", smoe, ours)
        for architecture, rows in _TABLE_2.items()
        for column, smoe, ours in zip(_COLUMNS, rows["SMoE"], rows["CompeteSMoE"], strict=True)
    )


# Pham et al. (2024), Table 3: accuracy after finetuning.
_TABLE_3 = {
    "CompeteSMoE": (79.8, 38.3, 84.8, 72.9),
    "SMoE": (77.1, 35.1, 84.4, 69.2),
    "SMoE-Fixed": (78.6, 34.4, 83.5, 66.7),
    "XMoE": (76.7, 35.3, 83.3, 67.4),
    "StableMoE": (77.7, 34.3, 83.9, 60.8),
}
_SETS = ("SST-2", "SST-5", "IMDB", "BANKING77")


def _finetuned() -> PrintedEvidence:
    return _compared(
        _above(f"{data}, {name}", own, other)
        for name, row in _TABLE_3.items()
        for data, own, other in zip(_SETS, _TABLE_3["CompeteSMoE"], row, strict=True)
        if name != "CompeteSMoE"
    )


def _sigmoid_scores() -> PrintedEvidence:
    """Yan et al. (2025), Table 2: sigmoid above softmax on most tasks, and its throughput."""
    softmax = (59.8, 24.3, 41.6, 57.1, 70.1, 84.4)
    sigmoid = (60.1, 25.4, 41.8, 55.0, 69.4, 85.6)
    higher = sum(a > b for a, b in zip(sigmoid, softmax, strict=True))
    return _compared(
        [
            (2 * higher > len(softmax), f"higher on {higher} of {len(softmax)} tasks"),
            _above("throughput", 486, 441),
        ]
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


# Nguyen et al. (2025), Tables 6, 7 and 8: average accuracy by a weight of the loss.
_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "alpha = 0.1": {"0.0": 52.92, "0.2": 52.98, "0.3": 52.87},
    "gamma = 0.01": {"0.001": 52.74, "0.03": 52.83},
    "beta = 0.005": {"0.001": 52.79, "0.01": 52.91},
}


def _best_weight(best: str) -> PrintedEvidence:
    """The accuracy at a weight, 53.21 in all three tables, above that at the others."""
    return _compared(_above(f"{best} against {at}", 53.21, x) for at, x in _WEIGHTS[best].items())


def _dense() -> PrintedEvidence:
    """Rows (3) and (4) of Table 10: accuracy, and average rank, lower is better."""
    rows = {"(3)": (52.70, 4.11), "(4)": (52.79, 3.44)}
    return _compared(
        row
        for name, (accuracy, rank) in rows.items()
        for row in (
            _above(f"accuracy above row {name}", 53.21, accuracy),
            _above(f"rank of row {name}", rank, 1.78),
        )
    )


def _policy_alone() -> PrintedEvidence:
    return _compared(
        [
            _above("accuracy of the policy alone", 52.84, 52.47),
            _above("rank of SMoE", 2.56, 2.11),
        ]
    )


def _small_alpha() -> PrintedEvidence:
    return _compared([_above("bits per character at alpha = 25", 1.321, 1.303)])


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


def _zero_class() -> PrintedEvidence:
    """Slope and intercept of the last class of each expert of Table 3."""
    values = {"expert 1": (1.86, 0.963), "expert 2": (1.87, 0.964)}
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


MLMOE_GAMMAS = Trial("mlmoe-gammas", _gammas)
MLMOE_LAST_CLASS = Trial("mlmoe-last-class", _last_class)
MLMOE_ZERO_CLASS = Trial("mlmoe-zero-class", _zero_class)
MLMOE_SUBFIGURES = Trial("mlmoe-subfigures", _subfigures)
ATTENTION_SOFTMAX_ENTRY = Trial("attention-softmax-entry", _one_entry)
ATTENTION_TABLE_2 = Trial("attention-table-2", _sigmoid_scores)
COMPETE_AVERAGES = Trial("compete-averages", _best_averages)
COMPETE_SCHEDULE = Trial("compete-schedule", _active_layers)
COMPETE_TABLE_4_TIME = Trial("compete-table-4-time", _training_time)
COMPETE_TABLE_12 = Trial("compete-table-12", _two_losses)
COMPETE_TABLE_13 = Trial("compete-table-13", _consistently_best)
COMPETE_V1_TABLE_2 = Trial("compete-v1-table-2", _better_than_smoe)
COMPETE_V1_TABLE_3 = Trial("compete-v1-table-3", _finetuned)
COMPETE_TABLE_1_RANKS = Trial("compete-table-1-ranks", _ranks)
COMPETE_TABLE_3 = Trial("compete-table-3", _swaps)
COMPETE_TABLE_4_MEMORY = Trial("compete-table-4-memory", _memory)
COMPETE_TABLE_6 = Trial("compete-table-6", lambda: _best_weight("alpha = 0.1"))
COMPETE_TABLE_7 = Trial("compete-table-7", lambda: _best_weight("gamma = 0.01"))
COMPETE_TABLE_8 = Trial("compete-table-8", lambda: _best_weight("beta = 0.005"))
COMPETE_TABLE_10_DENSE = Trial("compete-table-10-dense", _dense)
COMPETE_TABLE_11 = Trial("compete-table-11", _policy_alone)
COMPETE_V1_TABLE_5_BEST = Trial("compete-v1-table-5-best", _small_alpha)
COMPETE_TABLE_10 = Trial("compete-table-10", _drops)
COMPETE_V1_TABLE_2_FIXED = Trial("compete-v1-table-2-fixed", _worst_is_fixed)
COMPETE_V1_TABLE_4 = Trial("compete-v1-table-4", _any_frequency)
COMPETE_V1_TABLE_5 = Trial("compete-v1-table-5", _any_alpha)
COMPETE_V1_TABLE_9 = Trial("compete-v1-table-9", _t_test)
COMPETE_V1_TABLE_10 = Trial("compete-v1-table-10", _lower_entropy)
EXPERT_COUNT_UNIT = Trial("expert-count-unit", _bounded_unit)
EXPERT_COUNT_SECOND_STAGE = Trial("expert-count-second-stage", _second_stage)
