"""moestat: how fast do mixture-of-experts estimators converge?

Public names are resolved on first use, so that ``import moestat`` stays cheap.
"""

import lazy_loader as _lazy

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
