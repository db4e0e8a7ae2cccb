"""The simulation of Nguyen et al. (2023): EM as published, certified maxima, stored estimates.

    python -m experiments.pages.gaussian_published STORE [--estimates FOLDER]

writes gaussian_published.md and .png into `figures` (or the folder of --out).  FOLDER holds the
stored estimates of the authors' program, the .npy files of ``results_SGaME`` in the public
repository CRPE-SGaME, commit of May 2023; without it the page keeps to the store.

    python -m experiments.pages.gaussian_published --convert FOLDER ESTIMATES.npz

writes these estimates as ``python -m moestat.sweep score gaussian_published ESTIMATES.npz`` takes
them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.folders import FIGURES
from moestat.base.types import FloatArray
from moestat.rates.plots import save_figure
from moestat.rates.rate import RateResult
from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
from moestat.sweep.kinds.fit.scoring import Scores, score
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import open_store

__all__ = ["convert", "published_sizes"]

EXPERIMENT = "gaussian_published"
PUBLISHED = {2: "EM as published, k = 2", 3: "EM as published, k = 3", 4: "EM as published, k = 4"}
CERTIFIED = {2: "certified, k = 2", 3: "certified, k = 3", 4: "certified, k = 4"}
_FILES = {
    2: "result_model1_K2_ns_min100_ns_max100000_n_num200_rep40_ntries1",
    3: "result_model1_K3_ns_min10000_ns_max100000_n_num200_rep40_ntries5",
    4: "result_model1_K4_ns_min10000_ns_max100000_n_num200_rep40_ntries5",
}
_HEAD = ("fit", "fits", "slope, all fits", "mean", "median", "largest n: mean", "median", "alike")
_TEXT = """\
# The published simulation of Gaussian experts under softmax

Two experts, steep and far apart, on equispaced inputs (Nguyen et al. (2023), appendix), fitted by
two, three and four. *EM as published* stops at a relative change of the log-likelihood of 1e-6;
*certified* are the highest certified maxima from starts around the same measures, near and far;
*stored* are the estimates that the authors published with their program, scored here by the same
loss. What the replay changes is said in `experiments/gaussian_published.toml`. Slopes of log loss
on log n with 95% intervals; those of mean and median are of one number per n. Loss: the least over
translations of the gate, which the density does not see. *Alike*: data sets on
which the certified maximum has a log-likelihood within 0.01 of EM's; elsewhere it is higher."""
_STORED = """\
The authors' own numbers take the gate as it comes, with its last log-mass at 0: where two atoms
share the last cell each has mass 1, and their losses cluster at 1. The column *as stored* has the
slopes of the means of these numbers."""
_NO_STORED = "The stored estimates were not at hand when this page was made."


def published_sizes(k: int) -> FloatArray:
    """The 200 sample sizes of the program for k experts."""
    if k == 2:
        sizes = np.concatenate([np.linspace(100, 900, 5), np.linspace(1000, 1e5, 195)])
    else:
        sizes = np.linspace(1e4, 1e5, 200)
    return np.floor(sizes)


def convert(folder: Path) -> dict[str, Any]:
    """The stored estimates as arrays of `moestat.sweep.kinds.fit.scoring.score`.

    Parameters
    ----------
    folder : Path
        Where the .npy files are.

    Returns
    -------
    dict of str to ndarray
        ``CURVE/n`` and ``CURVE/BLOCK``; 8000 estimates for each of k = 2, 3, 4.
    """
    arrays: dict[str, Any] = {}
    for k, name in PUBLISHED.items():
        beta, line, variance = (
            np.load(folder / f"{_FILES[k]}_{part}.npy") for part in ("beta", "A", "Sigma")
        )
        gate = np.concatenate([beta, np.zeros((*beta.shape[:3], 1))], axis=3)
        blocks = {
            "beta0": gate[:, :, 0],
            "beta1": gate[:, :, 1],
            "b": line[:, :, 0],
            "a": line[:, :, 1],
            "nu": variance[:, :, 0],
        }
        repeats = beta.shape[1]
        arrays[f"{name}/n"] = np.repeat(published_sizes(k), repeats)
        arrays |= {f"{name}/{block}": each.reshape(-1, k) for block, each in blocks.items()}
    return arrays


def _slope(rate: RateResult | None) -> str:
    if rate is None:
        return ""
    low, high = rate.interval
    return f"{rate.slope:.2f} [{low:.2f}, {high:.2f}]"


def _row(name: str, n: Any, loss: Any, rates: Mapping[str, RateResult], alike: str) -> str:
    last = loss[n == n.max()]
    cells = (
        name,
        str(len(loss)),
        *(_slope(rates.get(key)) for key in ("all", "mean", "median")),
        f"{np.mean(last):.3g}",
        f"{np.median(last):.3g}",
        alike,
    )
    return "| " + " | ".join(cells) + " |"


