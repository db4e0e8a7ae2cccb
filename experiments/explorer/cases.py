"""The bounds of the papers as cases for the explorer: truth, loss, radii and what is expected.

An expectation is the theorem's own, or that of the algebra in the case's note where it contradicts
the theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.registry import UnknownNameError
from moestat.base.types import FloatArray
from moestat.model.axes import family
from moestat.model.designs import Design, Uniform
from moestat.model.family import Family
from moestat.theory.explorer._explore import deviation_loss, explore
from moestat.theory.explorer._result import Exploration

__all__ = ["CASES", "Case", "quick_search", "run_case"]


@dataclass(frozen=True)
class Case:
    """A bound ``d >~ D`` at one truth, and what the explorer should find.

    Parameters
    ----------
    name : str
        Name in `CASES`.
    source : str
        Paper and theorem.
    setting : str
        Gate, expert and cells in words.
    truth : mapping
        Options of `moestat.family` with a table ``blocks``.
    n_experts : int
        Number k of fitted atoms.
    loss : str or mapping
        D, as `moestat.metrics.losses.make_loss` takes it.
    radii : tuple of float
        First and last value of D, and their number.
    expected : str
        Verdict of the exploration that theory predicts: ``bounded``, ``falls`` or ``zero``.
    band : (float, float) or None
        Where the exponent of d against D must lie.
    note : str
        Why, where it is not the theorem itself.
    deviations : bool
        Whether D is taken with all exponents 1, so that the exponent is the order of a deviation.
    cells : tuple of tuple of int, or None
        As in `explore`.
    expert_splits : bool
        As in `explore`.
    design : Design
        Law of X.
    """

    name: str
    source: str
    setting: str
    truth: Mapping[str, Any]
    n_experts: int
    loss: str | Mapping[str, object]
    radii: tuple[float, float, int]
    expected: str
    band: tuple[float, float] | None = None
    note: str = ""
    deviations: bool = False
    cells: tuple[tuple[int, ...], ...] | None = None
    expert_splits: bool = False
    design: Design = field(default_factory=lambda: Uniform(-2.0, 2.0))

    def families(self) -> tuple[Family, Family, FloatArray]:
        """Fitted family, true family and packed truth."""
        options = dict(self.truth)
        likelihood, blocks = options.pop("likelihood"), options.pop("blocks")
        true_family = family(likelihood, **options)
        return true_family.with_experts(self.n_experts), true_family, true_family.pack(blocks)

    def ladder(self, count: int | None = None) -> list[float]:
        """Decreasing values of D, from the first to the last, in equal ratios."""
        first, last, number = self.radii
        return np.geomspace(first, last, count or number).tolist()


def run_case(
    case: str | Case,
    *,
    starts: int = 2,
    n_radii: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Exploration:
    """Explore one of the named cases.

    Parameters
    ----------
    case : str or Case
        A name in `CASES`, or a case.
    starts : int
        Random starts per pinned deviation, as in `explore`.
    n_radii : int, optional
        Number of values of D; the case's own by default.
    progress : callable, optional
        As in `explore`.

    Returns
    -------
    Exploration
        What was found.

    Raises
    ------
    UnknownNameError
        If no case has this name.

    Examples
    --------
    With unit masses every atom of the truth twice has the truth's density, but not its masses.

    >>> found = run_case("compete-J1-unit")
    >>> found.verdict, found.rungs[0].loss, found.rungs[0].distance
    ('zero', 2.0, 0.0)
    """
    if isinstance(case, str):
        if case not in CASES:
            raise UnknownNameError(f"unknown case {case!r}; known: {', '.join(CASES)}")
        case = CASES[case]
    fitted, true_family, truth = case.families()
    return explore(
        fitted,
        true_family,
        truth,
        deviation_loss(case.loss) if case.deviations else case.loss,
        case.ladder(n_radii),
        design=case.design,
        starts=starts,
        cells=case.cells,
        expert_splits=case.expert_splits,
        progress=progress,
    )


def _gaussian(gate: str, **blocks: object) -> dict[str, object]:
    """Two lines that cross, as in the experiments on Gaussian experts."""
    lines = {"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]}
    return {"likelihood": "gaussian", "gate": gate, "blocks": {**blocks, **lines}}


def _network(gate: str, **blocks: object) -> dict[str, object]:
    """Two networks with one hidden unit each."""
    units = {"W1": [[[1.5]], [[-1.0]]], "b1": [[0.5], [0.3]], "W2": [[1.5], [-1.2]]}
    return {
        "likelihood": "gaussian",
        "gate": gate,
        "expert": {"name": "ffn", "hidden": 1},
        "blocks": {**blocks, **units, "nu": [0.25, 0.16]},
    }


def _neurons() -> dict[str, object]:
    """Two GELU neurons without output weight, at the networks' slopes and intercepts."""
    units = {"alpha": [[1.5], [-1.0]], "beta": [0.5, 0.3]}
    return {
        "likelihood": "gaussian",
        "gate": "competition-free",
        "expert": _GELU,
        "blocks": {"c": [0.4, 0.0], **units, "nu": [0.25, 0.16]},
    }


