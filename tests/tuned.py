"""Count the tuned numbers of the solvers and of estimation, by how they are spelled.

    python -m tests.tuned [--list] [--tree DIRECTORY] [ROOM ...]

Five spellings are read off the syntax tree: fields of a `NamedTuple` with a numeric default,
defaults of a dataclass, numeric constants of a module (each element of a tuple), numeric literals
in the body of a function, and numeric defaults of arguments.  Numbers that carry no tuning are left
out: see `PLAIN`.  ``--list`` prints each number with its place; ``--tree`` counts another copy of
the repository, such as one of an earlier commit.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

ROOMS = ("solvers", "estimation")
"""Rooms that are counted: those where a fit is computed."""

SPELLINGS = ("record field", "dataclass default", "module constant", "literal", "argument default")

PLAIN = {
    *(0, 1, 2, -1, -2, 3, 4, 0.5, -0.5, 0.25, 0.75, -0.25, -0.75, 10, 100, 1.5),
    *(0.05, 0.95, 0.025, 0.975, 95, 1 / 3),
}
"""Numbers of mathematics and of tables; integers of at most `SMALL` are plain, too."""

SMALL = 9
"""Largest integer that counts as an index or as a number of mathematics in the body of a function.
"""


class Number(NamedTuple):
    """One number, where it stands and how it is spelled."""

    path: Path
    line: int
    spelling: str
    value: float
    name: str


def value_of(node: ast.expr | None) -> float | None:
    """The number that an expression is, with its sign; None where it is no number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def numbers_of(node: ast.expr | None) -> list[float]:
    """The numbers that an expression holds: itself, an arithmetic of numbers, or a tuple's."""
    if isinstance(node, ast.Tuple):
        return [number for element in node.elts for number in numbers_of(element)]
    if isinstance(node, ast.BinOp):
        left, right = numbers_of(node.left), numbers_of(node.right)
        return left[:1] if left and right else []
    value = value_of(node)
    return [] if value is None else [value]


def is_plain(value: float) -> bool:
    """Whether a literal carries no tuning."""
    return value in PLAIN or (isinstance(value, int) and abs(value) <= SMALL)


def kind_of(node: ast.ClassDef) -> str | None:
    """How the fields of a class are spelled; None for classes that are no records."""
    if any("NamedTuple" in ast.unparse(base) for base in node.bases):
        return "record field"
    if any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        return "dataclass default"
    return None


def _defaults(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Number]:
    given = node.args
    named = [*given.posonlyargs, *given.args][-len(given.defaults) :] if given.defaults else []
    pairs = [*zip(named, given.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d]
    for argument, default in pairs:
        for value in numbers_of(default):
            if value not in (0, 1):
                yield Number(path, default.lineno, "argument default", value, argument.arg)


def _literals(path: Path, node: ast.AST, name: str) -> Iterator[Number]:
    """Literals below a node; annotations and inner defaults are counted elsewhere or nowhere."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _function(path, child)
        elif isinstance(child, ast.expr) and (value := value_of(child)) is not None:
            if not is_plain(value):
                yield Number(path, child.lineno, "literal", value, name)
        else:
            yield from _literals(path, child, name)


def _function(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Number]:
    yield from _defaults(path, node)
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _function(path, statement)
        else:
            yield from _literals(path, statement, node.name)


def _statements(path: Path, body: list[ast.stmt], kind: str | None) -> Iterator[Number]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _statements(path, node.body, kind_of(node) or "module constant")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _function(path, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            for value in numbers_of(node.value):
                yield Number(
                    path, node.lineno, kind or "module constant", value, ast.unparse(target)
                )


def numbers(room: str, tree: Path = ROOT) -> Iterator[Number]:
    """The numbers of a room of the library, in the order of its files."""
    for path in sorted((tree / "moestat" / room).rglob("*.py")):
        yield from _statements(path.relative_to(tree), ast.parse(path.read_text()).body, None)


def main() -> None:
    """Print the counts of each room, and the numbers themselves if asked."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), metavar="ROOM")
    parser.add_argument("--list", action="store_true", help="each number with its place")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another copy of the repository")
    options = parser.parse_args()
    total = 0
    for room in options.rooms:
        found = list(numbers(room, options.tree))
        counts = Counter(number.spelling for number in found)
        if options.list:
            for number in found:
                place = f"{number.path}:{number.line}"
                print(f"{place:56s} {number.spelling:18s} {number.value!s:>10s}  {number.name}")
        spelled = ", ".join(f"{counts[each]} {each}s" for each in SPELLINGS)
        print(f"{room}: {len(found)} = {spelled}")
        total += len(found)
    print(f"total: {total}")


if __name__ == "__main__":
    main()
