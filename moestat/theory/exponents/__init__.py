"""The rate of any mixture of experts, from the derivatives of its density at a truth."""

from moestat.theory.exponents._rates import rates
from moestat.theory.exponents._result import Rates
from moestat.theory.exponents._work import Rate

__all__ = ["Rate", "Rates", "rates"]


def __dir__() -> list[str]:
    return sorted(__all__)
