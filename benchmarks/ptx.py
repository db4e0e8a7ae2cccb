"""Registers and local memory of every CUDA kernel, as ptxas reports them; no device is needed.

    python benchmarks/ptx.py [--json] [--only WORD] [--arch 80 90]

Kernels take the number of atoms, inputs and classes at run time: what is compiled here is what runs
for every k.  Only the threads of a block are fixed; the report is for the blocks that four atoms
on one input get.  Those of mixtures come twice: "informed" ones sum the information, too.  Needs
the packages numba-cuda and libNVVM, and a ptxas at least as new
(``pip install "numba-cuda[cu13]" nvidia-cuda-nvcc``).  Exit code 0: nothing spills; 1: something
does; 3: a tool is missing.  Without --json or --only, results/ptx.md is written.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

# cuda.py beside this file would hide NVIDIA's package of that name.
sys.path = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()]

import moestat
from moestat.kernels.cuda.target import COMPILES
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES

RESULTS = Path(__file__).with_name("results") / "ptx.md"
MISSING = 3
_K = 4
_CURVED = ("softmax", "competition-free", "sigmoid-quadratic", "softmax-quadratic")


def missing() -> str:
    """What keeps this script from running; empty if nothing does."""
    if not COMPILES:
        return "the package numba-cuda is not installed, or numba runs its simulator"
    if ptxas() is None:
        return "there is no ptxas on the path or in the package nvidia-cuda-nvcc"
    try:
        nvvm = import_module("numba.cuda.cudadrv.nvvm")
        nvvm.NVVM()
    except Exception as error:
        return f"libNVVM cannot be loaded: {error}"
    return ""


def ptxas() -> str | None:
    """The ptxas of the package nvidia-cuda-nvcc, which goes with libNVVM's, or of the path."""
    found = importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(folder).glob("c*/bin/ptxas")):
            return str(path)
    return shutil.which("ptxas")


def families() -> Iterator[Any]:
    """Every gate with each likelihood that takes it, and every expert under some gates."""
    for likelihood in ("multinomial", "gaussian", "least-squares"):
        for gate in GATES:
            for expert in EXPERTS:
                if expert != "linear" and gate not in _CURVED:
                    continue
                try:
                    yield moestat.family(likelihood, gate=gate, expert=expert, n_experts=_K)
                except ValueError:
                    continue  # a pair that does not go together


def kernels(only: str) -> Iterator[tuple[str, int, Any, Any]]:
    """Name, threads of a block, kernel and signature."""
    from moestat.kernels.cuda import launch, mixture, regression
    from moestat.kernels.cuda.translate import kernel
    from moestat.solvers.targets.cuda import kernels_of, shape_of

    types = import_module("numba.cuda.types")
    number, integer = types.float64, types.int64
    vector, matrix, cube = number[::1], number[:, ::1], number[:, :, ::1]
    integers, table = integer[::1], integer[:, ::1]
    sizes = (integer,) * 5
    if only in "sum of partial sums":
        compiled = kernel(mixture.sum_template, "report")
        yield "sum of partial sums", 128, compiled, (integers, cube, matrix)
    if only in "Gram matrix":
        compiled = kernel(regression.gram_template, "report")
        yield "Gram matrix", regression.GRAM_TILE**2, compiled, (cube, cube)
    for family in families():
        name = f"{family.likelihood.name}, {family.gate.name}, {family.expert.name}"
        if only not in name:
            continue
        kind = kernels_of(family)
        if family.is_regression:
            signature = (
                *(integer, types.boolean, matrix, table, integers, integers, *sizes, integer),
                *(integers, vector, integers, integers, integer, cube, cube),
            )
        else:
            signature = (
                *(integer, integer, matrix, table, integers, *sizes),
                *(vector, integers, integers, vector, integers, table, matrix, cube),
            )
        tile = launch.tile_for(kind.n_rows(shape_of(family)))
        yield name, tile, kind.kernel(tile), signature
        if not family.is_regression:
            yield f"{name}, informed", tile, kind.kernel(tile, True), signature


def report(compiled: Any, signature: Any, arch: int, tool: str) -> dict[str, int]:
    """What ptxas says about one kernel on one architecture."""
    cuda = import_module("numba.cuda")
    # Device functions are compiled for the current device: here for the one that is asked for.
    dispatcher = import_module("numba.cuda.dispatcher")
    before = dispatcher.get_current_device
    capability = divmod(arch, 10)
    dispatcher.get_current_device = lambda: argparse.Namespace(compute_capability=capability)
    try:
        ptx, _ = cuda.compile_ptx(compiled.py_func, signature, cc=capability)
    finally:
        dispatcher.get_current_device = before
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        run = subprocess.run(
            [tool, "-v", f"-arch=sm_{arch}", str(source), "-o", str(source.with_suffix(".cubin"))],
            capture_output=True,
            text=True,
        )
    if run.returncode:
        raise SystemExit(f"ptxas: {run.stderr}")

    def value(pattern: str) -> int:
        return max(map(int, re.findall(pattern, run.stderr)))

    return {
        "registers": value(r"Used (\d+) registers"),
        "stack": value(r"(\d+) bytes stack frame"),
        "spill_stores": value(r"(\d+) bytes spill stores"),
        "spill_loads": value(r"(\d+) bytes spill loads"),
    }


def main() -> int:
    """Report all kernels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON per kernel")
    parser.add_argument("--only", default="", help="kernels whose name has this word")
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 90])
    options = parser.parse_args()
    reason = missing()
    if reason:
        print(reason, file=sys.stderr)
        return MISSING
    tool = ptxas()
    assert tool is not None
    rows = []
    for name, tile, compiled, signature in kernels(options.only):
        for arch in options.arch:
            found = report(compiled, signature, arch, tool)
            rows.append({"kernel": name, "arch": arch, "threads": tile, **found})
            print(json.dumps(rows[-1]) if options.json else rows[-1], flush=True)
    if not options.json and not options.only:
        RESULTS.write_text(table(rows, tool))
    return int(any(row["spill_stores"] + row["spill_loads"] + row["stack"] for row in rows))


def table(rows: list[dict[str, Any]], tool: str) -> str:
    """The report in Markdown."""
    release = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    numbers = re.findall(r"V(\d+\.\d+\.\d+)", release)
    spilled = sum(row["spill_stores"] + row["spill_loads"] + row["stack"] > 0 for row in rows)
    lines = [
        "# What the compiler says of the CUDA kernels",
        "",
        f"Made by `python benchmarks/ptx.py`: ptxas {numbers[0] if numbers else '?'}, numba-cuda"
        f" {_version()}. {spilled} of {len(rows)} kernels use local memory (stack or spills)."
        f" Nothing ran on a device for this table.",
        "",
        f"Kernels take k at run time: these are the ones that run for every k; blocks have the"
        f" threads that k = {_K} on one input gets.",
        "",
        "| kernel (likelihood, gate, expert) | sm | threads | registers | stack | spill stores"
        " | spill loads |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['kernel']} | {row['arch']} | {row['threads']} | {row['registers']}"
        f" | {row['stack']} | {row['spill_stores']} | {row['spill_loads']} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _version() -> str:
    from importlib.metadata import version

    return version("numba-cuda")


if __name__ == "__main__":
    sys.exit(main())
