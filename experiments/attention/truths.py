"""Draws the truths of the attention experiments and writes their specs.

    python -m experiments.attention.truths            all specs but the targets' fits
    python -m experiments.attention.truths --fit      computes the targets of Figure 1 again

Yan et al. (2025), App. E.1.1: gates (A, b, c) and experts (alpha, beta) are independent normal with
variance 1 / d; in the sparse regime the gates of the last two atoms are 0.  Only the symmetric part
of A matters, so that is what is written, packed as in `moestat.base.symmetric`.  A draw with an
expert that is active on less than 10% or more than 90% of the inputs is thrown away (a ReLU that is
always active is a linear expert, one that never is is dead); the shares stand beside each truth.
Numbers are rounded to four digits before anything else is done with them.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import moestat
from experiments.attention.approximation import best_approximations
from experiments.folders import EXPERIMENTS
from moestat.base.symmetric import pack_symmetric
from moestat.solvers import GaussNewtonBFGS
from moestat.sweep import load_spec

TARGETS = EXPERIMENTS / "attention_targets.json"
CUBE = moestat.Uniform(-1.0, 1.0)
RELU = {"name": "activation", "activation": "relu", "weighted": False}
GELU = {"name": "activation", "activation": "gelu", "weighted": False}
LINEAR = {"name": "polynomial", "degree": 1}
SQUARE = {"name": "polynomial", "degree": 2}
SEED, NOISE, SHARES = 20_250_204, 0.01, (0.1, 0.9)


def draw(d: int, n_experts: int, zero: int, partial: bool, seed: int) -> tuple[dict, np.ndarray]:
    """Blocks of a truth with `zero` atoms of gate 0, and the active share of each expert."""
    rng = np.random.default_rng([SEED, seed])
    X = np.random.default_rng(SEED).uniform(-1.0, 1.0, size=(20_000, d))
    while True:
        scale = d**-0.5
        A = pack_symmetric(scale * rng.normal(size=(n_experts, d, d)))
        blocks = {"A": A, "b": scale * rng.normal(size=(n_experts, d))}
        blocks["c"] = scale * rng.normal(size=n_experts)
        for block in blocks.values():
            block[n_experts - zero :] = 0.0
        blocks["alpha"] = scale * rng.normal(size=(n_experts, d))
        blocks["beta"] = scale * rng.normal(size=n_experts)
        blocks = {name: np.round(block, 4) for name, block in blocks.items()}
        share = np.mean(X @ blocks["alpha"].T + blocks["beta"] > 0.0, axis=0)
        if share.min() >= SHARES[0] and share.max() <= SHARES[1]:
            break
    if partial:
        del blocks["b"]
    return blocks, share


def inline(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(inline, value)) + "]"
    return f"{value:g}"


def number(x: float) -> str:
    """A number with at most four decimals."""
    return f"{x:.4f}".rstrip("0").rstrip(".") if x else "0"


def truth_text(name: str, gate: str, expert: dict, blocks: dict, share=None, note="") -> str:
    """A truth as a table of TOML."""
    d = blocks["alpha"].shape[1]
    lines = [f"[truth.{name}]"]
    if note:
        lines += [f"# {note}"]
    if share is not None:
        lines += ["# active share of each expert: " + ", ".join(f"{s:.2f}" for s in share)]
    lines += [
        'likelihood = "least-squares"',
        f'gate = "{gate}"',
        f"expert = {inline(expert)}",
        f"n_features = {d}",
        f"noise = {NOISE}",
    ]
    for key, block in blocks.items():
        if block.ndim == 1:
            lines += [f"{key} = [" + ", ".join(map(number, block)) + "]"]
        else:
            rows = ["  [" + ", ".join(map(number, row)) + "]," for row in block]
            lines += [f"{key} = [", *rows, "]"]
    return "\n".join(lines) + "\n"


def curve_text(**entries: object) -> str:
    """A curve as a table of TOML."""
    return "[[curve]]\n" + "\n".join(f"{k} = {inline(v)}" for k, v in entries.items()) + "\n"


UNIFORM = '[design]\nlaw = "uniform"\nlow = -1.0\nhigh = 1.0\n'
LATTICE = '[design]\nlaw = "lattice"\nlow = -1.0\nhigh = 1.0\nnodes = 12\n'


def spec_text(
    title: str,
    comment: str,
    sizes: list[int] | str,
    replicates: int,
    parts: list[str],
    design: str = UNIFORM,
) -> str:
    """A whole spec."""
    head = "".join(f"# {line}\n" for line in comment.strip().splitlines())
    return (
        f"{head}# Written by experiments.attention.truths, which draws the truths.\n\n"
        f'title = "{title}"\nseed = {SEED}\nreplicates = {replicates}\nn = {sizes}\n\n'
        f"{design}\n" + "\n".join(parts)
    )


SGD = {"name": "sgd", "epochs": 10, "learning_rate": 0.1, "batch_size": 32}
LEAST_SQUARES = {"name": "gauss-newton-bfgs"}
SIZES, REPLICATES = [1000, 4642, 21_544, 100_000], 3
KINDS = {"relu": RELU, "linear": LINEAR}
# By gate of the truth, regime and expert.
PUBLISHED = {
    ("softmax", "softmax", "relu"): -0.24,
    ("softmax", "sigmoid", "relu"): -0.51,
    ("softmax", "sigmoid", "linear"): -0.46,
    ("softmax", "softmax", "linear"): -0.07,
    ("sparse", "relu"): -0.54,
    ("sparse", "linear"): -0.07,
    ("dense", "relu"): -0.53,
    ("dense", "linear"): -0.44,
}


def big(gate: str, regime: str, kind: str) -> str:
    """A truth with d = 8 and eight experts."""
    blocks, share = draw(8, 8, 2 if regime == "sparse" else 0, False, 0 if kind == "relu" else 1)
    return truth_text(f"{regime}-{kind}", f"{gate}-quadratic", KINDS[kind], blocks, share)


def two_ways(name: str, shown: dict, starts: list[dict]) -> list[str]:
    """One curve as published, by gradient descent, and as certified least squares."""
    return [
        curve_text(
            name=f"{name}, SGD", **shown, solver=SGD, starts=starts[0], require_certificate=False
        ),
        curve_text(
            name=f"{name}, least squares",
            **{key: value for key, value in shown.items() if key != "published"},
            solver=LEAST_SQUARES,
            starts=starts[1],
            note="Local least-squares estimates: see the share of fits whose starts agree.",
        ),
    ]


STARTS = [{"truth": 1, "noise": 0.2}, {"truth": 2, "noise": 0.1}]
FAR = {"truth": 3, "noise": 0.1}
SHARED = {"measure": 8, "noise": [0.1, 1.0]}
APART = {"truth": 4, "noise": [0.1, 1.0]}
COST = (
    "d = 8, N* = 8, N = 9: about a quarter of an hour on two cores, most of it the largest n.\n"
    "No theorem line is drawn: Theorems 1 and 3, which have -1/2, are vacuous as printed\n"
    "(figures/theory_claims.md)."
)


def figure1_curves(kind: str) -> list[tuple[str, dict]]:
    """Curves of one panel of Figure 1 by name: both gates on data of softmax gates."""
    truth = f"dense-{kind}"
    soft = {
        "truth": truth,
        "n_experts": 9,
        "loss": "softmax-L1",
        "also": ["softmax-L3", "regression-error"],
        "panel": kind,
        "published": PUBLISHED["softmax", "softmax", kind],
    }
    hard = {
        "truth": truth,
        "n_experts": 9,
        "gate": "sigmoid-quadratic",
        "loss": "L3",
        "target": f"target-{kind}",
        "also": ["L1", "regression-error"],
        "panel": kind,
        "published": PUBLISHED["softmax", "sigmoid", kind],
    }
    return [(f"softmax, {kind}", soft), (f"sigmoid, {kind}", hard)]


def figure2_curves(regime: str, kind: str) -> list[tuple[str, dict]]:
    """The curve of Figure 2 of one regime and expert."""
    loss: object = "L3"
    if regime == "sparse":
        loss = "L1" if kind == "relu" else {"name": "L2r", "r": 2}
    further = ["dense-L3"] if regime == "dense" else ["L3"]
    shown = {
        "truth": f"{regime}-{kind}",
        "n_experts": 9,
        "loss": loss,
        "also": [*further, "regression-error"],
        "panel": regime,
        "published": PUBLISHED[regime, kind],
    }
    return [(f"{regime}, {kind}", shown)]


def fit_targets() -> dict:
    """Best approximations of the softmax truths of Figure 1 by sigmoid gates."""
    out = {}
    for kind in KINDS:
        blocks, _ = draw(8, 8, 0, False, 0 if kind == "relu" else 1)
        options = {"expert": KINDS[kind], "n_features": 8}
        soft = moestat.family("least-squares", gate="softmax-quadratic", n_experts=8, **options)
        raw = moestat.family("least-squares", gate="sigmoid-quadratic", n_experts=9, **options)
        found = best_approximations(
            raw,
            soft,
            soft.pack(blocks),
            CUBE,
            n=10_000,
            solver=GaussNewtonBFGS(),
            rng=SEED,
        )
        out[kind] = {
            "blocks": {name: b.round(4).tolist() for name, b in raw.unpack(found[0].theta).items()},
            "errors": [round(one.error, 5) for one in found],
            "gaps": [round(one.gap, 2) for one in found],
        }
        print(kind, out[kind]["errors"], out[kind]["gaps"], [one.status for one in found])
    return out


def target_text(kind: str, target: dict) -> str:
    """A best approximation as a truth to compare with."""
    blocks = {name: np.array(target["blocks"][name]) for name in ("A", "b", "c", "alpha", "beta")}
    note = (
        "best approximation found of the truth by raw sigmoid gates; L2 errors of the starts: "
        f"{target['errors']}, distances of their parameters to this one's: {target['gaps']}"
    )
    return truth_text(f"target-{kind}", "sigmoid-quadratic", KINDS[kind], blocks, note=note)


SMALL = (
    "sparse and dense regimes, four experts, two gates.\n"
    "d = 2, N* = 2, N = 3, by certified least squares and by gradient descent as in Figures 1 and"
    " 2.\nThe paper has no experiment of this kind: no slope is published."
)


def small(gate: str, regime: str, name: str, expert: dict, partial: bool) -> str:
    """A truth with d = 2 and two experts."""
    blocks, share = draw(2, 2, 1 if regime == "sparse" else 0, partial, 2)
    return truth_text(name, gate, expert, blocks, share)


def microscope() -> list[str]:
    """Truths and curves of the microscope: exact fits, and over-specified ones in both regimes."""
    experts = {"relu": RELU, "gelu": GELU, "linear": LINEAR}
    truths, curves = [], []
    for gate in ("sigmoid", "softmax"):
        before = "softmax-" if gate == "softmax" else ""
        for kind, expert in experts.items():
            for regime in ("dense", "sparse"):
                name = f"{gate}-{regime}-{kind}"
                truths += [small(f"{gate}-quadratic", regime, name, expert, False)]
            kinks = {
                "require_certificate": False,
                "note": "Fits often end on kinks, where some stay uncertified: all enter.",
            }
            for label, regime, n_experts, loss in (
                ("exact", "dense", 2, "L1"),
                ("sparse, N* + 1", "sparse", 3, "L1"),
                ("dense, N* + 1", "dense", 3, "L3"),
            ):
                closed = loss == "L3" and gate == "sigmoid" and kind in ("relu", "linear")
                slow = kind == "linear" and label.startswith("sparse")
                # Weights of softmax gates are shares of one; those of sigmoid gates are not.
                more = SHARED if gate == "softmax" else APART
                starts = FAR if n_experts == 2 else more
                solver = "levenberg-marquardt"
                if n_experts == 3:
                    solver = "gauss-newton-bfgs" if kind == "relu" else "moment-squares"
                curves += [
                    curve_text(
                        name=f"{gate}, {kind}, {label}",
                        panel=f"{gate}, {kind}",
                        truth=f"{gate}-{regime}-{kind}",
                        n_experts=n_experts,
                        loss=before + loss,
                        also=["regression-error", *(["dense-L3"] if closed else [])],
                        **({} if slow else {"theory": -0.5}),
                        solver={"name": solver},
                        starts=starts,
                        **(kinks if kind == "relu" else {}),
                    )
                ]
    return [*truths, *curves]


def write(name: str, text: str) -> None:
    """Write a spec and check it."""
    (EXPERIMENTS / f"{name}.toml").write_text(text)
    load_spec(EXPERIMENTS / f"{name}.toml")


def main() -> None:
    """Write all specs."""
    if "--fit" in sys.argv:
        TARGETS.write_text(json.dumps(fit_targets(), indent=1) + "\n")
    targets = json.loads(TARGETS.read_text())
    one, two, sensitive = [], [], []
    for kind in KINDS:
        one += [big("softmax", "dense", kind), target_text(kind, targets[kind])]
    for regime in ("sparse", "dense"):
        two += [big("sigmoid", regime, kind) for kind in KINDS]
    for kind in KINDS:
        for name, shown in figure1_curves(kind):
            one += two_ways(name, shown, STARTS)
    for regime in ("sparse", "dense"):
        for kind in KINDS:
            for name, shown in figure2_curves(regime, kind):
                two += two_ways(name, shown, STARTS)
    write(
        "attention_figure1",
        spec_text(
            "Softmax and sigmoid gates on data of softmax gates",
            "Yan et al. (2025), Figure 1, as published and as certified least squares.\n" + COST,
            SIZES,
            REPLICATES,
            one,
        ),
    )
    write(
        "attention_figure2",
        spec_text(
            "Sigmoid gates, well specified, in the sparse and the dense regime",
            "Yan et al. (2025), Figure 2, as published and as certified least squares.\n" + COST,
            SIZES,
            REPLICATES,
            two,
        ),
    )
    truths = [part for part in (*one, *two) if part.startswith("[truth")]
    # The softmax truths need names of their own beside the sigmoid ones.
    soft = [part.replace("[truth.dense-", "[truth.softmax-", 1) for part in truths[:4]]
    curves = [pair for kind in KINDS for pair in figure1_curves(kind)]
    curves = [
        (name, {**shown, "truth": shown["truth"].replace("dense-", "softmax-")})
        for name, shown in curves
    ]
    for regime in ("sparse", "dense"):
        curves += [pair for kind in KINDS for pair in figure2_curves(regime, kind)]
    for name, shown in curves:
        for noise, decay in ((0.2, 0.0), (3.0, 0.25), (3.0, 0.5)):
            starts = {"truth": 1, "noise": noise, "decay": decay}
            entry = {**shown, "panel": name, "solver": SGD, "starts": starts}
            label = f"{name}, start n^-{decay:g}"
            sensitive += [curve_text(name=label, **entry, require_certificate=False)]
    write(
        "attention_start_sensitivity",
        spec_text(
            "What the exponent of the start's noise does to the measured slope",
            "The eight curves of Yan et al. (2025), Figures 1 and 2, by gradient descent from"
            " starts"
            "\nwhose noise falls like n^-decay.  About a quarter of an hour on two cores.",
            SIZES,
            REPLICATES,
            [*soft, *truths[4:], *sensitive],
        ),
    )
    partial, table = [], []
    experts = {"relu": RELU, "gelu": GELU, "linear": LINEAR, "square": SQUARE}
    for regime in ("sparse", "dense"):
        for gate in ("sigmoid", "softmax"):
            for kind, expert in experts.items():
                name = f"{gate}-{regime}-{kind}"
                table += [small(f"{gate}-quadratic", regime, name, expert, False)]
                partial += [small(f"{gate}-partial", regime, name, expert, True)]
    for regime in ("sparse", "dense"):
        for gate in ("sigmoid", "softmax"):
            for kind in experts:
                before = "softmax-" if gate == "softmax" else ""
                common = {
                    "name": f"{gate}, {regime}, {kind}",
                    "truth": f"{gate}-{regime}-{kind}",
                    "n_experts": 3,
                    "panel": f"{regime}, {kind}",
                }
                certified = {"solver": LEAST_SQUARES, "starts": FAR}
                replay = {"solver": SGD, "starts": STARTS[0], "require_certificate": False}
                further = ["regression-error"]
                closed = regime == "dense" and gate == "sigmoid" and kind in ("relu", "linear")
                for parts, sparse, dense in ((table, "L1", "L3"), (partial, "L4", "L5")):
                    loss = before + (sparse if regime == "sparse" else dense)
                    # The set of best approximations is known for these experts.
                    also = [f"dense-{dense}", *further] if closed else further
                    shown = {**common, "loss": loss, "also": also}
                    parts += [
                        curve_text(**shown, **certified),
                        curve_text(**{**shown, "name": f"{shown['name']}, SGD"}, **replay),
                    ]
    write(
        "microscope_attention",
        spec_text(
            "The microscope: quadratic gates by least squares, n to 1e14",
            "Yan et al. (2025), Theorems 1, 2 and 3, with inputs on 12 x 12 Gauss-Legendre nodes:"
            " the"
            "\nmean and the variance of the responses at a node are drawn exactly, and are all that"
            "\nleast squares sees.  d = 2, N* = 2, N = 2 and 3, the truths of attention_table1.\n\n"
            "    python -m moestat.sweep run microscope_attention --out"
            " figures/microscope_attention.sqlite\n"
            "    python -m experiments.pages.microscope figures/microscope_attention.sqlite\n",
            "{ start = 1e3, stop = 1e14, num = 12 }",
            20,
            microscope(),
            LATTICE,
        ),
    )
    small_sizes = [1000, 3162, 10_000, 31_623, 100_000]
    write(
        "attention_table1",
        spec_text(
            "Rates of Table 1 at a size where large samples are cheap",
            f"Yan et al. (2025), Table 1: {SMALL}",
            small_sizes,
            5,
            table,
        ),
    )
    write(
        "attention_partial",
        spec_text(
            "Partially quadratic scores",
            f"Yan et al. (2025), App. C: {SMALL}",
            small_sizes,
            5,
            partial,
        ),
    )


if __name__ == "__main__":
    main()
