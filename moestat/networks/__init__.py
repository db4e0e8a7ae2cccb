"""Networks of experts: `expert_count`, on clusters of patches, and `smoe`, layers for PyTorch.

Names are those of `moestat.networks.expert_count`, resolved on first use; layers are in
`moestat.networks.smoe`, which needs the extra ``torch``.
"""

import sys as _sys

import lazy_loader as _lazy

from moestat.networks._moved import Moved as _Moved

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

_sys.meta_path.insert(0, _Moved())
