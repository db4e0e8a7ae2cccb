"""Fits to data: starts, fits, results, estimators.  Names are resolved on first use."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
