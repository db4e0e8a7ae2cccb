"""Where the benchmarks leave their numbers: results/cpu.json, and the table and figure from it."""

from __future__ import annotations

import json
import os
import platform
import tomllib
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import get_host_cpu_features

__all__ = ["machine", "markdown", "rows_of", "save", "write_table"]

FOLDER = Path(os.environ.get("BENCHMARK_RESULTS", Path(__file__).with_name("results")))
CONFIG: dict[str, Any] = tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text())
"""What each benchmark is, by its name."""


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the code."""
    model = "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return {
        "processor": model,
        "vectors": vectors(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
    }


def vectors() -> str:
    """The widest vectors that code is compiled for: of the processor, or fewer by `avx2.py`."""
    host = "AVX-512" if get_host_cpu_features().get("avx512f") else "AVX2"
    return os.environ.get("BENCHMARK_VECTORS", host)


def _named(section: str) -> str:
    return section + (" (AVX2)" if "BENCHMARK_VECTORS" in os.environ else "")


def section_of(name: str) -> str:
    """The section of results/cpu.json that a benchmark saves."""
    return name.replace("_", " ")


def rows_of(section: str) -> list[dict[str, Any]]:
    """The rows of a section as they were saved last; none if it is new."""
    path = FOLDER / "cpu.json"
    return json.loads(path.read_text()).get(_named(section), {"rows": []})["rows"]


def save(section: str, rows: list[dict[str, Any]]) -> None:
    """Replace one section of results/cpu.json and write table and figure again."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "cpu.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    record[_named(section)] = {"machine": machine(), "rows": rows}
    path.write_text(json.dumps(record, indent=1) + "\n")
    write_table(record)


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table with one column for every key that occurs."""
    names = list(dict.fromkeys(name for row in rows for name in row))

    def cell(value: Any) -> str:
        return (
            f"{value:.4g}"
            if isinstance(value, float) and abs(value) < 1e4
            else (f"{value:.3f}" if isinstance(value, float) else str(value))
        )

    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(cell(row.get(name, "")) for name in names) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def write_table(record: dict[str, Any]) -> None:
    """results/cpu.md and results/cpu.png."""
    titles = {section_of(n): one["title"] for n, one in CONFIG.items() if "title" in one}
    parts = ["# Benchmarks on one core\n"]
    for name, title in titles.items():
        for section in (name, f"{name} (AVX2)"):
            if section not in record:
                continue
            title += ", code for AVX2" if section != name else ""
            facts = ", ".join(f"{k} {v}" for k, v in record[section]["machine"].items())
            parts += [f"## {title}\n", markdown(record[section]["rows"]), f"\n{facts}\n"]
    (FOLDER / "cpu.md").write_text("\n".join(parts))
    if "kernels" in record and "fits" in record:
        _figure(record)


def _figure(record: dict[str, Any]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    passes = [row for row in record["kernels"]["rows"] if row["pass"] == "score"]
    tools = ("moestat", "C", "C, 512 bits", "NumPy", "JAX")
    names = [name for name in tools if any(name in row for row in passes)]
    height = 0.8 / len(names)
    for j, name in enumerate(names):
        at = [i + j * height for i, row in enumerate(passes) if name in row]
        left.barh(at, [row[name] for row in passes if name in row], height, label=name)
    left.set_yticks(
        [i + 0.4 - height / 2 for i in range(len(passes))],
        [row["problem"].split(",")[0].replace(" ", "\n") for row in passes],
    )
    left.invert_yaxis()
    left.set_xlabel("log-likelihood + score, ns per sample")
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower left",
        ncols=len(names),
        frameon=False,
        fontsize="small",
    )
    fits = [row for row in record["fits"]["rows"] if "seconds" in row]
    fits.sort(key=lambda row: row["seconds"])
    seconds = [row["seconds"] for row in fits]
    bars = right.barh([row["solver"] for row in fits], seconds)
    lowest = min(row["log-likelihood"] for row in fits)
    gains = [f" +{row['log-likelihood'] - lowest:.1f}" for row in fits]
    right.bar_label(bars, gains, fontsize="small")
    right.margins(x=0.2)
    right.invert_yaxis()
    right.set_xlabel("seconds to fit\n(labels: log-likelihood gained)")
    for axes, least in ((left, 1.0), (right, 0.01)):
        axes.set_xscale("log")
        axes.set_xlim(left=least)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / "cpu.png", dpi=160)
