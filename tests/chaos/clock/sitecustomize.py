"""A clock that jumps: `time.time` is off by what the file named in CHAOS_CLOCK says.

Python imports this module as it starts if the folder is on its path, before anything reads a clock.
"""

import os
import time
from pathlib import Path

_true, _file = time.time, Path(os.environ.get("CHAOS_CLOCK", "/nowhere"))


def _jumping():
    try:
        return _true() + float(_file.read_text(encoding="ascii") or 0.0)
    except (OSError, ValueError):
        return _true()


time.time = _jumping
