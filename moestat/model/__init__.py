"""Mixtures of experts as models: gates, experts, likelihoods, families, designs, samples."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__, ["attention", "designs", "experts", "gates", "likelihoods"]
)
