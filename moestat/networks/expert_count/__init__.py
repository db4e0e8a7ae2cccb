"""Mixtures of patch experts behind a top-1 router, trained by gradient descent.

The system of Duy et al. (n.d.): data in clusters (`PatchLaw`), experts with or without weights
shared across patches (`EXPERTS`), a linear router with uniform noise, and full-batch training
(`train`) with one of several rules (`OPTIMISERS`).
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
