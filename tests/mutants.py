"""Mutations of the library's source at random: does a related test notice each of them?

    python -m tests.mutants [--number 20] [--seed 0] [--seconds 120] [--log FILE] [PART ...]

The library is copied to a folder, and there one place of its source after the other is changed: a
comparison, a sign, a number, ``and`` and ``or``, a condition that is never or always true, a
statement or a keyword that goes.  Places are drawn from the modules whose path has one of the parts
in it (all of them without a part), each function as likely as the others.  Related tests run after
each change: the examples of the module, the test files named after it, and those that name the
changed function, its class or its module, until one fails or the time is over.  A change that none
of them notices survives; with ``--log`` a line for each is added to a file, and a change that is
there already is not tried again.

Not part of the test suite.  Code whose change nothing notices gets a test of what it does, or goes.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("cuda", "__init__")
"""Modules that need a device or only name others."""

FLIPPED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div},
    **{ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
}
FILES = 4
"""Most test files of a mutation."""

PRELOADED = ("matplotlib.pyplot", "numba", "pandas", "scipy.stats", "typer.testing")
"""Modules of others, imported once for all mutations."""

WAITS = 8
"""Seconds of the clock for one of the processor, on a machine that has more to do."""

FAINT = 0.3
"""A test file with no more than this to say about a function is not related to it."""


@dataclass(frozen=True)
class Mutation:
    """A change of the source of a module, in words, and the function that it is in."""

    module: str  # path from the root
    line: int
    function: str
    words: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} in {self.function}: {self.words}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that may take the place of a node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in FLIPPED:
        new = copy.deepcopy(node)
        new.ops[0] = FLIPPED[type(node.ops[0])]()
        yield new
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in FLIPPED:
        new = copy.deepcopy(node)
        new.op = FLIPPED[type(node.op)]()
        yield new
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        changed = not node.value if isinstance(node.value, bool) else node.value + 1
        yield ast.Constant(changed)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            new = copy.deepcopy(node)
            del new.keywords[i]
            yield new
    elif isinstance(node, (ast.If, ast.IfExp)):
        for value in (True, False):
            new = copy.deepcopy(node)
            new.test = ast.Constant(value)
            yield new
    elif isinstance(node, (ast.Expr, ast.AugAssign)) and not _says(node):
        yield ast.Pass()


def _says(node: ast.AST) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutations(module: str, text: str) -> dict[str, list[Mutation]]:
    """All changes of a module, by the function that they are in."""
    found: dict[str, list[Mutation]] = {}
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    whole = text.encode()

    def place(node: ast.AST) -> slice:
        begin = starts[node.lineno - 1] + node.col_offset
        return slice(begin, starts[node.end_lineno - 1] + node.end_col_offset)

    def visit(node: ast.AST, function: str) -> None:
        for new in changes(node):
            at = place(node)
            before, after = whole[at].decode(), ast.unparse(ast.fix_missing_locations(new))
            indent = " " * getattr(node, "col_offset", 0)
            after = after.replace("\n", "\n" + indent)
            if isinstance(node, ast.expr):
                after = f"({after})"
            first = [each.strip().split("\n")[0][:70] for each in (before, after)]
            words = f"{type(node).__name__}: {first[0]} -> {first[1]}"
            source = (whole[: at.start] + after.encode() + whole[at.stop :]).decode()
            if function and not _is_text(node):
                found.setdefault(function, []).append(
                    Mutation(module, node.lineno, function, words, source)
                )
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    visit(child, f"{function}.{child.name}".strip("."))
                elif isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    visit(child, function)

    visit(ast.parse(text), "")
    return found


def _is_text(node: ast.AST) -> bool:
    """Whether a statement only raises or warns of something, in words."""
    return isinstance(node, ast.Raise)


def related(mutation: Mutation) -> list[Path]:
    """The module for its examples, and test files, those that say most about the function first."""
    path = Path(mutation.module)
    near = {path.stem.lstrip("_"), *(n for n in mutation.function.split(".") if n[:2] != "__")}
    public = {
        node.name
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"
    }
    dotted = ".".join(path.with_suffix("").parts)
    scores = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text, stem = file.read_text(), file.stem.removeprefix("test_")
        own = path.stem.lstrip("_") in stem or stem in path.stem
        shared = len(set(path.parts[1:-1]) & {*file.relative_to(ROOT / "tests").parts})
        named = _times(near, text) + 0.2 * _times(public - near, text)
        said = named + 5 * (dotted in text) + 10 * (own and shared > 0)
        scores[file] = said + 4 * shared if said and (shared or dotted in text) else 0.1 * named
    best = sorted((f for f in scores if scores[f] > FAINT), key=lambda f: -scores[f])[:FILES]
    return [Path(mutation.module), *(file.relative_to(ROOT) for file in best)]


def _times(names: set[str], text: str) -> int:
    return sum(min(len(re.findall(rf"\b{re.escape(name)}\b", text)), 5) for name in names)


def fate(mutation: Mutation, folder: Path, seconds: float) -> str:
    """What became of a change in the copy of the library: the test that noticed, or survival."""
    target = folder / mutation.module
    before = target.read_text()
    target.write_text(mutation.source)
    files = [str(file) for file in related(mutation)]
    told = folder / "told"
    pid = os.fork()
    if not pid:
        _work(folder, files, told, int(seconds))
    until = time.monotonic() + WAITS * seconds
    done, status = 0, 0
    while not done and time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.05)
    if not done:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    target.write_text(before)
    if os.WIFSIGNALED(status):
        return f"time is over: {' '.join(files)}"
    if os.WEXITSTATUS(status) == 0:
        return f"survived: {' '.join(files)}"
    noticed = re.findall(r"^(?:FAILED|ERROR) (\S+)", told.read_text(), flags=re.MULTILINE)
    return f"killed by {noticed[0]}" if noticed else f"unclear: {told.read_text()[-100:]!r}"


def _work(folder: Path, files: list[str], told: Path, seconds: int) -> None:
    """Run tests of the copy in this process, which has imported no module of the library."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path[:] = [str(folder), *(p for p in sys.path if Path(p).resolve() != ROOT)]
        for name in [n for n in sys.modules if n.split(".")[0] == "tests"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status))


