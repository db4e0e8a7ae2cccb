"""The experiments that come with moestat: the specs in the repository's ``experiments`` folder."""

from __future__ import annotations

from pathlib import Path

import moestat
from moestat.sweep.errors import SweepError

__all__ = ["find_spec", "shipped"]


def shipped() -> dict[str, Path]:
    """Name -> file of every experiment in the ``experiments`` folder beside the package."""
    folder = Path(moestat.__file__).resolve().parents[1] / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_spec(name: str) -> Path:
    """The file that a user means.

    Parameters
    ----------
    name : str
        A path, or the name of a shipped experiment.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SweepError
        If there is neither.

    Examples
    --------
    >>> find_spec("quickstart").name
    'quickstart.toml'
    """
    if Path(name).is_file():
        return Path(name)
    known = shipped()
    if name in known:
        return known[name]
    names = ", ".join(known) or "none found beside the package"
    raise SweepError(f"there is no spec file {name!r}, nor a shipped experiment; those: {names}")
