"""What the benchmarks on microscopes share: their specs, and how they are asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from moestat.sweep.spec.plan import Cell, plan_cells
from moestat.sweep.spec.read import parse_spec

__all__ = ["cells_of", "parser", "text_of"]

FOLDER = Path(__file__).parents[1] / "experiments"


def text_of(name: str) -> str:
    """The spec of a microscope."""
    return (FOLDER / f"microscope_{name}.toml").read_text()


@cache
def cells_of(text: str) -> dict[tuple[str, float, int], Cell]:
    """The cells of a spec by curve, sample size and replicate."""
    return {(c.curve, c.n, c.replicate): c for c in plan_cells(parse_spec(text))}


def parser(description: str, specs: Sequence[str]) -> argparse.ArgumentParser:
    """Which specs, all by default, and how many replicates of each curve."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("specs", nargs="*", metavar="SPEC", default=specs, help=", ".join(specs))
    found.add_argument("--replicates", type=int, default=20)
    return found
