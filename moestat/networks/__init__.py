"""Networks of experts: `expert_count`, on clusters of patches, and `smoe`, layers for PyTorch.

Names are those of `moestat.networks.expert_count`, resolved on first use; layers are in
`moestat.networks.smoe`, which needs the extra ``torch``.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
