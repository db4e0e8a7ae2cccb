"""``python -m experiments.atlas.rates``: the atlas by `moestat.theory.rates`, block by block.

Each family of the atlas is asked once, with four fitted atoms for two true ones, so that cells of
one, two and three atoms and two cells of two are answered together.  What derivatives decide takes
seconds; `--seconds` adds searches.  A family that is kept is asked again only with more time.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import moestat
from experiments.atlas.cells import AtlasCell, atlas_cells
from experiments.atlas.order import DESIGN, NOT_DONE, drawn_truth
from experiments.atlas.rates_page import write
from experiments.folders import FIGURES
from experiments.time_limit import OutOfTimeError, at_most
from moestat.theory.exponents.certificates import write_certificates

_KEPT, _TABLE = "atlas_rates.json", "atlas_rates.csv"
_FITTED = 4
COLUMNS = (
    *("likelihood", "gate", "expert", "block", "cell", "r", "at_least", "rate", "status"),
    *("lower_constant", "lower_power", "n_for_0.1", "n_seen", "reason"),
)


def main(
    folder: Annotated[Path, typer.Argument(help="Where the results are.")] = FIGURES,
    minutes: Annotated[
        float, typer.Option(help="Stop to begin families after so long; 0 writes the page alone.")
    ] = 600.0,
    seconds: Annotated[float, typer.Option(help="Time of each family's searches.")] = 0.0,
    limit: Annotated[float, typer.Option(help="Processor time of a family, at most.")] = 120.0,
) -> None:
    """Ask for the rates of all families and write the table, the page and the picture."""
    path = folder / _KEPT
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    begun = time.monotonic()
    for cell in dict.fromkeys(_alone(each) for each in atlas_cells()):
        name = "; ".join(cell.words)
        if time.monotonic() - begun > 60.0 * minutes or _is_done(kept.get(name), seconds, limit):
            continue
        kept[name] = answered(cell, seconds, limit, folder / "certificates")
        typer.echo(f"{name}: {kept[name]['why'] or len(kept[name]['rows'])}")
        text = json.dumps(dict(sorted(kept.items())), indent=0, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    write_table(kept, folder)
    write(kept, folder)


def write_table(kept: Mapping[str, Any], folder: Path) -> None:
    """Write the CSV, a line for each block and cell."""
    with (folder / _TABLE).open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(_lines(kept))


def _alone(cell: AtlasCell) -> AtlasCell:
    """The family of a cell, as its cell of one."""
    return AtlasCell(cell.likelihood, cell.gate, cell.expert, 1)


def _is_done(known: Mapping[str, Any] | None, seconds: float, limit: float) -> bool:
    if known is None:
        return False
    if known["why"].startswith(NOT_DONE):
        return known["limit"] >= limit
    needs = any("search" in row["status"] or row["status"] == "undecided" for row in known["rows"])
    return known["seconds"] >= seconds or not needs


def answered(cell: AtlasCell, seconds: float, limit: float, folder: Path) -> dict[str, Any]:
    """The rows of one family, or why there are none.

    Parameters
    ----------
    cell : AtlasCell
        The family.
    seconds : float
        Time of the searches.
    limit : float
        Processor time.
    folder : Path
        Where certificates go.
    """
    told = {"seconds": seconds, "limit": limit, "why": "", "rows": []}
    spent = time.process_time()
    try:
        with at_most(limit):
            model = cell.true_family()
            theta = drawn_truth(cell)[0]
            blocks = {k: np.round(v, 2) for k, v in model.unpack(theta).items()}
            theta = model.pin(model.pack(blocks))
            found = moestat.theory.rates(
                model, theta, _FITTED, DESIGN, seconds=seconds, progress=False
            )
            rows = []
            for row in found:
                lower = found.lower_bound(row.block, row.cell)
                rows.append(
                    {
                        "block": row.block,
                        "cell": row.cell,
                        "r": _number(row.r),
                        "at_least": row.at_least,
                        "rate": row.text,
                        "status": row.status,
                        "reason": row.reason,
                        "n_for": _number(row.n_for),
                        "n_seen": _number(row.n_seen),
                        "lower": None if lower is None else float(f"{lower.constant:.3g}"),
                    }
                )
            told["rows"], told["notes"] = rows, list(found.notes)
            write_certificates(found, folder, "atlas-" + "-".join(_plain(cell)))
    except OutOfTimeError:
        told["why"] = f"{NOT_DONE} {limit:g} s"
    except (ValueError, ArithmeticError, NotImplementedError) as error:
        told["why"] = str(error)
    told["cpu"] = round(time.process_time() - spent, 1)
    return told


def _plain(cell: AtlasCell) -> Iterator[str]:
    for text in cell.words:
        yield "".join(c if c.isalnum() else "_" for c in text).replace("__", "_").strip("_")


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return "inf" if math.isinf(value) else float(f"{value:.6g}")


def _lines(kept: Mapping[str, Any]) -> Iterator[list[Any]]:
    for name, told in sorted(kept.items()):
        words = name.split("; ")
        if not told["rows"]:
            yield [*words, *[""] * 5, "no answer", *[""] * 4, told["why"]]
        for row in told["rows"]:
            power = "" if row["lower"] is None else f"1/{2.0 * row['r']:g}"
            yield [
                *(*words, row["block"], row["cell"], row["r"], row["at_least"], row["rate"]),
                *(row["status"], row["lower"], power, row["n_for"], row["n_seen"], row["reason"]),
            ]


if __name__ == "__main__":
    typer.run(main)
