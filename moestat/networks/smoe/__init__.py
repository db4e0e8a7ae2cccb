"""Sparse mixtures of experts as PyTorch modules, and CompeteSMoE (extra ``torch``).

Names are resolved on first use; nothing outside this folder imports PyTorch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
