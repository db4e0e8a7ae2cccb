"""Experiments with layers of experts: settings, tasks with a known truth, and their training.

Nothing that a layer needs is here.  Settings can be read without PyTorch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
