"""The rate of any mixture of experts, from the derivatives of its density at a truth."""

from moestat.theory.rates._analysis import Rate
from moestat.theory.rates._rates import rates
from moestat.theory.rates._result import Rates

__all__ = ["Rate", "Rates", "rates"]


def __dir__() -> list[str]:
    return sorted(__all__)