def _alike(records: Sequence[Record], k: int) -> str:
    """Share of the data sets on which EM ends within .01 of the certified maximum."""
    by = {
        name: {(r.n, r.replicate): r.log_likelihood or np.nan for r in records if r.curve == name}
        for name in (PUBLISHED[k], CERTIFIED[k])
    }
    em, best = by[PUBLISHED[k]], by[CERTIFIED[k]]
    both = em.keys() & best.keys()
    near = [abs(best[key] - em[key]) <= 0.01 for key in both]
    higher = [em[key] > best[key] + 0.01 for key in both]
    text = f"{sum(near)} of {len(near)}"
    return f"{text}, EM higher in {sum(higher)}" if any(higher) else text


def _result(ends: Sequence[str]) -> str:
    """What the table says of EM, in a sentence before it."""
    return (
        "**EM as published ends within .01 of the certified maximum's log-likelihood on"
        f" {'; on '.join(ends)}: where it has an atom too many its slopes are those of its stopping"
        " rule.**"
    )


def page(
    summaries: Mapping[str, CurveSummary],
    records: Sequence[Record],
    stored: Mapping[str, Scores],
    losses: Mapping[int, FloatArray],
) -> str:
    """The page: one row per fit and k."""
    ends = [f"{_alike(records, k)} for k = {k}" for k in PUBLISHED]
    lines = [
        _TEXT,
        "",
        _result(ends),
        "",
        f"![Loss against the sample size](<{EXPERIMENT}.png>)",
        "",
    ]
    lines += ["| " + " | ".join(_HEAD) + " |", "|---" * len(_HEAD) + "|"]
    for k in PUBLISHED:
        for name in (PUBLISHED[k], CERTIFIED[k]):
            summary = summaries[name]
            if summary.rate is None:
                continue
            rates = {"all": summary.rate, **summary.averages}
            alike = _alike(records, k) if name == CERTIFIED[k] else ""
            fits = f"{name} ({summary.certified} of {summary.done} certified)"
            lines.append(_row(fits, summary.n, summary.loss, rates, alike))
        if PUBLISHED[k] in stored:
            own = stored[PUBLISHED[k]]
            (label,) = own.losses
            n, loss = own.finite(label)
            told = f"stored estimates, k = {k}"
            if n.size < own.n.size:
                told += f" ({own.n.size - n.size} more with a mass of 0)"
            lines.append(_row(told, n, loss, own.rates(label), ""))
    if losses:
        lines += ["", _STORED, "", "| k | as stored, slope of means | share within .1 of 1 |"]
        lines.append("|---|---|---|")
        for k, values in losses.items():
            near = float(np.mean(np.abs(values - 1.0) < 0.1))
            means = np.polyfit(np.log(published_sizes(k)), np.log(values.mean(axis=1)), 1)[0]
            lines.append(f"| {k} | {means:.2f} | {near:.0%} |")
    else:
        lines += ["", _NO_STORED]
    return "\n".join(lines) + "\n"


def draw(summaries: Mapping[str, CurveSummary], stored: Mapping[str, Scores]) -> Figure:
    """One panel per k: the median loss, and the middle half of the losses as a band."""
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, k in zip(axes, PUBLISHED, strict=True):
        shown = [
            (name, summaries[name].n, summaries[name].loss) for name in (PUBLISHED[k], CERTIFIED[k])
        ]
        if PUBLISHED[k] in stored:
            own = stored[PUBLISHED[k]]
            shown.append(("stored estimates", *own.finite(next(iter(own.losses)))))
        for colour, (name, n, loss) in zip(("#0072B2", "#D55E00", "#999999"), shown, strict=False):
            sizes = np.unique(n)
            low, middle, high = (
                [np.quantile(loss[n == size], level) for size in sizes]
                for level in (0.25, 0.5, 0.75)
            )
            ax.plot(sizes, middle, "o-", color=colour, markersize=3, linewidth=1.0, label=name)
            ax.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.set(xscale="log", yscale="log", xlabel="sample size $n$", title=f"k = {k}")
        ax.legend(fontsize=7, frameon=False)
    axes[0].set_ylabel("Voronoi loss: median and middle half")
    return figure


def main() -> None:
    """Write the page and the picture, or convert the stored estimates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("--estimates", type=Path)
    parser.add_argument("--convert", type=Path, nargs=2, metavar=("FOLDER", "ESTIMATES"))
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    if given.convert:
        np.savez_compressed(given.convert[1], **convert(given.convert[0]))
        print(given.convert[1])
        return
    if given.store is None:
        parser.error("a store, or --convert")
    with open_store(given.store) as store:
        summaries = {summary.curve.name: summary for summary in summarise(store)}
        records = [record for record in store.records() if record.status == DONE]
    stored, losses = {}, {}
    base = given.out / EXPERIMENT
    if given.estimates:
        held = base.with_suffix(".npz")
        np.savez_compressed(held, **convert(given.estimates))
        stored = {each.curve: each for each in score(load_spec(find_spec(EXPERIMENT)), held)}
        held.unlink()
        losses = {k: np.load(given.estimates / f"{_FILES[k]}_loss.npy") for k in PUBLISHED}
    base.with_suffix(".md").write_text(page(summaries, records, stored, losses), encoding="utf-8")
    print(base.with_suffix(".md"))
    print(save_figure(draw(summaries, stored), base.with_suffix(".png")))


if __name__ == "__main__":
    main()
