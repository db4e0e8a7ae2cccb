"""Claims of Nguyen et al. (2025) and Pham et al. (2024) on training.

The runs that decide are small: a contrast of two methods, each at its best point of one grid,
supports a claim where its interval lies on the claimed side, and never refutes one, for the papers'
models are of millions to billions of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.claims import printed
from experiments.claims.claim import Claim
from experiments.claims.kinds import Check, Printed, TunedContrast
from experiments.claims.rules import MISPRINT

__all__ = ["CLAIMS"]

_V2, _V1, _SMOE = "CompeteSMoE v2", "CompeteSMoE v1", "SMoE"
_CLUSTERS, _LANGUAGE, _UPCYCLING = "compete_clusters", "compete_language", "compete_upcycling"
_BOTH = (_CLUSTERS, _LANGUAGE)
_SCHEDULES = "compete_schedules"
_SETTINGS = (
    *(f"omega = {omega}" for omega in ("0.01", "0.03", "0.2")),
    *("alpha = 0", "alpha = 1", "gamma = 0.001", "gamma = 1", "beta = 0", "beta = 0.1"),
)
"""What `compete_schedules` changes in the second version, one at a time."""
_SCALE = "Not reproducible at this size: {}."
_READ = "Read off the printed numbers; nothing was measured again."


def _contrasts(
    metric: str, larger: str, smaller: str, experiments: Sequence[str] = _BOTH
) -> tuple[Check, ...]:
    """The contrast in each of the experiments."""
    return tuple(TunedContrast(name, metric, larger, smaller) for name in experiments)


def _ablations(worse: Sequence[str], base: str) -> tuple[Check, ...]:
    """The excess loss of ablations is larger than that of the base."""
    return tuple(TunedContrast(_SCHEDULES, "excess", name, base) for name in worse)


CLAIMS = (
    Claim(
        "compete.training.imitation",
        "Sec. 2.3, App. C.5",
        "Router and competition choose more experts in common under CompeteSMoE than under SMoE.",
        checks=_contrasts("overlap", _V2, _SMOE),
        note="Not by distillation: with gamma = beta = 0 the overlap is the same (compete_gamma).",
    ),
    Claim(
        "compete.training.loss",
        "Sec. 5.2.1",
        "CompeteSMoE has a smaller loss than SMoE.",
        checks=_contrasts("excess", _SMOE, _V2, (*_BOTH, _UPCYCLING)),
        note="The papers report zero-shot scores; here the excess of the test loss over the least.",
    ),
    Claim(
        "compete.figure-3",
        "Figure 3, Sec. 5.2.2 (b)",
        "The expert change rate is lower under CompeteSMoE than under SMoE.",
        checks=_contrasts("change_rate", _SMOE, _V2),
    ),
    Claim(
        "compete.table-3",
        "Table 3, Sec. 5.2.2 (a)",
        "The swap of the best expert costs CompeteSMoE more than SMoE.",
        checks=_contrasts("swap", _V2, _SMOE),
    ),
    Claim(
        "compete.table-3.averages",
        "Table 3",
        "The average changes are 0.51 and -1.03.",
        checks=(Printed(printed.COMPETE_TABLE_3),),
    ),
    Claim(
        "compete.figure-10",
        "App. E (b)",
        "CompeteSMoE spreads the weights of the chosen experts more evenly than SMoE.",
        checks=_contrasts("weight_entropy", _V2, _SMOE),
    ),
    Claim(
        "compete.table-5",
        "Table 5",
        "omega = 7% is better than 1%, 3% or 20%.",
        checks=_ablations([f"v2, omega = {omega}" for omega in ("0.01", "0.03", "0.2")], "v2"),
        note="The table compares 3, 5, 7 and 9%.",
    ),
    Claim(
        "compete.table-6",
        "Table 6, App. C.5",
        "By the printed numbers alpha = 0.1 is better than none and than larger values.",
        checks=(Printed(printed.COMPETE_TABLE_6),),
        note=_READ,
    ),
    Claim(
        "compete.table-7",
        "Table 7",
        "By the printed numbers gamma = 0.01 is better than smaller and larger values.",
        checks=(Printed(printed.COMPETE_TABLE_7),),
        note=_READ,
    ),
    Claim(
        "compete.table-8",
        "Table 8",
        "By the printed numbers beta = 0.005 is better than smaller and larger weights.",
        checks=(Printed(printed.COMPETE_TABLE_8),),
        note=_READ,
    ),
    Claim(
        "compete.tables-6-8.contrast",
        "Tables 6 to 8, 10 and 12, App. C.5",
        "Runs with alpha = 0.1, gamma = 0.01 and beta = 0.005 are better than runs with none of"
        " each weight, or other values.",
        checks=(
            *_ablations(["v2, alpha = 0", "v2, alpha = 1"], "v2"),
            *_ablations(["v2, gamma = 0.001", "v2, gamma = 1"], "v2"),
            *_ablations(["v2, beta = 0", "v2, beta = 0.1"], "v2"),
            *_contrasts("excess", f"{_V2}, no diversity loss", _V2, (_UPCYCLING,)),
        ),
        note="The contrasts behind the printed numbers of compete.table-6 to compete.table-8.",
    ),
    Claim(
        "compete.tables-5-8",
        "Sec. 5.4, key findings",
        "CompeteSMoE is better than SMoE at all values of its weights and of omega.",
        checks=tuple(
            check
            for name in ("v2", *(f"v2, {setting}" for setting in _SETTINGS))
            for check in _contrasts("excess", _SMOE, name, (_SCHEDULES,))
        ),
    ),
    Claim(
        "compete.table-10.text",
        "App. C.1",
        "Accuracy drops by 0.49 without the diversity loss and by 0.30 without competition.",
        checks=(Printed(printed.COMPETE_TABLE_10, failing=MISPRINT),),
        note="The two drops are interchanged: 0.31 and 0.50 by the table.",
    ),
    Claim(
        "compete.table-10.dense",
        "Table 10, rows (3) and (4)",
        "By the printed numbers dense activation without competition is worse than CompeteSMoE.",
        checks=(Printed(printed.COMPETE_TABLE_10_DENSE),),
        note=_READ,
    ),
    Claim(
        "compete.table-11",
        "Table 11, App. C.2",
        "By the printed numbers training the router by the competition alone is better than SMoE.",
        checks=(Printed(printed.COMPETE_TABLE_11),),
        note=_READ,
    ),
    Claim(
        "compete.figure-4",
        "App. C.3, C.4",
        "Softplus is the best response.",
        checks=_ablations(
            [f"v2, response {name}" for name in ("norm", "silu", "sigmoid", "relu", "softmax")],
            "v2",
        ),
    ),
    Claim(
        "compete.table-14",
        "App. G",
        "A moderate A_max is better than a small one; beyond, it matters little.",
        checks=_ablations(["A_max = 1"], "A_max = 2"),
        note="The table compares 3, 6 and 9; the runs compare 1 and 2 in a decoder of four layers.",
    ),
    Claim(
        "compete.tables-1-2",
        "Tables 1, 2 and 13",
        "By the printed numbers CompeteSMoE has the best average zero-shot scores.",
        checks=(Printed(printed.COMPETE_AVERAGES),),
        note=_READ,
    ),
    Claim(
        "compete.table-13",
        "App. F against Table 13",
        "Under this setup CompeteSMoE consistently outperforms all baseline methods.",
        checks=(Printed(printed.COMPETE_TABLE_13),),
        note="On average it does; benchmark by benchmark it does not.",
    ),
    Claim(
        "compete.table-12",
        "Table 12, App. C.5",
        "By the printed numbers the regularised distillation loss is better than without.",
        checks=(Printed(printed.COMPETE_TABLE_12),),
        note=_READ,
    ),
    Claim(
        "compete.figure-5",
        "Figure 5, App. C.5",
        "The regularised distillation loss learns faster and more stably.",
        untested=_SCALE.format("a model of 5 billion parameters, one run each"),
    ),
    Claim(
        "compete.appendix-b.schedule",
        "App. B, after eq. (9), against Sec. 2.3.2",
        "Only 0% to 7% of layers are active at any step.",
        checks=(Printed(printed.COMPETE_SCHEDULE),),
        note="Each layer competes with probability omega = 7%, and deferral moves competitions but"
        " removes none: the mean share is 7%, so that many steps have more.",
    ),
    Claim(
        "compete.table-4",
        "Table 4",
        "By the printed numbers training takes 3% more time than with SMoE, inference the same.",
        checks=(Printed(printed.COMPETE_TABLE_4_TIME),),
        note=_READ,
    ),
    Claim(
        "compete-v1.table-2",
        "Table 2",
        "By the printed numbers CompeteSMoE is better than SMoE in all columns.",
        checks=(Printed(printed.COMPETE_V1_TABLE_2),),
        note=_READ,
    ),
    Claim(
        "compete-v1.table-2.loss",
        "Table 2, Sec. 6.2",
        "CompeteSMoE has a smaller loss than SMoE.",
        checks=_contrasts("excess", _SMOE, _V1),
    ),
    Claim(
        "compete-v1.table-2.fixed",
        "Sec. 6.2 against Table 2",
        "A fixed random router is worse than all others.",
        checks=(
            Printed(printed.COMPETE_V1_TABLE_2_FIXED),
            *(
                check
                for other in (_SMOE, "XMoE", _V1)
                for check in _contrasts("excess", "fixed router", other)
            ),
        ),
        note="Two small Switch entries of the fixed router cannot be read and are left out.",
    ),
    Claim(
        "compete-v1.table-4",
        "Table 4",
        "lambda = 0.05 is better than 0.01.",
        checks=_ablations(["v1, lambda = 0.01"], "v1"),
    ),
    Claim(
        "compete-v1.table-5",
        "Table 5",
        "By the printed numbers alpha = 5 is better than 25.",
        checks=(Printed(printed.COMPETE_V1_TABLE_5_BEST),),
        note=_READ,
    ),
    Claim(
        "compete-v1.table-5.contrast",
        "Table 5",
        "Runs with alpha = 5 are better than with 25.",
        checks=_ablations(["v1, alpha = 25"], "v1"),
    ),
    Claim(
        "compete-v1.table-9",
        "Table 9",
        "The t test of the two times five runs has p = 0.016.",
        checks=(Printed(printed.COMPETE_V1_TABLE_9),),
    ),
    Claim(
        "compete-v1.table-10",
        "Table 10, App. C.5",
        "The router's entropy is lower under CompeteSMoE than under SMoE.",
        checks=_contrasts("router_entropy", _SMOE, _V1),
    ),
    Claim(
        "compete-v1.table-3",
        "Table 3",
        "By the printed numbers CompeteSMoE has the highest accuracy after finetuning.",
        checks=(Printed(printed.COMPETE_V1_TABLE_3),),
        note=_READ,
    ),
    Claim(
        "attention.table-2",
        "Table 2, Sec. 5.2",
        "By the printed numbers sigmoid attention scores higher than softmax attention on most"
        " tasks, at a higher throughput.",
        checks=(Printed(printed.ATTENTION_TABLE_2),),
        note=_READ + "  It is lower on PIQA and SciQ, and the throughputs' intervals overlap.",
    ),
    Claim(
        "compete-v1.table-4.text",
        "Sec. 6.4.1 against Tables 4 and 9",
        "From lambda = 0.03 on CompeteSMoE consistently outperforms SMoE.",
        checks=(Printed(printed.COMPETE_V1_TABLE_4),),
    ),
    Claim(
        "compete-v1.table-5.text",
        "Sec. 6.4.2 against Tables 5 and 9",
        "Any alpha of the table gives better performance than SMoE.",
        checks=(Printed(printed.COMPETE_V1_TABLE_5),),
    ),
    Claim(
        "compete-v1.table-10.text",
        "App. C.5 against Table 10",
        "CompeteSMoE has lower entropy in four of six routers, and on average.",
        checks=(Printed(printed.COMPETE_V1_TABLE_10),),
    ),
    Claim(
        "compete.table-4.memory",
        "Sec. 5.3 against Table 4",
        "Peak memory is up to 5% above that of the other methods.",
        checks=(Printed(printed.COMPETE_TABLE_4_MEMORY),),
    ),
    Claim(
        "compete.table-1.ranks",
        "Table 1",
        "The average ranks are those of the printed accuracies.",
        checks=(Printed(printed.COMPETE_TABLE_1_RANKS),),
    ),
    *(
        Claim(f"{paper}.{name}", place, statement, untested=_SCALE.format(scale))
        for paper, name, place, statement, scale in (
            (
                *("compete", "figures-1-11", "Figures 1 and 11, App. C.2"),
                "CompeteSMoE is better throughout training, and after 8 hours than others after"
                " 14.",
                "a model of 5 billion parameters",
            ),
            (
                *("compete", "figure-6", "Figure 6"),
                "Output norms are larger in the middle layers only.",
                "a model of 1 billion parameters",
            ),
            (
                *("compete", "figure-7", "Figure 7"),
                "Overlap with the competition grows and the distillation loss falls in training.",
                "a model of 1 billion parameters; compete.training.imitation is the small runs'",
            ),
            (
                *("compete", "figure-8", "Figure 8"),
                "CompeteSMoE is better than SMoE for K = 2, 4 and 8 of 24 experts.",
                "a model of 0.3 billion parameters",
            ),
            (
                *("compete", "figure-9", "Figure 9, App. E (a)"),
                "Entropy of expert choice is lower in the middle layers on perception tasks.",
                "a model of 5 billion parameters",
            ),
            (
                *("compete-v1", "figure-2", "Figure 2"),
                "CompeteSMoE has the lowest validation loss throughout training.",
                "models of 15 to 36 million parameters",
            ),
            (
                *("compete-v1", "figure-3", "Figure 3"),
                "CompeteSMoE is better than SMoE and a fixed router at every number of active"
                " experts.",
                "models of 15 million parameters",
            ),
            (
                *("compete-v1", "figure-4", "Figure 4, App. C.5"),
                "Router outputs are sharper under CompeteSMoE.",
                "models of 15 million parameters",
            ),
        )
    ),
)
