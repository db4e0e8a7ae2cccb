"""Imports go downward only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import moestat

ROOT = Path(moestat.__file__).parent

# The first entry that matches a module decides its layer; a package stands for its modules.
LAYERS = [
    {"_activations", "_jit", "_lowering", "_math", "_registry", "_types", "_validate", "symmetric"},
    {"gates", "experts", "likelihoods"},
    {"kernels"},
    {
        *("mixing", "families", "attention", "designs", "generate", "losses", "distances"),
        *("compression", "information", "lattice", "quadrature"),
    },
    {"solvers", "devices", "starts", "fitting", "results", "estimators", "approximation"},
    {"theory", "rates", "comparisons", "_regression"},
    {"figures", "microscope", "sweep", "report"},
    {"verify"},
]


def layer_of(module: str) -> int:
    top = module.split(".")[1]
    for level, members in enumerate(LAYERS):
        if top in members:
            return level
    raise AssertionError(f"{module} has no layer: add it to LAYERS")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    known = modules()
    return {name for name in found if name.startswith("moestat.") and name in known}


def modules() -> dict[str, Path]:
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = path
    return names


def test_imports_go_downward():
    upward = []
    for name, path in modules().items():
        if name == "moestat":
            continue
        for target in imports_of(path):
            if layer_of(target) > layer_of(name):
                upward.append(f"{name} imports {target}")
    assert upward == []


def test_siblings_on_the_axes_do_not_import_each_other():
    axes = ("gates", "experts", "likelihoods")
    crossing = []
    for name, path in modules().items():
        parts = name.split(".")
        if len(parts) < 3 or parts[1] not in axes:
            continue
        for target in imports_of(path):
            if target.split(".")[1] in axes:
                crossing.append(f"{name} imports {target}")
    assert crossing == []


def test_the_walk_sees_the_package():
    assert {"moestat.gates.softmax", "moestat.solvers.newton"} <= set(modules())
    assert "moestat._jit" in imports_of(ROOT / "gates" / "softmax.py")


def test_import_leaves_slow_modules_alone():
    slow = ("scipy.linalg", "scipy.optimize", "scipy.stats", "matplotlib", "dask")
    program = f"""
import sys
import moestat
moestat.family, moestat.fit, moestat.sample
print(*(name for name in {slow} if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
