"""Mutations of the library's source at random: does a test notice each of them?

    python -m tests.mutants TESTS ... [--only PART ...] [--number 50] [--seed 0] [--seconds 20]
        [--log FILE]

The tests run once, as pytest runs them, and it is noted which functions each of them enters.  Then
one place after the other of functions that were entered is changed: a comparison, a sign, a number,
``and`` and ``or``, a condition that is never or always true, a statement or a keyword that goes.
Functions are drawn at random, each as likely as the others, and a place of each; with ``--only`` in
modules whose path has one of these parts.  In a process of
its own for each change, the tests that enter the function run again, the quick ones first, until
one fails or the processor's time is over.  A change that no test notices survives; with ``--log``
a line for each is added to a file, and a change that is there already is not tried again.

Not part of the test suite.  Compiled loops, code that runs at import and programs that tests start
keep their code as it is.  Code whose change nothing notices gets a test of what it does, or goes.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]

FLIPPED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    **{ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div},
    **{ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
}
WAITS = 8
"""Seconds of the clock for one of the processor, on a machine that has more to do."""

SURVIVED, NOTICED, UNCLEAR = 10, 11, 12
"""How the process of a change ends."""


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
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
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
    elif isinstance(node, (ast.Expr, ast.AugAssign)) and not _is_docstring(node):
        yield ast.Pass()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutations(module: str) -> dict[str, list[Mutation]]:
    """All changes of a module inside functions, by the outermost function that they are in."""
    text = (ROOT / module).read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, list[Mutation]] = {}

    def change(node: Any, function: str) -> None:
        at = slice(
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )
        for new in changes(node):
            after = ast.unparse(ast.fix_missing_locations(new))
            after = after.replace("\n", "\n" + " " * node.col_offset)
            after = f"({after})" if isinstance(node, ast.expr) else after
            shown = [each.split("\n")[0][:70] for each in (text[at].decode(), after)]
            words = f"{type(node).__name__}: {shown[0]} -> {shown[1]}"
            source = (text[: at.start] + after.encode() + text[at.stop :]).decode()
            found.setdefault(function, []).append(
                Mutation(module, node.lineno, function, words, source)
            )

    def visit(node: ast.AST, place: str, function: str) -> None:
        if function and isinstance(node, (ast.expr, ast.stmt)):
            change(node, function)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and isinstance(
                node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign, ast.arg)
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    inner = f"{place}.{child.name}".strip(".")
                    own = inner if isinstance(child, ast.FunctionDef) else ""
                    visit(child, inner, function or own)
                elif isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    visit(child, place, function)

    visit(ast.parse(text), "", "")
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code of the functions and methods of a module or class."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def put(mutation: Mutation) -> bool:
    """Give functions of this process the code of a mutation; whether there was one."""
    path = str(ROOT / mutation.module)
    whole = compile(mutation.source, path, "exec", dont_inherit=True)
    new = [code for code in _codes(whole) if code.co_qualname == mutation.function]
    known: list[CodeType] = []
    functions = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_filename == path
        and each.__code__.co_qualname == mutation.function
    ]
    for each in functions:
        if each.__code__ not in known:
            known.append(each.__code__)
    known.sort(key=lambda code: code.co_firstlineno)
    if len(known) != len(new) or not new:
        return False
    for each in functions:
        try:
            each.__code__ = new[known.index(each.__code__)]
        except ValueError:  # other variables of the function around it
            return False
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            code = getattr(each.__wrapped__, "__code__", None)
            if code is not None and code.co_filename.startswith(str(ROOT / "moestat")):
                each.cache_clear()
    return True


class Mutants:
    """A run of pytest that notes what tests enter, and tries changes of that."""

    def __init__(
        self, number: int, seed: int, seconds: float, log: Path | None, only: tuple[str, ...] = ()
    ):
        self.number, self.seconds, self.log, self.only = number, seconds, log, only
        self.pick = random.Random(seed)
        self.entered: dict[tuple[str, str], list[tuple[float, Any]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests, then changes."""
        for item in session.items:
            self.note(item)
        for mutation in self.drawn():
            print(line := f"{self.fate(mutation)}\t{mutation}", flush=True)
            if self.log:
                with self.log.open("a") as log:
                    log.write(line + "\n")
        return True

    def note(self, item: Any) -> None:
        """Run a test and remember the functions that it enters, if it passes."""
        seen: set[CodeType] = set()
        began = time.process_time()
        sys.settrace(lambda frame, event, argument: seen.add(frame.f_code))
        reports = runtestprotocol(item, nextitem=None, log=False)
        sys.settrace(None)
        took = time.process_time() - began
        if not all(report.passed for report in reports):
            print(f"left out: {item.nodeid}")
            return
        home = str(ROOT / "moestat")
        for code in seen:
            if code.co_filename.startswith(home):
                module = str(Path(code.co_filename).relative_to(ROOT))
                outer = code.co_qualname.split(".<locals>")[0]
                tests = self.entered.setdefault((module, outer), [])
                if (took, item) not in tests:
                    tests.append((took, item))

    def drawn(self) -> Iterator[Mutation]:
        """Changes that were not tried yet, of functions drawn at random."""
        known = set()
        if self.log and self.log.exists():
            known = {line.split("\t")[1] for line in self.log.read_text().splitlines()}
        places = {
            key: found
            for module in sorted({module for module, _ in self.entered})
            if any(part in module for part in self.only or [""])
            for function, found in mutations(module).items()
            if (key := (module, function)) in self.entered
        }
        print(f"{len(self.entered)} functions entered, {len(places)} with places to change")
        keys, left = sorted(places), self.number
        self.pick.shuffle(keys)
        while left > 0 and keys:
            for key in keys:
                mutation = self.pick.choice(places[key])
                if str(mutation) not in known and left > 0:
                    left -= 1
                    yield mutation

    def fate(self, mutation: Mutation) -> str:
        """What became of a change: the test that noticed it, or survival."""
        tests = sorted(self.entered[mutation.module, mutation.function], key=lambda each: each[0])
        here, there = os.pipe()
        pid = os.fork()
        if not pid:
            self.work(mutation, [item for _, item in tests], there)
        os.close(there)
        until, done, status = time.monotonic() + WAITS * self.seconds, 0, 0
        while not done and time.monotonic() < until:
            done, status = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.02)
        if not done:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with os.fdopen(here) as pipe:
            said = pipe.read()
        code = os.waitstatus_to_exitcode(status) if done else None
        if code == NOTICED:
            return f"killed by {said}"
        if code == SURVIVED:
            return f"survived {said} of {len(tests)} tests"
        return "not tried" if code == UNCLEAR else f"ended by signal or time, {code}"

    def work(self, mutation: Mutation, items: list[Any], pipe: int) -> None:
        """In a child: run tests of a change until one fails."""
        status = UNCLEAR
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(null, stream)
            if put(mutation):
                used = time.process_time()
                resource.setrlimit(resource.RLIMIT_CPU, (int(used + 3 * self.seconds),) * 2)
                status, ran = SURVIVED, 0
                for item in items:
                    reports = runtestprotocol(item, nextitem=None, log=False)
                    if any(report.failed for report in reports):
                        status = NOTICED
                        os.write(pipe, item.nodeid.encode())
                        break
                    ran += 1
                    if time.process_time() - used > self.seconds:
                        break
                if status == SURVIVED:
                    os.write(pipe, str(ran).encode())
        except BaseException:
            status = UNCLEAR
        finally:
            os._exit(status)


def main() -> int:
    """Run the tests and print what became of each change."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("tests", nargs="+", metavar="TESTS", help="files and folders of tests")
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the processor, a change")
    parser.add_argument("--log", type=Path, help="file of what became of changes")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the paths of modules")
    options = parser.parse_args()
    mutants = Mutants(
        options.number, options.seed, options.seconds, options.log, tuple(options.only)
    )
    return int(
        pytest.main(
            ["-q", "-s", "-p", "no:cacheprovider", "-m", "not slow", *options.tests], [mutants]
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
