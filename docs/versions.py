"""The sites of all versions side by side; ``python docs/versions.py BUILT PAGES VERSION``.

BUILT goes into PAGES as ``dev``, or as its version and ``stable`` if VERSION is a tag v1.2.3.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ADDRESS = "https://moestat.github.io/moestat"


def add(built: Path, pages: Path, version: str) -> None:
    """Copy a built site and name all that are there for the menu of versions."""
    tag = re.fullmatch(r"v(\d+(?:\.\d+)*)", version)
    for name in [tag[1], "stable"] if tag else ["dev"]:
        shutil.rmtree(pages / name, ignore_errors=True)
        shutil.copytree(built, pages / name)
    numbers = [each.name for each in pages.iterdir() if re.fullmatch(r"\d+(\.\d+)*", each.name)]
    numbers.sort(key=lambda name: [*map(int, name.split("."))], reverse=True)
    listed = [{"version": name, "url": f"{ADDRESS}/{name}/"} for name in ("dev", *numbers)]
    (pages / "switcher.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")
    first = "stable" if numbers else "dev"
    (pages / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={first}/">')
    (pages / ".nojekyll").touch()  # folders such as _static are part of the site


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
