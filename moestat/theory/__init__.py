"""The theorems as checkable objects.

`rates` answers for any mixture of experts how fast its parameters are estimated; `explore` searches
for measures that refute a bound; `find_dependencies`, `check_condition` and `find_orbits` say what
is identified; `polynomial_system`, `order` and `rbar` are those of Gaussian experts.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
