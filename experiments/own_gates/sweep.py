"""The sweep command, with the members of one's own registered: ``python -m`` this module."""

import re
import sys
from pathlib import Path

from experiments.own_gates.draw import drawn_family
from experiments.own_gates.members import register

if __name__ in ("__main__", "__mp_main__"):
    # Processes that compute cells import the main module under the second name.
    register()
    for spec in [Path(each) for each in sys.argv if each.endswith(".toml")]:
        for seed in set(re.findall(r"drawn-(\d+)", spec.read_text(encoding="utf-8"))):
            drawn_family(int(seed))

if __name__ == "__main__":
    from moestat.sweep.__main__ import main

    main()