def _classes(gate: str, **blocks: list[Any]) -> dict[str, object]:
    """Classes with two experts; a and b have one row per expert and one column per class."""
    count = len(blocks["b"][0])
    return {"likelihood": "multinomial", "gate": gate, "n_classes": count, "blocks": blocks}


def _attention(gate: str, expert: Mapping[str, object], **blocks: object) -> dict[str, object]:
    return {"likelihood": "least-squares", "gate": gate, "expert": expert, "blocks": blocks}


# The truths of the microscope on mlmoe, well conditioned and identified on [-3, 3].
_SIGMOID = _classes(
    "sigmoid",
    **{"gamma": [0.0, 0.0], "alpha": [-3.0, -1.0], "beta": [1.0, -2.0]},
    a=[[2.0, -3.0, 0.0], [-1.0, 2.0, 0.0]],
    b=[[-0.5, -2.0, 0.0], [0.5, -2.0, 0.0]],
)
_INNER = _classes(
    "sigmoid-inner",
    **{"gamma": [-1.0, 0.0], "alpha": [-1.5, -1.0], "beta": [0.5, -1.5], "tau": 0.5},
    a=[[2.5, -3.0, 0.0], [0.5, 1.0, 0.0]],
    b=[[1.0, 0.5, 0.0], [1.0, -1.0, 0.0]],
)
_EUCLIDEAN = _classes(
    "sigmoid-euclidean",
    **{"gamma": [0.0, 0.0], "alpha": [2.0, -2.5], "beta": [-1.0, -0.5], "tau": 0.5},
    a=[[-1.5, 3.0, 0.0], [2.5, 0.5, 0.0]],
    b=[[-2.0, 0.5, 0.0], [-0.5, 0.5, 0.0]],
)
# The printed truths of Tables 2 and 4.
_TABLE_2 = _classes(
    "sigmoid",
    **{"gamma": [0.2, -0.3], "alpha": [-1.0, 1.0], "beta": [-0.5, 0.5]},
    a=[[0.0, -1.0], [0.0, 0.0]],
    b=[[-1.0, 1.0], [0.0, 2.0]],
)
_TABLE_4 = _classes(
    "sigmoid-euclidean",
    **{"gamma": [1.0, -1.0], "alpha": [-5.0, 5.0], "beta": [-0.5, 0.5], "tau": 2.0},
    a=[[-1.0, 0.0], [1.0, 0.0]],
    b=[[2.0, 0.0], [-1.0, 0.0]],
)
_GELU = {"name": "activation", "activation": "gelu", "weighted": False}
_WEIGHTED_GELU = {"name": "activation", "activation": "gelu"}
_LINEAR = {"name": "polynomial", "degree": 1}
_EXPERTS = {"alpha": [2.0, -1.5], "beta": [0.5, 1.0]}
# Sparse regime: the first atom, which is fitted twice, has the gate 0; dense regime: none has.
_SPARSE = {"A": [0.0, 0.8], "b": [0.0, -0.6], "c": [0.3, -0.2]}
_DENSE = {"A": [-0.7, 0.8], "b": [0.9, -0.6], "c": [0.3, -0.2]}
_SPARSE_PARTIAL = {"A": [0.0, 0.8], "c": [0.3, -0.2]}
_DENSE_PARTIAL = {"A": [-0.7, 0.8], "c": [0.3, -0.2]}

