"""A file with the current estimates of a long fit, from which the same call can resume."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moestat.base.files import replacing
from moestat.base.types import FloatArray
from moestat.base.validate import as_path
from moestat.estimation.progress import LOG
from moestat.model.family import Family
from moestat.model.units import Coordinates
from moestat.solvers.problem import Problem, Request, Value

__all__ = ["SavedEstimates", "digest_of_fit"]


def digest_of_fit(family: Family, rows: int, total: float, mean: FloatArray, prior: object) -> str:
    """A digest of a model and of what one pass has found out about its data."""
    known = [family.table, rows, total, mean.tolist(), repr(prior)]
    return hashlib.sha256(json.dumps(known, default=repr).encode()).hexdigest()


@dataclass
class SavedEstimates:
    """The file of one fit.

    It holds the best point of each start, in the units of the user.  It is replaced as a whole
    after each pass, and it is removed when the fit has ended.
    """

    path: Path
    digest: str
    coordinates: Coordinates
    best: dict[int, tuple[float, list[float]]] = field(
        default_factory=dict[int, tuple[float, list[float]]]
    )

    @classmethod
    def at(cls, path: str | Path, digest: str, coordinates: Coordinates) -> SavedEstimates:
        """The file of this name, which need not exist."""
        return cls(as_path("resume", path), digest, coordinates)

    def points(self) -> FloatArray | None:
        """The points (m, P) of an earlier call; None if there is no file.

        Raises
        ------
        ValueError
            If the file is of another fit.
        """
        if not self.path.exists():
            return None
        try:
            saved = json.loads(self.path.read_text(encoding="utf-8"))
            digest, points = saved["of"], np.array(saved["points"], dtype=np.float64)
        except (ValueError, KeyError, TypeError, OSError):
            digest, points = None, np.empty(0)
        if digest != self.digest or points.ndim != 2:
            raise ValueError(
                f"resume: {str(self.path)!r} belongs to another fit: its model, prior or data are"
                " different; give another name, or remove the file"
            )
        return points

    def keep(self, problem: Problem, request: Request, answer: Value) -> None:
        """Note a point whose objective is known, if it is the best one of its start."""
        before = self.best.get(id(problem))
        if np.isfinite(answer.value) and (before is None or answer.value < before[0]):
            theta = self.coordinates.outward(request.theta)
            self.best[id(problem)] = answer.value, theta.tolist()

    def start(self, points: FloatArray) -> None:
        """Write the points (m, P) from which climbs begin, in the coordinates of the fit."""
        try:
            self._write([self.coordinates.outward(point).tolist() for point in points])
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def write(self) -> None:
        """Write the best point of each start; a disk that fails now does not end the fit."""
        try:
            self._write([theta for _, theta in self.best.values()])
        except OSError as error:
            LOG.warning("%s; it has the points of an earlier pass", _cannot_write(self.path, error))

    def remove(self) -> None:
        """Remove the file: the fit has ended."""
        self.path.unlink(missing_ok=True)

    def _write(self, points: list[list[float]]) -> None:
        text = json.dumps({"of": self.digest, "points": points})
        with replacing(self.path) as file:
            file.write(text.encode())


def _cannot_write(path: Path, error: OSError) -> ValueError:
    return ValueError(f"resume: {str(path)!r} cannot be written: {error.strerror or error}")
