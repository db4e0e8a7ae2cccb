"""Imports go downward only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import moestat

ROOT = Path(moestat.__file__).parent
EXPERIMENTS = Path(__file__).parents[1] / "experiments"

# Rooms from the ground up; rooms of one floor do not import each other.
FLOORS = [
    {"base", "datasets"},
    {"compiler"},
    {"kernels"},
    {"model"},
    {"metrics", "solvers", "networks"},
    {"estimation"},
    {"rates"},
    {"theory"},
    {"sweep"},
    {"verify"},
]


def floor_of(module: str) -> int:
    top = module.split(".")[1]
    for level, members in enumerate(FLOORS):
        if top in members:
            return level
    raise AssertionError(f"{module} has no floor: add its room to FLOORS")


@cache
def imports_of(path: Path) -> set[str]:
    return {name for name in imported(path, modules()) if name.startswith("moestat.")}


@cache
def import_statements(
    path: Path, with_types: bool = False
) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Imports of a file, also inside functions; those for types alone only `with_types`."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    for_types = {
        id(below)
        for node in nodes
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    kinds = ast.Import, ast.ImportFrom
    left_out = set() if with_types else for_types
    return tuple(node for node in nodes if isinstance(node, kinds) and id(node) not in left_out)


def imported(path: Path, known: Mapping[str, Path], with_types: bool = False) -> set[str]:
    """Modules of ours that a file imports."""
    found = set()
    for node in import_statements(path, with_types):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            # What is no module of a package is a name of its face.
            found |= names | ({node.module} if names - set(known) else set())
    return found & set(known)


@cache
def modules(root: Path = ROOT) -> dict[str, Path]:
    names = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = path
    return names


def test_imports_go_downward():
    upward = []
    for name, path in modules().items():
        if name == "moestat":
            continue
        for target in imports_of(path):
            level, room = floor_of(name), name.split(".")[1]
            if floor_of(target) >= level and target.split(".")[1] != room:
                upward.append(f"{name} imports {target}")
    assert upward == []


def test_the_library_knows_no_paper():
    naming = [
        name
        for name, path in modules().items()
        if name != "moestat.verify" and re.search(r"\bexperiments\.[a-z_]+\b", path.read_text())
    ]
    assert naming == []


# Floors inside three rooms, from the ground up.
SOLVERS = [
    {"rules"},
    {"needs", "groups", "metric", "spring", "squares"},
    {"rows"},
    {"problem"},
    {"penalised", "proximal"},
    {"driver", "collapse", "trust_region", "targets"},
    {"certificate", "line_search"},
    {"solution", "bfgs"},
    {"shell"},
    {"newton", "least_squares"},
    {"em", "merging_atoms", "quasi_newton", "search"},
]
SWEEP = [
    {"errors", "escape", "terminal"},
    {"spec"},
    {"store"},
    {"kinds"},
    {"run", "report"},
    {"cli"},
    {"__main__"},
]


ESTIMATION = [
    {"columns"},
    {"rules", "progress", "tables", "storage"},
    {"reading"},
    {"data"},
    {"rows"},
    {"starts"},
    {"search"},
    {"fit"},
    {"inference"},
    {"results"},
    {"fitting"},
    {"studies"},
]


@pytest.mark.parametrize(
    ("place", "inside"),
    [("solvers", SOLVERS), ("sweep", SWEEP), ("estimation", ESTIMATION)],
)
def test_rooms_inside_import_downward(place, inside):
    floors = {name: level for level, members in enumerate(inside) for name in members}
    upward = []
    for name, path in modules().items():
        if not name.startswith(f"moestat.{place}."):
            continue
        room = name.split(".")[2]
        for target in imports_of(path):
            below = target.split(".")[2] if target.startswith(f"moestat.{place}.") else None
            if below is not None and below != room and floors[below] >= floors[room]:
                upward.append(f"{name} imports {target}")
    assert upward == []


def test_estimation_imports_downward_for_types_too():
    floors = {name: level for level, members in enumerate(ESTIMATION) for name in members}
    upward = []
    for name, path in modules().items():
        if not name.startswith("moestat.estimation."):
            continue
        room = name.split(".")[2]
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            parts = node.module.split(".")
            below = parts[2] if parts[:2] == ["moestat", "estimation"] and parts[2:] else room
            if below != room and floors[below] >= floors[room]:
                upward.append(f"{name} imports {node.module}")
    assert upward == []


def test_a_fit_does_not_open_all_of_statistics():
    """What the making of a fit reaches: the rooms up to its own, and few of their files."""
    found, waiting = set[str](), ["moestat.estimation.fit.run"]
    while waiting:
        for target in imports_of(modules()[waiting.pop()]) - found:
            found.add(target)
            waiting.append(target)
    files = {name for name in found if len(name.split(".")) > 3 and ".estimation." in name}
    rooms = {name.split(".")[2] for name in files}
    assert rooms <= {"reading", "data", "rows", "starts", "search", "fit"}
    assert len(files) <= 38


def longest_chain(place: str) -> list[str]:
    """The longest chain of imports inside a room, from its top to a file that imports none."""
    inside = {name: path for name, path in modules().items() if name.startswith(f"{place}.")}
    chains = dict[str, list[str]]()
    needs = {name: imports_of(path) & set(inside) - {name} for name, path in inside.items()}
    for name in TopologicalSorter(needs).static_order():
        below = (chains[target] for target in sorted(needs[name]))
        chains[name] = [name, *max(below, key=len, default=[])]
    return max(chains.values(), key=len)


def test_chains_of_imports_in_estimation_are_short():
    chain = longest_chain("moestat.estimation")
    assert len(chain) <= 19, "\n".join(chain)


def imports_between(floors: Sequence[set[str]], inside: str) -> tuple[list[str], np.ndarray]:
    """Rooms from the ground up, and how many imports each one (row) has from each other (column).

    Rooms are packages of `inside`, such as "moestat.estimation".
    """
    rooms = [room for members in floors for room in sorted(members)]
    counts = np.zeros((len(rooms), len(rooms)), dtype=int)
    depth = inside.count(".") + 1
    for name, path in modules().items():
        for target in imports_of(path):
            ends = [each.split(".") for each in (name, target)]
            if all(each[:depth] == inside.split(".") and len(each) > depth for each in ends):
                places = [each[depth] for each in ends]
                if all(place in rooms for place in places):
                    counts[rooms.index(places[0]), rooms.index(places[1])] += 1
    return rooms, counts


def draw(path: str) -> None:
    """A picture of the imports between the rooms of the library, and between those of estimation.

    Each row is a room, the ground at the bottom, and each number how many imports its files have
    from the room of the column: rooms that import only from below fill a triangle.
    """
    from matplotlib.figure import Figure

    # Files of the ground are no rooms.
    ground = {"columns", "rules", "progress", "tables", "storage"}
    estimation = [members - ground for members in ESTIMATION if members - ground]
    figure = Figure(figsize=(11.0, 5.0), layout="constrained")
    for axes, floors, inside in zip(
        figure.subplots(1, 2), (FLOORS, estimation), ("moestat", "moestat.estimation"), strict=True
    ):
        rooms, counts = imports_between(floors, inside)
        shown = np.where(counts > 0, np.log10(np.maximum(counts, 1)), np.nan)
        axes.imshow(shown, cmap="Blues", vmin=-0.5, vmax=3.0, origin="lower")
        for (i, j), count in np.ndenumerate(counts):
            if count:
                colour = "white" if count > 60 else "black"
                axes.text(j, i, str(count), ha="center", va="center", size=8, color=colour)
        axes.set_xticks(range(len(rooms)), rooms, rotation=45, ha="right")
        axes.set_yticks(range(len(rooms)), rooms)
        axes.set_title(f"{inside}: imports of a room (row) from others (column)", size=10)
    figure.savefig(path, dpi=110)


def circle_of(known: Mapping[str, Path]) -> list[str]:
    """Modules that import each other, also for types alone; empty if there is no circle."""
    needs = {name: imported(path, known, with_types=True) - {name} for name, path in known.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_modules_make_no_circle_not_even_for_types():
    assert circle_of({**modules(), **modules(EXPERIMENTS)}) == []


def test_a_circle_for_types_is_seen(tmp_path):
    package = tmp_path / "moestat"
    package.mkdir()
    for_types = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    "
    for name, line in {
        "member": "from moestat.choice import Choice",
        "choice": for_types + "from moestat.member import Member",
    }.items():
        (package / f"{name}.py").write_text(line + "\n")
    assert set(circle_of(modules(package))) == {"moestat.member", "moestat.choice"}


def test_siblings_on_the_axes_do_not_import_each_other():
    axes = ("gates", "experts", "likelihoods")
    crossing = []
    for name, path in modules().items():
        parts = name.split(".")
        if len(parts) < 4 or parts[1] != "model" or parts[2] not in axes:
            continue
        for target in imports_of(path):
            if target.split(".")[1] == "model" and target.split(".")[2] in axes:
                crossing.append(f"{name} imports {target}")
    assert crossing == []


def hidden_arguments(tree: ast.AST) -> list[int]:
    """Lines on which a call splats a tuple or list that is written there: ``f(*(a, b), c)``."""
    return [
        argument.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for argument in node.args
        if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List))
    ]


def test_calls_show_their_arguments():
    assert hidden_arguments(ast.parse("f(*(a, b), c)\nf(*t, *map(g, t), (a, *(b, c)))")) == [1]
    folders = ("moestat", "experiments", "tests", "benchmarks", "docs")
    found = [
        f"{path.relative_to(ROOT.parent)}:{line}"
        for folder in folders
        for path in sorted((ROOT.parent / folder).rglob("*.py"))
        for line in hidden_arguments(ast.parse(path.read_text()))
    ]
    assert found == []


def test_the_walk_sees_the_package():
    assert {"moestat.model.gates.softmax", "moestat.solvers.newton"} <= set(modules())
    assert "moestat.compiler.jit" in imports_of(ROOT / "model" / "gates" / "softmax.py")


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


if __name__ == "__main__":
    draw(*sys.argv[1:])