_UNIT, _THREE = Uniform(0.0, 1.0), Uniform(-3.0, 3.0)
_RADII = (1e-4, 1e-7, 4)
_WIDE = (1e-1, 1e-3, 3)  # where d = 0 is expected: a slow rate would not look like it
_BOUNDED = (0.9, 1.1)

_ALL = (
    Case(
        "mlmoe-1",
        "Pham et al. (2026), Theorem 1",
        "sigmoid gate, cells of one and two",
        _SIGMOID,
        3,
        "D1",
        _RADII,
        "bounded",
        _BOUNDED,
        design=_THREE,
    ),
    Case(
        "mlmoe-1-table-2",
        "Pham et al. (2026), Theorem 1",
        "sigmoid gate, the truth of Table 2, cells of one",
        _TABLE_2,
        2,
        "D1",
        _WIDE,
        "zero",
        note="scores are opposite: sigma(-s) = exp(-s) sigma(s)",
        design=_UNIT,
    ),
    Case(
        "mlmoe-2",
        "Pham et al. (2026), Theorem 2",
        "inner product with a temperature, r = 2",
        _INNER,
        3,
        {"name": "D2r", "r": 2},
        _WIDE,
        "zero",
        note="(alpha, beta, tau) times a factor is the same density: a ridge, not a slow rate",
        design=_THREE,
    ),
    Case(
        "mlmoe-2-identified",
        "Pham et al. (2026), Theorem 2",
        "the same at the truth's temperature, r = 2",
        _INNER,
        3,
        {"name": "D2r-identified", "r": 2},
        _RADII,
        "bounded",
        (0.4, 1.1),
        note="without the ridge it is the gate of Theorem 1; cells of one have d ~ D^(1/2)",
        design=_THREE,
    ),
    Case(
        "mlmoe-3",
        "Pham et al. (2026), Theorem 3",
        "Euclidean score with a temperature, cells of one and two",
        _EUCLIDEAN,
        3,
        "D3",
        _RADII,
        "bounded",
        _BOUNDED,
        design=_THREE,
    ),
    Case(
        "mlmoe-3-table-4",
        "Pham et al. (2026), Theorem 3",
        "Euclidean score, the truth of Table 4, cells of one",
        _TABLE_4,
        2,
        "D3",
        _WIDE,
        "zero",
        note="alpha lies outside [0, 1], where |alpha - x| is linear in x",
        design=_UNIT,
    ),
    Case(
        "attention-1",
        "Yan et al. (2025), Theorem 1",
        "sparse regime, GELU experts without output weight",
        _attention("sigmoid-quadratic", _GELU, **_SPARSE, **_EXPERTS),
        3,
        "L1",
        (0.3, 3e-3, 5),
        "falls",
        note="where A = b = 0, d2F/db2 = (sigma''/sigma') dF/dA for any expert: Definition 1 fails",
        design=_THREE,
    ),
    Case(
        "attention-1-weighted",
        "Yan et al. (2025), Theorem 1",
        "sparse regime, GELU experts with output weight, the paper's example",
        _attention("sigmoid-quadratic", _WEIGHTED_GELU, **_SPARSE, **_EXPERTS)
        | {
            "blocks": {**_SPARSE, **_EXPERTS, "lambda": [1.0, -0.8]},
        },
        3,
        "L1",
        _WIDE,
        "zero",
        note="lambda is linear: weights lambda* + h and lambda* - h under one gate cancel",
        design=_THREE,
    ),
    Case(
        "attention-2",
        "Yan et al. (2025), Theorem 2",
        "sparse regime, linear experts, r = 2",
        _attention("sigmoid-quadratic", _LINEAR, **_SPARSE, **_EXPERTS),
        3,
        {"name": "L2r", "r": 2},
        _WIDE,
        "zero",
        note="experts eta* + h and eta* - h under one gate cancel: a ridge, not a slow rate",
        design=_THREE,
    ),
    Case(
        "attention-3",
        "Yan et al. (2025), Theorem 3",
        "dense regime, linear experts, to the set of best approximations",
        _attention("sigmoid-quadratic", _LINEAR, **_DENSE, **_EXPERTS),
        3,
        "dense-L3",
        (0.1, 1e-3, 5),
        "falls",
        note="near eta*/2 + eta*/2 under one gate, gates moved by +q and -q cancel to first order",
        expert_splits=True,
        design=_THREE,
    ),
    Case(
        "attention-4",
        "Yan et al. (2025), Theorem 4",
        "partial score, sparse regime, GELU experts without output weight",
        _attention("sigmoid-partial", _GELU, **_SPARSE_PARTIAL, **_EXPERTS),
        3,
        "L4",
        _RADII,
        "bounded",
        _BOUNDED,
        design=_THREE,
    ),
    Case(
        "attention-4-linear",
        "Yan et al. (2025), Theorem 4",
        "partial score, sparse regime, linear experts, which the paper says qualify",
        _attention("sigmoid-partial", _LINEAR, **_SPARSE_PARTIAL, **_EXPERTS),
        3,
        "L4",
        _WIDE,
        "zero",
        note="experts eta* + h and eta* - h under one gate cancel, with either score",
        design=_THREE,
    ),
    Case(
        "attention-5",
        "Yan et al. (2025), Theorem 5",
        "partial score, dense regime, linear experts, to the set of best approximations",
        _attention("sigmoid-partial", _LINEAR, **_DENSE_PARTIAL, **_EXPERTS),
        3,
        "dense-L5",
        (0.1, 1e-3, 5),
        "falls",
        note="near eta*/2 + eta*/2 under one gate, gates moved by +q and -q cancel to first order",
        expert_splits=True,
        design=_THREE,
    ),
    Case(
        "compete-32-unit",
        "Nguyen et al. (2025), Theorem 3.2",
        "networks, unit masses as printed, every atom twice",
        _network("competition"),
        4,
        {"name": "competition-L1", "masses": "given"},
        _WIDE,
        "zero",
        note="the printed loss counts masses that the printed gate does not have",
    ),
    Case(
        "compete-32",
        "Nguyen et al. (2025), Theorem 3.2",
        "networks, free masses, cells of one and two",
        _network("competition-free", c=[0.4, 0.0]),
        3,
        "competition-L1",
        (1e-3, 1e-6, 4),
        "bounded",
        _BOUNDED,
    ),
    Case(
        "compete-32-order",
        "Nguyen et al. (2025), Theorem 3.2",
        "the same: order of the worst deviation",
        _network("competition-free", c=[0.4, 0.0]),
        3,
        "competition-L1",
        (3e-2, 1e-3, 4),
        "falls",
        (1.8, 2.2),
        deviations=True,
    ),
    Case(
        "compete-32-neurons",
        "Nguyen et al. (2025), Theorem 3.2",
        "GELU neurons without output weight, free masses, cells of one and two",
        _neurons(),
        3,
        "competition-L1",
        (1e-3, 1e-6, 4),
        "bounded",
        _BOUNDED,
    ),
    Case(
        "compete-32-neurons-order",
        "Nguyen et al. (2025), Theorem 3.2",
        "the same: order of the worst deviation",
        _neurons(),
        3,
        "competition-L1",
        (3e-2, 1e-3, 4),
        "falls",
        (1.8, 2.2),
        deviations=True,
    ),
    Case(
        "compete-J1-unit",
        "Nguyen et al. (2025), Theorem J.1",
        "lines, unit masses as printed, every atom twice",
        _gaussian("competition"),
        4,
        {"name": "competition-L2", "masses": "given"},
        _WIDE,
        "zero",
        note="the printed loss counts masses that the printed gate does not have",
    ),
    Case(
        "compete-J1-normalised",
        "Nguyen et al. (2025), Theorem J.1",
        "lines, masses 1 / N, every atom twice",
        _gaussian("competition-normalised"),
        4,
        "competition-L2",
        (1e-3, 1e-6, 4),
        "bounded",
        _BOUNDED,
    ),
    Case(
        "compete-J1",
        "Nguyen et al. (2025), Theorem J.1",
        "lines, free masses, cells of one and two",
        _gaussian("competition-free", c=[0.4, 0.0]),
        3,
        "competition-L2",
        (1e-3, 1e-6, 4),
        "bounded",
        _BOUNDED,
    ),
    Case(
        "compete-J1-order",
        "Nguyen et al. (2025), Theorem J.1",
        "the same: order of the worst deviation",
        _gaussian("competition-free", c=[0.4, 0.0]),
        3,
        "competition-L2",
        (3e-2, 1e-3, 4),
        "falls",
        (1.8, 2.2),
        deviations=True,
    ),
    Case(
        "compete-v1-42",
        "Pham et al. (2024), Theorem 4.2",
        "top 1 of two lines, exactly specified",
        {
            **_gaussian("competition-top"),
            "gate": {"name": "competition-top", "active": 1},
        },
        2,
        {"name": "competition-top-D", "active": 1},
        _RADII,
        "bounded",
        _BOUNDED,
    ),
    Case(
        "softmax-2",
        "Nguyen et al. (2023), over-specified setting",
        "softmax gate, lines, cells of one and two",
        _gaussian("softmax", beta0=[0.3, 0.0], beta1=[1.0, 0.0]),
        3,
        "gaussian-softmax-D",
        (1e-6, 1e-9, 4),
        "bounded",
        _BOUNDED,
    ),
    Case(
        "softmax-2-order",
        "Nguyen et al. (2023), over-specified setting",
        "the same: order of the worst deviation, rbar(2) = 4",
        _gaussian("softmax", beta0=[0.3, 0.0], beta1=[1.0, 0.0]),
        3,
        "gaussian-softmax-D",
        (5e-3, 5e-4, 4),
        "falls",
        (3.7, 4.2),
        deviations=True,
    ),
    Case(
        "softmax-3-order",
        "Nguyen et al. (2023), over-specified setting",
        "cells of one and three: order of the worst deviation, rbar(3) = 6",
        _gaussian("softmax", beta0=[0.3, 0.0], beta1=[1.0, 0.0]),
        4,
        "gaussian-softmax-D",
        (0.06, 0.006, 5),
        "falls",
        (5.6, 6.2),
        deviations=True,
        cells=((3, 1), (1, 3)),
    ),
    Case(
        "softmax-4-order",
        "Nguyen et al. (2023), over-specified setting",
        "cells of one and four: order of the worst deviation, rbar(4) = 8",
        _gaussian("softmax", beta0=[0.3, 0.0], beta1=[1.0, 0.0]),
        5,
        "gaussian-softmax-D",
        (0.06, 0.023, 4),
        "falls",
        (7.5, 8.3),
        note="below D = 0.023 the distance is less than its rounding, 1e-13",
        deviations=True,
        cells=((4, 1), (1, 4)),
    ),
    Case(
        "softmax-22",
        "Nguyen et al. (2023), over-specified setting",
        "softmax gate, lines, every cell of two",
        _gaussian("softmax", beta0=[0.3, 0.0], beta1=[1.0, 0.0]),
        4,
        "gaussian-softmax-D",
        _WIDE,
        "zero",
        note="gates beta1 +- h in every cell multiply all cells by cosh(h x), which cancels",
        cells=((2, 2),),
    ),
)

CASES: Mapping[str, Case] = {case.name: case for case in _ALL}
"""Cases by name."""


def quick_search(case: str | Case) -> Exploration:
    """Explore one of the named cases at three values of D, with one start per deviation.

    Parameters
    ----------
    case : str or Case
        As in `run_case`.

    Returns
    -------
    Exploration
        What was found.
    """
    return run_case(case, starts=1, n_radii=3)
