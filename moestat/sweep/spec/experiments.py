"""The experiments that come with moestat, from a checkout or from the installed package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import moestat
from moestat.sweep.errors import SweepError


def shipped() -> dict[str, Path]:
    """Name -> file of every shipped experiment.

    In a checkout they are the specs in its ``experiments`` folder; a wheel carries a copy of that
    folder inside the package.
    """
    return {path.stem: path for path in sorted(_folder().glob("*.toml"))}


def _folder() -> Path:
    package = Path(moestat.__file__).resolve().parent
    # Any package may put a folder called experiments into site-packages; a checkout has the
    # project's file beside it, too.
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "experiments").is_dir():
        return checkout / "experiments"
    return package / "_experiments"


def find_spec(name: str) -> Path:
    """The file that a user means by a path or by the name of a shipped experiment."""
    if Path(name).is_file():
        return Path(name)
    known = shipped()
    if name in known:
        return known[name]
    near = get_close_matches(Path(name).stem, known)
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise SweepError(
        f"there is neither a spec file {name!r} nor a shipped experiment of this name{meant}"
        f" (python -m moestat.sweep list shows the {len(known)} that are shipped)"
    )
