"""Run benchmarks for the results that are committed, or against another version of the library.

    python -m benchmarks                              what there is, and what it needs
    python -m benchmarks run NAME ... [-- ARGUMENTS]  run, and write results/
    python -m benchmarks against REV NAME ...         rows of REV and of this tree, and their ratios

`benchmarks.toml` says what each is.  All of them count processor time on one thread unless they say
otherwise.  With a REV, both versions run by turns what this tree asks, nothing in results/ changes,
and a ratio below 1 is quicker than REV.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.results import CONFIG, markdown, section_of

HERE = Path(__file__).parent


def missing(need: str) -> bool:
    """Whether a package, a program, or a package of R is not on this machine."""
    if need.startswith("R "):
        ask = f'quit(status = !requireNamespace("{need[2:]}", quietly = TRUE))'
        found = shutil.which("Rscript") and subprocess.run(
            ["Rscript", "-e", ask], capture_output=True, check=False
        )
        return not found or found.returncode != 0
    return shutil.which(need) is None and importlib.util.find_spec(need) is None


def listed() -> str:
    """A line for each benchmark."""
    width = max(len(name) for name in CONFIG)
    lines = [f"{'name':{width}}  min  what"]
    for name, entry in CONFIG.items():
        line = f"{name:{width}}  {entry['minutes']:3}  {entry['about']}"
        lines.append(textwrap.fill(line, 80, subsequent_indent=" " * (width + 7)))
        lacking = [need for need in entry.get("needs", ()) if missing(need)]
        if lacking:
            indent = " " * (width + 7)
            said = f"{indent}not here: {', '.join(lacking)}"
            lines.append(textwrap.fill(said, 80, subsequent_indent=indent))
    return "\n".join(lines)


def run(name: str, arguments: list[str], tree: Path, results: Path) -> None:
    """Run one in a process of its own, with the library of a tree."""
    entry = CONFIG[name]
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    where = {"PYTHONPATH": str(tree), "BENCHMARK_RESULTS": str(results)}
    command = [sys.executable, str(HERE / f"{name}.py"), *(arguments or entry.get("arguments", []))]
    subprocess.run(command, env=os.environ | threads | where, check=True)


def against(revision: str, names: list[str], arguments: list[str]) -> str:
    """Tables of this tree's numbers over those of a revision."""
    found: list[str] = []
    git = ["git", "-C", str(HERE.parent)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        add = [*git, "worktree", "add", "--quiet", "--detach", str(tree), revision]
        subprocess.run(add, check=True)
        try:
            for name in names:
                tables = []
                for label, at in (("old", tree), ("new", HERE.parent)):
                    run(name, arguments, at, Path(folder, label))
                    record = json.loads(Path(folder, label, "cpu.json").read_text())
                    tables.append(record[section_of(name)]["rows"])
                rows = [ratios(old, new) for old, new in zip(*tables, strict=True)]
                found.append(f"{name}: this tree over {revision}\n\n{markdown(rows)}\n")
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)
    return "\n".join(found)


def ratios(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A row whose numbers are those of the new over those of the old one."""
    numbers = {k for k, v in new.items() if isinstance(v, float) and isinstance(old.get(k), float)}
    return {k: v / old[k] if k in numbers and old[k] else v for k, v in new.items()}


def main() -> None:
    """Read the command line."""
    given, _, arguments = (list(part) for part in _parted(sys.argv[1:]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command")
    for command in ("run", "against"):
        part = commands.add_parser(command)
        if command == "against":
            part.add_argument("revision", metavar="REV")
        part.add_argument("names", nargs="+", metavar="NAME", choices=list(CONFIG))
    options = parser.parse_args(given)
    if options.command is None:
        print(listed())
    elif options.command == "run":
        for name in options.names:
            run(name, arguments, HERE.parent, HERE / "results")
    else:
        untitled = [name for name in options.names if "title" not in CONFIG[name]]
        if untitled:
            parser.error(f"{', '.join(untitled)}: only benchmarks with a title can be compared")
        print(against(options.revision, options.names, arguments))


def _parted(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words before the first --, it, and those after it."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


if __name__ == "__main__":
    main()
