"""What the benchmarks on microscopes share: their specs, and how they are asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

__all__ = ["parser", "text_of"]

FOLDER = Path(__file__).parents[1] / "experiments"


def text_of(name: str) -> str:
    """The spec of a microscope."""
    return (FOLDER / f"microscope_{name}.toml").read_text()


def parser(description: str, specs: Sequence[str]) -> argparse.ArgumentParser:
    """Which specs, all by default, and how many replicates of each curve."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("specs", nargs="*", metavar="SPEC", default=specs, help=", ".join(specs))
    found.add_argument("--replicates", type=int, default=20)
    return found
