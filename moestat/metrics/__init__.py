"""How far estimates are from a truth: Voronoi losses, distances of densities, information."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__, ["losses"])