def drawn(parts: list[str], number: int, seed: int) -> list[Mutation]:
    """Places of the source, of functions that are drawn at random."""
    pick, found = random.Random(seed), []
    for path in sorted((ROOT / "moestat").rglob("*.py")):
        module = str(path.relative_to(ROOT))
        if any(each in module for each in LEFT_OUT):
            continue
        if any(part in module for part in parts or [""]):
            found += mutations(module, path.read_text()).values()
    pick.shuffle(found)
    return [pick.choice(of_function) for of_function in found[:number]]


def main() -> None:
    """Print what became of each mutation."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts of the paths of modules")
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of the processor, for a mutation"
    )
    parser.add_argument("--log", type=Path, help="file of what became of mutations")
    options = parser.parse_args()
    for name in PRELOADED:
        importlib.import_module(name)
    known = set()
    if options.log and options.log.exists():
        known = {line.split("\t")[1] for line in options.log.read_text().splitlines()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "library"
        for room in ("moestat", "tests", "experiments", "docs", "benchmarks", ".ci"):
            shutil.copytree(ROOT / room, folder / room)
        for file in ROOT.glob("*.*"):
            if file.is_file():
                shutil.copy(file, folder)
        for mutation in drawn(options.parts, options.number, options.seed):
            if str(mutation) in known:
                continue
            became = fate(mutation, folder, options.seconds)
            line = f"{became}\t{mutation}"
            print(line, flush=True)
            if options.log:
                with options.log.open("a") as log:
                    log.write(line + "\n")


if __name__ == "__main__":
    main()
