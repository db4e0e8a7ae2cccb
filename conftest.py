"""Which modules pytest collects where an extra is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["moestat/networks/smoe"]
