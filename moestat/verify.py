"""``moestat-verify`` and ``python -m moestat.verify``: pointers to a clone's experiments."""

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run ``python -m experiments.verify`` of the clone that this package is imported from."""
    clone = Path(__file__).resolve().parents[1]
    if not (clone / "experiments" / "verify").is_dir():
        sys.exit(
            "error: the papers' claims are verified in a clone of moestat, not in an installed"
            " package; there: python -m experiments.verify"
        )
    sys.path.insert(0, str(clone))
    runpy.run_module("experiments.verify", run_name="__main__")


if __name__ == "__main__":
    main()
