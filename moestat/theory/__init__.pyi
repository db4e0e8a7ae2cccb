# Public names and where they are; `__init__.py` loads each on first use.

from .explorer._explore import deviation_loss as deviation_loss, explore as explore
from .explorer._result import Exploration as Exploration, Rung as Rung
from .identifiability.conditions import CONDITIONS as CONDITIONS, check_condition as check_condition
from .identifiability.dependencies import find_dependencies as find_dependencies
from .identifiability.orbits import find_orbits as find_orbits
from .polynomial_systems import (
    order as order,
    polynomial_system as polynomial_system,
    rbar as rbar,
)
from .exponents._work import Rate as Rate
from .exponents._rates import rates as rates
from .exponents._result import Rates as Rates
